"""Estimated tokens of what is sent to a decision model; errs on the high side.

The service's tokenizer is unpublished. A word rule (a token per six letters, per two digits, per
other symbol) was reported 2-18 % above billed on prose but low on hex, escaped JSON and CJK, where
UTF-8 bytes / 2.5 is safe; the larger of the two counts. A request adds about 270 tokens of its own
and each question about 25.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Self

__all__ = ["PER_QUESTION", "PER_REQUEST", "Measure", "estimate_tokens", "measure"]

PER_REQUEST = 256
"""Tokens reserved in every request."""
PER_QUESTION = 25
"""Tokens a question costs beyond its text."""

_PIECE = re.compile(r"[A-Za-z]{1,6}|[0-9]{1,2}|[^\sA-Za-z0-9]")
_KINDS = bytes(
    ord("a" if c.isalpha() else "0" if c.isdigit() else " " if c.isspace() else ".")
    for c in map(chr, range(128))
) + bytes(128)
"""A letter for each ASCII character: a letter, a digit, blank, or a symbol."""
_LETTER_RUNS = (b"aaaaaa", b"aaaaa", b"aaaa", b"aaa", b"aa")
"""Runs that are one piece, longest first: after the sixes, only shorter rests are left."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Pieces and bytes of a text. Measures of texts add up to that of the joined text."""

    pieces: int = 0
    size: int = 0

    def __add__(self, other: Self) -> Measure:
        return Measure(self.pieces + other.pieces, self.size + other.size)

    def __sub__(self, other: Self) -> Measure:
        return Measure(self.pieces - other.pieces, self.size - other.size)

    @property
    def tokens(self) -> int:
        """Estimated tokens, rounded up."""
        return math.ceil(max(1.2 * self.pieces, self.size / 2.5))


def measure(text: str) -> Measure:
    """Count a text's pieces and UTF-8 bytes."""
    if text.isascii():
        return Measure(_ascii_pieces(text), len(text))
    return Measure(len(_PIECE.findall(text)), len(text.encode("utf-8", "surrogatepass")))


def _ascii_pieces(text: str) -> int:
    """Count what ``_PIECE`` would find, several times as fast: this runs over whole histories."""
    kinds = text.encode("ascii").translate(_KINDS)
    for run in _LETTER_RUNS:
        kinds = kinds.replace(run, b"w")
    kinds = kinds.replace(b"00", b"w")
    return len(kinds) - kinds.count(b" ")


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of one text."""
    return measure(text).tokens
