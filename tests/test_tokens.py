"""Token figures without a network: which counter is used, and that nothing is downloaded."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentscope_compaction.core.estimate import estimate_tokens, measure
from agentscope_compaction.tokens import TokenCounter, texts_of

NO_NETWORK = """
import socket, sys
def refuse(*arguments, **options):
    raise AssertionError("a socket was opened")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from agentscope_compaction.tokens import default_counter
counter = default_counter()
print(counter.name, counter([{"content": [{"type": "text", "text": "hello world " * 10}]}]))
assert not [m for m in ("requests", "httpx", "urllib3") if m in sys.modules]
"""


def count_offline(folder: Path) -> str:
    """Count in a fresh process that has no network, with this folder as tiktoken's cache."""
    done = subprocess.run(
        [sys.executable, "-c", NO_NETWORK],
        env={"TIKTOKEN_CACHE_DIR": str(folder), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_empty_cache_means_the_estimate(tmp_path: Path) -> None:
    """Without cached data tokens are estimated and no connection is opened."""
    assert count_offline(tmp_path).startswith("estimate ")


def test_a_damaged_cache_means_the_estimate(tmp_path: Path) -> None:
    """A damaged cache file, which tiktoken would delete and download again, is left alone."""
    folder = "https://openaipublic.blob.core.windows.net/encodings/"
    for name in ("o200k_base", "cl100k_base"):
        address = f"{folder}{name}.tiktoken".encode()
        (tmp_path / hashlib.sha1(address).hexdigest()).write_bytes(b"not an encoding")
    assert count_offline(tmp_path).startswith("estimate ")
    assert len(list(tmp_path.iterdir())) == 2


def test_which_strings_count() -> None:
    """Texts, thinking, hints, names, inputs and outputs count; ids and binary data do not."""
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "a", "id": "no"},
        {"type": "thinking", "thinking": "b", "signature": "no"},
        {"type": "hint", "hint": [{"type": "text", "text": "c"}, {"type": "data", "source": "no"}]},
        {"type": "tool_call", "name": "d", "input": "e", "state": "no"},
        {"type": "tool_result", "name": "f", "output": [{"type": "text", "text": "g"}, "no", 3]},
        {"type": "future", "text": 7, "output": {"text": "no"}},
    ]
    assert "".join(texts_of([{"content": blocks}])) == "abcdefg"
    assert TokenCounter("letters", len)([{"content": blocks}]) == 7


@pytest.mark.parametrize(
    ("text", "at_least"),
    [
        ("", 0),
        ("word", 1),
        ("internationalization", 4),
        ("漢字かな交じり文" * 10, 80),
        ("3f9c2ab01d" * 10, 40),
        ('{\\"a\\":\\"b\\\\n\\"}', 12),
        ("\U0001f468\u200d\U0001f469", 3),
        ("\ud83d" * 10, 10),
    ],
)
def test_the_estimate_errs_on_the_high_side(text: str, at_least: int) -> None:
    """CJK, hex, escapes, emoji and lone surrogates are not underestimated."""
    assert estimate_tokens(text) >= at_least
    assert estimate_tokens(text) >= len(text.encode("utf-8", "surrogatepass")) / 2.5


def test_measures_add_up() -> None:
    """Measures of JSON parts joined by punctuation are the measure of the whole."""
    parts = ['"goal":', '"Fix 12 bugs"', ",", '"漢字":', "[1,2]"]
    total = measure("")
    for part in parts:
        total += measure(part)
    assert total == measure("".join(parts))
    assert total - measure(parts[0]) == measure("".join(parts[1:]))


_PIECE = re.compile(r"[A-Za-z]{1,6}|[0-9]{1,2}|[^\sA-Za-z0-9]")


_CHARS = st.sampled_from("aZ09 .,_\n\t\x1f\x7f\x85\xa0é中٣\u3000\u2028\ud800😀")
_RUNS = st.lists(st.builds(str.__mul__, _CHARS, st.integers(1, 60)), max_size=8).map("".join)


@given(st.text(_CHARS, max_size=80) | _RUNS)
@example("internationalization of 1234567 things")
@example("x" * 10_001 + "7" * 10_001)
def test_pieces_are_counted_as_defined(text: str) -> None:
    """Counting all runs at once finds what a search for one piece after another finds."""
    assert measure(text).pieces == len(_PIECE.findall(text))
    assert measure(text).size == len(text.encode("utf-8", "surrogatepass"))
