"""The report in a real headless Chromium, from ``file://``.

Skipped where Chromium, its driver or Selenium is missing; ``AGENTSCOPE_COMPACTION_BROWSER=1`` makes
that a failure.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.report.conftest import Judged

_FORCED = os.environ.get("AGENTSCOPE_COMPACTION_BROWSER") == "1"


def _required(found: object, what: str) -> None:
    if not found and _FORCED:
        pytest.fail(f"{what} is missing")
    if not found:
        pytest.skip(f"{what} is missing")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for all tests here."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    _required(chromium, "chromium")
    _required(driver, "chromedriver")
    try:
        from selenium import webdriver
    except ImportError:
        _required(None, "selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = str(chromium)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    arguments = ["--headless=new", "--window-size=1280,1000", "--disable-gpu"]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")  # Chromium's sandbox refuses to run as root
    for argument in [*arguments, "--disable-dev-shm-usage"]:
        options.add_argument(argument)
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield opened
    opened.quit()


def _open(browser: Any, tmp_path: Path, case: Judged) -> None:
    page = tmp_path / "report.html"
    page.write_text(case.proposal.to_html(case.request), encoding="utf-8")
    browser.get(page.as_uri())


def _text(browser: Any, name: str) -> str:
    return str(
        browser.execute_script("return document.getElementById(arguments[0]).textContent", name)
    )


def _click(browser: Any, selector: str) -> None:
    """Click where a person would: the driver itself scrolls things under the bar at the bottom."""
    place = browser.find_element("css selector", selector)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", place)
    place.click()


def _rows(browser: Any) -> list[str]:
    script = """return Array.from(document.querySelectorAll("tbody.call"))
        .filter((body) => body.checkVisibility()).map((body) => body.dataset.fate)"""
    return list(browser.execute_script(script))


def _choose(browser: Any, name: str, value: str) -> None:
    from selenium.webdriver.support.select import Select

    Select(browser.find_element("id", name)).select_by_visible_text(value)


def test_ticks_make_the_answer(browser: Any, tmp_path: Path, judged: Judged) -> None:
    """All changes are ticked at first; what stays ticked is what the snippet and JSON accept."""
    _open(browser, tmp_path, judged)
    assert 'calls=["t1", "t2", "t3"]' in _text(browser, "snippet")
    _click(browser, 'input[value="t2"]')
    assert _text(browser, "snippet") == (
        'await agent.accept_compaction(proposal, calls=["t1", "t3"])'
    )
    assert json.loads(_text(browser, "accepted")) == {
        "proposal_id": judged.proposal.proposal_id,
        "calls": ["t1", "t3"],
    }
    assert _text(browser, "picked").startswith("2 of 3 changes accepted")


def test_filters(browser: Any, tmp_path: Path, judged: Judged) -> None:
    """Filters by tool and fate hide calls, say how many remain, and bound the buttons."""
    _open(browser, tmp_path, judged)
    _choose(browser, "fate", "output cut")
    assert _rows(browser) == ["drop_result", "drop_result"]
    _choose(browser, "tool", "Grep")
    assert _rows(browser) == ["drop_result"]
    assert _text(browser, "shown") == "1 of 6 calls"
    browser.find_element("id", "none").click()
    assert 'calls=["t1", "t3"]' in _text(browser, "snippet")
    _choose(browser, "fate", "all")
    _choose(browser, "tool", "all")
    browser.find_element("id", "none").click()
    assert _text(browser, "snippet") == "await agent.reject_compaction(proposal)"
    assert _text(browser, "shown") == "6 of 6 calls"


def test_details_show_before_and_after(browser: Any, tmp_path: Path, judged: Judged) -> None:
    """The details of a cut call show what it was and what it becomes."""
    _open(browser, tmp_path, judged)
    browser.find_element("id", "expand").click()
    visible = browser.find_element("id", "calls").text
    assert "first line" in visible
    assert "characters of this successful output omitted" in visible
    assert "Call and output are removed." in visible


def test_keyboard_alone(browser: Any, tmp_path: Path, judged: Judged) -> None:
    """Tick boxes are reached by Tab, show a focus ring, and are switched by Space."""
    from selenium.webdriver.common.keys import Keys

    _open(browser, tmp_path, judged)
    for _ in range(20):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        if browser.switch_to.active_element.get_attribute("class") == "tick":
            break
    box = browser.switch_to.active_element
    assert box.get_attribute("value") == "t1"
    assert browser.execute_script(_UNCOVERED, box)
    assert box.value_of_css_property("outline-style") == "solid"
    box.send_keys(Keys.SPACE)
    assert 'calls=["t2", "t3"]' in _text(browser, "snippet")
    assert box.accessible_name == "Accept t1: output cut"


_UNCOVERED = """
const at = arguments[0].getBoundingClientRect();
return document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2) === arguments[0];
"""


def test_copy(browser: Any, tmp_path: Path, judged: Judged) -> None:
    """The button copies, or selects the text where the browser forbids copying."""
    _open(browser, tmp_path, judged)
    browser.find_element("css selector", 'button[data-of="snippet"]').click()
    script = """const done = arguments[0];
        const look = () => {
          const text = document.querySelector('button[data-of="snippet"]').textContent;
          text === "Copy" ? setTimeout(look, 20) : done(text);
        };
        look();"""
    browser.set_script_timeout(10)
    assert browser.execute_async_script(script) in ("Copied", "Selected: press Ctrl+C")


def test_hostile_history_stays_text(browser: Any, tmp_path: Path, hostile: Judged) -> None:
    """No string of a hostile history runs, loads or hides anything, and the page works on."""
    browser.get_log("browser")
    _open(browser, tmp_path, hostile)
    browser.find_element("id", "expand").click()
    _click(browser, 'input[value="t2"]')
    assert browser.execute_script("return typeof window.pwned") == "undefined"
    assert browser.execute_script("return document.scripts.length") == 2
    assert browser.execute_script("return document.querySelectorAll('img,svg,iframe').length") == 0
    assert "<img src=x onerror=window.pwned=1>" in browser.find_element("id", "calls").text
    assert '"t1", "t3"' in _text(browser, "snippet")
    assert browser.get_log("browser") == []
    loaded = "return performance.getEntriesByType('resource').length"
    assert browser.execute_script(loaded) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_readable_in_both_schemes(
    browser: Any, tmp_path: Path, judged: Judged, scheme: str
) -> None:
    """Text has at least the contrast WCAG AA asks for, in light and in dark."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    _open(browser, tmp_path, judged)
    pairs = [("body", "body"), (".quiet", "body"), ("dt", "dl > div"), ("summary", ".scroll")]
    for ink, ground in [*pairs, ("pre", "pre"), ("code", ".scroll")]:
        contrast = browser.execute_script(_CONTRAST, ink, ground)
        assert contrast >= 4.5, (ink, ground, contrast)


_CONTRAST = """
const light = (css) => {
  const [r, g, b] = css.match(/[\\d.]+/g).slice(0, 3).map((part) => {
    const c = part / 255;
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const style = (name) => getComputedStyle(document.querySelector(name));
const pair = [light(style(arguments[0]).color), light(style(arguments[1]).backgroundColor)];
return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
"""


def test_narrow_screen(browser: Any, tmp_path: Path, judged: Judged) -> None:
    """On a narrow screen only the table scrolls sideways, not the page."""
    _open(browser, tmp_path, judged)
    metrics = {"width": 360, "height": 700, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    wider = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert browser.execute_script(wider) <= 0
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_prints(browser: Any, tmp_path: Path, judged: Judged) -> None:
    """Printing opens the details of the cut calls and gives a document."""
    _open(browser, tmp_path, judged)
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    opened = "return document.querySelectorAll('details.cut[open]').length"
    assert browser.execute_script(opened) == 3
    assert browser.execute_cdp_cmd("Page.printToPDF", {})["data"].startswith("JVBERi0")
