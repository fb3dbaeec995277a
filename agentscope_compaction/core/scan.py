"""Finds the strings worth remembering in a text: paths, URLs, ids, hashes, long numbers, names.

One regular expression cuts a text into chunks in linear time; each distinct chunk is then
classified once, with plain string tests. Nothing here looks at more than the text it is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

__all__ = ["CHUNK", "STRONG", "Kind", "classify", "clip", "identifiers", "terms", "trim"]


class Kind(StrEnum):
    """What a chunk looks like; ``WORD`` is everything that identifies nothing."""

    URL = "url"
    PATH = "path"
    HASH = "hash"
    ID = "id"
    NUMBER = "number"
    NAME = "name"
    WORD = "word"


STRONG = frozenset({Kind.URL, Kind.PATH, Kind.HASH, Kind.ID, Kind.NUMBER})
"""Kinds that can hardly be guessed: whoever uses one later has read it somewhere."""

CHUNK = re.compile(
    r"https?://[^\s\"'<>()\[\]{}\\|`，。）]{3,400}"
    r"|[A-Za-z0-9_~@#$][A-Za-z0-9_./@#+~$-]{0,300}"
    r"|[./][A-Za-z0-9_~@.-][A-Za-z0-9_./@+~-]{1,300}"
    r"|[^\W\dA-Za-z_]{2,40}"
)
"""One chunk of text. Every branch is a bounded character class, so no match backtracks far."""

_HEX = re.compile(
    r"[0-9a-f]{7,64}\Z|[0-9A-F]{12,64}\Z|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z"
)
_PLAIN = re.compile(
    r"(?i)(?:\d+(?:px|r?em|v[hw]|[mnu]?s|[kmgt]i?b?|h|d|x|th|st|nd|rd|%)?"
    r"|v?\d+(?:\.\d+){0,2}|\d{4}-\d\d-\d\d(?:t\d\d)?|[a-z]{1,3}\d|[hp][1-6]"
    r"|(?:utf|sha|md|iso|base|int|uint|float|python|es|ipv|mp|x86|amd|arm|win|u|i|f)[-_]?\d[\d._-]*)\Z"
)
_COMPOUND = re.compile(r"[A-Za-z0-9][-_.][A-Za-z0-9]|[a-z][A-Z]|[A-Z]{2}[a-z]")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\dA-Za-z_]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")


def trim(chunk: str) -> str:
    """A chunk without the punctuation that belongs to the sentence around it."""
    return chunk.rstrip(".,;:!?*_-/") if not chunk.endswith("_id") else chunk


def classify(chunk: str) -> Kind:
    """The kind of a trimmed chunk.

    ``/srv/app/main.py`` is a path, ``3f9c2ab`` a hash, ``pod-7c9f1`` and ``HAT028`` ids,
    ``929732`` a number, ``retry_budget`` a name, ``budget`` a word.
    """
    size = len(chunk)
    if size < 4:
        return Kind.WORD
    if chunk.startswith("http") and "://" in chunk:
        return Kind.URL if size >= 12 else Kind.WORD
    if "/" in chunk:
        return _classify_path(chunk)
    digits = sum(map(str.isdigit, chunk))
    if digits:
        return _classify_digits(chunk, size, digits)
    return Kind.NAME if size >= 8 and _COMPOUND.search(chunk) else Kind.WORD


def _classify_path(chunk: str) -> Kind:
    parts = [part for part in chunk.split("/") if part.strip(".~")]
    if len(parts) < 2 or len(chunk) < 7 or not any(c.isalpha() for c in chunk):
        return Kind.WORD
    rooted = chunk[0] in "/.~" or len(parts) > 2
    return Kind.PATH if rooted or "." in parts[-1] else Kind.NAME


def _classify_digits(chunk: str, size: int, digits: int) -> Kind:
    if digits == size:
        return Kind.NUMBER if size >= 5 and len(chunk.strip("0")) >= 3 else Kind.WORD
    if _PLAIN.match(chunk):
        return Kind.WORD
    if not any(map(str.isalpha, chunk)):
        return Kind.NUMBER if digits >= 5 else Kind.WORD
    if _HEX.match(chunk):
        return Kind.HASH
    if (digits >= 2 and size >= 6) or (size >= 5 and chunk.isalnum() and chunk.isupper()):
        return Kind.ID
    return Kind.NAME if size >= 8 else Kind.WORD


def terms(chunk: str) -> tuple[str, ...]:
    """Lower-case search terms of a chunk: its words, and pairs of characters where it is CJK."""
    found: list[str] = []
    for part in _PARTS.findall(chunk):
        if _CJK.search(part):
            found.extend(part[i : i + 2] for i in range(len(part) - 1))
        elif len(part) > 2:
            found.append(_stem(part.lower()))
    return tuple(found)


def _stem(word: str) -> str:
    """Strip the commonest English endings, so that "retries" meets "retry"."""
    if len(word) > 4:
        for ending, put in (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
            if word.endswith(ending) and len(word) - len(ending) >= 3:
                return word[: -len(ending)] + put
    return word


def clip(text: str, limit: int) -> str:
    """At most ``limit`` characters: the text, or its head and a quarter as much of its end."""
    if len(text) <= limit:
        return text
    tail = limit // 5
    return text[: limit - tail - 1] + "\n" + text[len(text) - tail :]


def identifiers(chunks: Iterable[str]) -> dict[str, Kind]:
    """Distinct chunks that identify something, in order of appearance."""
    found: dict[str, Kind] = {}
    for chunk in chunks:
        name = trim(chunk)
        if name not in found and (kind := classify(name)) is not Kind.WORD:
            found[name] = kind
    return found
