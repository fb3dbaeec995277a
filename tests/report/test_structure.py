"""What the report is made of, read back by a parser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from agentscope_compaction import CompactionProposal, InvalidSnapshotError
from agentscope_compaction.report import to_html
from agentscope_compaction.report.calls import Fate, calls_of
from agentscope_compaction.report.escape import shortened, text
from tests.report.conftest import HOSTILE, Judged

_VOID = {"meta", "input", "br"}


class Page(HTMLParser):
    """Collects tags, attributes and text, and checks that tags nest."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[str] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(source)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the tag that is open."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note text, or a script."""
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.text += data

    def values(self, name: str) -> list[str]:
        """All values of one attribute."""
        return [value for _, key, value in self.attributes if key == name]


def test_whole_page(judged: Judged) -> None:
    """Every call has its row, its fate, its reason and its probabilities."""
    page = Page(judged.proposal.to_html(judged.request))
    assert page.tags["tbody"] == 6
    assert page.tags["input"] == 3
    assert [v for v in page.values("data-fate")] == [
        "drop_result",
        "drop_result",
        "drop_call",
        "not_shorter",
        "keep",
        "keep",
    ]
    for expected in ("fix the retry bug", "result_not_needed", "0.900", "tool_not_eligible"):
        assert expected in page.text
    assert "old code\nold code" in page.text
    assert "characters of this successful output omitted" in page.text


def test_without_request_before_is_said_to_be_missing(judged: Judged) -> None:
    """Without the request the page says that originals are missing, and shows the stubs."""
    page = Page(to_html(judged.proposal))
    assert "it was made without the request" in page.text
    assert "characters of this successful output omitted" in page.text
    assert "old code\nold code" not in page.text


def test_wire_form_is_enough(judged: Judged) -> None:
    """A proposal that came over the wire, without its observation, makes a page too."""
    wire = CompactionProposal.model_validate(judged.proposal.model_dump(mode="json"))
    page = Page(wire.to_html())
    assert "Exactly what the model was shown" not in page.text
    assert "Exactly what the model was shown" in judged.proposal.to_html()


def test_other_request_is_refused(judged: Judged, hostile: Judged) -> None:
    """Outputs of another history are never shown as this one's."""
    with pytest.raises(InvalidSnapshotError, match="not the one"):
        to_html(judged.proposal, hostile.request)


def test_same_input_same_page(judged: Judged) -> None:
    """The page is a pure function of its input."""
    first = to_html(judged.proposal, judged.request)
    assert first == to_html(judged.proposal, judged.request)


def test_policy_allows_the_one_script(judged: Judged) -> None:
    """The policy names the hash of the script that is there, and no address."""
    page = Page(to_html(judged.proposal))
    (policy,) = [v for v in page.values("content") if "default-src" in v]
    facts, script = page.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith(
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    )
    assert json.loads(facts) == {"proposal_id": judged.proposal.proposal_id}


def test_no_address_and_no_handler(judged: Judged, hostile: Judged) -> None:
    """No element loads anything, and none carries an event handler, whatever the history holds."""
    for case in (judged, hostile):
        page = Page(to_html(case.proposal, case.request))
        names = {name for _, name, _ in page.attributes}
        assert not names & {"src", "href", "srcset", "action", "background", "data", "xlink:href"}
        assert not [name for name in names if name.startswith("on")]
        assert set(page.values("style")) <= {
            v for v in page.values("style") if re.fullmatch(r"(flex-grow|width):[\d.]+%?", v)
        }


def test_hostile_strings_are_text(judged: Judged, hostile: Judged) -> None:
    """Hostile strings add no element of any kind, and stay readable."""
    plain = Page(to_html(judged.proposal, judged.request))
    page = Page(to_html(hostile.proposal, hostile.request))
    assert set(page.tags) <= set(plain.tags)
    assert page.tags["script"] == 2
    assert page.tags["style"] == 1
    assert page.tags["tbody"] == len(HOSTILE)
    assert "<img src=x onerror=window.pwned=1>" in page.text
    assert "&lt;b&gt; &amp;amp;" in page.text


