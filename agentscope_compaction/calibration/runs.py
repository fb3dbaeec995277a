"""Finds long passages that a text repeats word for word from texts read before.

Held texts are indexed by short pieces at a fixed stride, so that any shared passage of twice that
length contains an indexed piece; a hit is then extended to both sides. Linear in both texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["RunIndex", "normal"]

_PIECE, _PIECE_CJK = 20, 10
_RUN, _RUN_CJK = 40, 20
"""Shortest passage that counts; CJK text says as much in half the characters."""
_POSTINGS = 8
"""Places remembered per piece; a piece that repeats more often is boilerplate."""
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_BLANKS = re.compile(r"[ \t\u00a0\u3000]+")


def normal(text: str) -> str:
    """One form for literal and JSON-escaped text, with runs of blanks as one."""
    text = text.replace("\r", "").replace("\\n", "\n").replace("\\t", " ").replace('\\"', '"')
    return _BLANKS.sub(" ", text)


class RunIndex:
    """Held texts, numbered in the order they were added; all texts are in ``normal`` form."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._pieces: dict[str, list[tuple[int, int]]] = {}

    def add(self, text: str) -> None:
        """Index one more text."""
        number, place = len(self._texts), 0
        self._texts.append(text)
        for line in text.split("\n"):
            for size in (_PIECE, _PIECE_CJK) if _CJK.search(line) else (_PIECE,):
                for start in range(0, len(line) - size + 1, size):
                    posted = self._pieces.setdefault(line[start : start + size], [])
                    if len(posted) < _POSTINGS:
                        posted.append((number, place + start))
            place += len(line) + 1

    def texts_with(self, run: str) -> list[int]:
        """Return the numbers of the texts that hold a passage."""
        return [number for number, text in enumerate(self._texts) if run in text]

    def matches(self, text: str) -> list[str]:
        """Return the distinct passages of a text that held texts share, longest form each."""
        found: dict[str, None] = {}
        for line in text.split("\n"):
            for start, end in self._spans(line):
                run = _whole_words(line, start, end)
                if _says_something(run):
                    found[run] = None
        return list(found)

    def _spans(self, line: str) -> Iterator[tuple[int, int]]:
        """Yield shared spans of a line, left to right, not overlapping."""
        size = _PIECE_CJK if _CJK.search(line) else _PIECE
        place, free_from = 0, 0
        while place + size <= len(line):
            posted = self._pieces.get(line[place : place + size])
            if posted is None:
                place += 1
                continue
            spans = (self._extended(line, place, size, spot, free_from) for spot in posted)
            start, end = max(spans, key=lambda span: span[1] - span[0])
            yield start, end
            place = free_from = end

    def _extended(
        self, line: str, place: int, size: int, spot: tuple[int, int], free_from: int
    ) -> tuple[int, int]:
        held, at = self._texts[spot[0]], spot[1]
        start, end, left, right = place, place + size, at, at + size
        while start > free_from and left > 0 and line[start - 1] == held[left - 1]:
            start, left = start - 1, left - 1
        while end < len(line) and right < len(held) and line[end] == held[right]:
            end, right = end + 1, right + 1
        return start, end


def _whole_words(line: str, start: int, end: int) -> str:
    """Cut half words off both ends of a span (CJK has no word borders)."""
    if start > 0 and _wordy(line[start - 1]):
        while start < end and _wordy(line[start]):
            start += 1
    if end < len(line) and _wordy(line[end]):
        while end > start and _wordy(line[end - 1]):
            end -= 1
    return line[start:end].strip(" ,.;:!?\"'`")


def _says_something(run: str) -> bool:
    needed = _RUN_CJK if 4 * len(_CJK.findall(run)) >= 3 * len(run) else _RUN
    if len(run) < needed:
        return False
    return sum(map(str.isalnum, run)) >= 12 and len(set(run)) >= 8


def _wordy(char: str) -> bool:
    return (char.isalnum() or char == "_") and not _CJK.match(char)