def test_page_is_utf8_without_hidden_characters(hostile: Judged) -> None:
    """Lone surrogates, controls and direction overrides are shown by name."""
    source = to_html(hostile.proposal, hostile.request)
    source.encode()
    for character in "\x00\x1b\x7f\x85\u2028\u202e\u2066\u200b\r":
        assert character not in source
    for name in (r"\ud83d", r"\u202e", r"\x1b", r"\u2028"):
        assert name in source


def test_hostile_wire_form(judged: Judged) -> None:
    """Statistics and ids of a proposal from elsewhere are not trusted either."""
    wire = judged.proposal.model_dump(mode="json")
    wire["proposal_id"] = wire["snapshot_digest"] = wire["archive_ref"] = HOSTILE[0]
    wire["stats"] = dict.fromkeys(wire["stats"], HOSTILE[1])
    wire["stats"]["break_even_calls"] = HOSTILE[1]
    for decision in wire["decisions"]:
        decision["id"] = HOSTILE[2]
    page = Page(CompactionProposal.model_validate(wire).to_html())
    assert page.tags["script"] == 2
    assert page.tags["img"] == 0
    assert HOSTILE[2] in page.values("value")


def test_labels_and_headers(judged: Judged) -> None:
    """Controls have names, the table has a caption and headers, changes are announced."""
    page = Page(to_html(judged.proposal, judged.request))
    assert page.tags["caption"] == 1
    assert Counter(page.values("scope")) == {"col": 7, "row": 6}
    assert page.values("aria-live") == ["polite", "polite"]
    assert page.tags["fieldset"] == page.tags["legend"] == 2
    named = [v for tag, name, v in page.attributes if tag == "input" and name == "aria-label"]
    assert named[0] == "Accept t1: output cut"
    ids = page.values("id")
    assert len(ids) == len(set(ids))


def test_nothing_to_accept(judged: Judged) -> None:
    """A proposal that changes nothing has no tick box and says so."""
    from agentscope_compaction.testing import ScriptedDecisionModel
    from tests.report.conftest import judge

    kept = judge(judged.request.messages, ["Read"], ScriptedDecisionModel(1.0), "go on")
    page = Page(kept.proposal.to_html(kept.request))
    assert page.tags["input"] == 0
    assert "There is nothing to accept." in page.text
    empty = judge([], [], ScriptedDecisionModel(1.0), "go on")
    assert "No model was asked" in empty.proposal.to_html(empty.request)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (7, "pays for itself after 7 further model calls"),
        (1, "after 1 further model call<"),
        (None, "does not pay"),
        ("absent", "not measured"),
    ],
)
def test_break_even(judged: Judged, value: object, words: str) -> None:
    """The cache's break-even is told where it was measured."""
    stats = dict(judged.proposal.stats)
    if value != "absent":
        stats["break_even_calls"] = value
    assert words in judged.proposal.model_copy(update={"stats": stats}).to_html()


def test_evidence_is_told(judged: Judged) -> None:
    """With evidence the page says how much output text was shown."""
    options = {**judged.proposal.stats["options"], "evidence_chars": 120}
    stats = {**judged.proposal.stats, "options": options, "redactions": 3}
    page = Page(judged.proposal.model_copy(update={"stats": stats}).to_html())
    assert "Up to 120 characters of each candidate's output" in page.text
    assert "3 redacted before anything was sent" in page.text


def test_fates(judged: Judged) -> None:
    """A stub that would not be shorter counts as kept."""
    fates = [call.fate for call in calls_of(judged.proposal, judged.request)]
    assert fates.count(Fate.NOT_SHORTER) == 1
    assert sum(call.changes for call in calls_of(judged.proposal, None)) == 3


def test_long_output_is_shortened() -> None:
    """A text over the limit keeps head and tail, and says how much is missing."""
    shown = shortened("a" * 600 + "b" * 600, 200)
    assert shown.startswith("a" * 100 + "\n[… 1,000 characters")
    assert shown.endswith("b" * 100)
    assert text("<" + "\ud800") == r"&lt;\ud800"
