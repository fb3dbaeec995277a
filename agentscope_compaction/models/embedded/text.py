"""Reads one text for the scorer: its identifiers, and the search terms it shares with a query."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agentscope_compaction.core.scan import CHUNK, Kind, classify, clip, terms, trim

__all__ = [
    "Query",
    "Reader",
    "Scan",
    "input_fields",
    "input_text",
    "known_fields",
    "overlap",
    "rarity_of",
    "weigh_terms",
]

_FIELD = re.compile(r'"(\w{1,40})"\s*:\s*"((?:[^"\\]|\\.)*)"')
_SATURATION = 1.2
"""BM25's k1: how soon further mentions of a term stop counting."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What one text holds."""

    ids: dict[str, Kind]
    """Distinct identifiers in order of appearance, at most ``Reader.max_ids``."""
    numbers: frozenset[str]
    """Numbers of three and four digits: too common to identify, yet often quoted."""
    counts: dict[str, int]
    """How often each query term occurs."""
    words: int
    """Number of chunks read."""


@dataclass(frozen=True, slots=True)
class Query:
    """Weighted terms of what the agent does next; every weight is positive."""

    goal: dict[str, float] = field(default_factory=dict)
    tail: dict[str, float] = field(default_factory=dict)
    task: dict[str, float] = field(default_factory=dict)

    @property
    def terms(self) -> frozenset[str]:
        """Every term of every part."""
        return frozenset(self.goal) | frozenset(self.tail) | frozenset(self.task)


class Reader:
    """Scans texts; remembers how it classified each distinct chunk, which repeat massively."""

    max_ids = 400

    def __init__(self, query_terms: frozenset[str] = frozenset()) -> None:
        self._wanted = query_terms
        self._known: dict[str, tuple[str, Kind, tuple[str, ...]]] = {}
        self.work = 0
        """Characters read so far; tests bound it."""

    def scan(self, text: str, limit: int) -> Scan:
        """Read at most ``limit`` characters of ``text``, head and end."""
        text = clip(text, limit)
        self.work += len(text)
        chunks = Counter(CHUNK.findall(text))
        ids: dict[str, Kind] = {}
        numbers: set[str] = set()
        counts: dict[str, int] = {}
        for chunk, times in chunks.items():
            name, kind, hits = self._known.get(chunk) or self._learn(chunk)
            if kind is not Kind.WORD:
                if len(ids) < self.max_ids:
                    ids[name] = kind
            elif 3 <= len(name) <= 4 and name.isdigit():
                numbers.add(name)
            for hit in hits:
                counts[hit] = counts.get(hit, 0) + times
        return Scan(ids, frozenset(numbers), counts, sum(chunks.values()))

    def _learn(self, chunk: str) -> tuple[str, Kind, tuple[str, ...]]:
        name = trim(chunk)
        hits = tuple(t for t in terms(chunk) if t in self._wanted) if self._wanted else ()
        entry = (name, classify(name), hits)
        if len(self._known) < 500_000:  # bounds memory on endless distinct tokens
            self._known[chunk] = entry
        return entry


def weigh_terms(text: str, rarity: Mapping[str, float], limit: int) -> dict[str, float]:
    """Distinct terms of a text with their rarity; at most 400, the rarest first."""
    found = {t for chunk in set(CHUNK.findall(clip(text, limit))) for t in terms(chunk)}
    default = max(rarity.values(), default=1.0)
    ranked = sorted(found, key=lambda t: (-rarity.get(t, default), t))[:400]
    return {t: rarity.get(t, default) for t in ranked}


def rarity_of(texts: Iterable[str], limit: int) -> dict[str, float]:
    """Inverse document frequency of the terms of the conversation's texts.

    Tool outputs are left out on purpose: what one output says must not move another's score.
    """
    seen: Counter[str] = Counter()
    total = 0
    for text in texts:
        total += 1
        seen.update({t for chunk in set(CHUNK.findall(clip(text, limit))) for t in terms(chunk)})
    return {t: math.log(1 + (total + 1) / (n + 0.5)) for t, n in seen.items()}


def overlap(weights: Mapping[str, float], scan: Scan, typical_words: float = 300.0) -> float:
    """BM25 of a scanned text for a weighted query, as a share of the best possible, in [0, 1]."""
    total = sum(weights.values())
    if not total:
        return 0.0
    slow = _SATURATION * (0.4 + 0.6 * min(scan.words / typical_words, 4.0))
    got = sum(weights[t] * n / (n + slow) for t, n in scan.counts.items() if t in weights)
    return min(1.0, got / total)


def input_fields(raw: str) -> dict[str, object] | None:
    """The input as an object; None where it is not the whole JSON object."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def known_fields(raw: str) -> dict[str, object]:
    """The text fields that a shortened input still shows whole; later ones win, as in JSON."""
    found: dict[str, object] = {}
    for key, value in _FIELD.findall(raw[:6_000]):
        try:
            found[key] = json.loads(f'"{value}"')
        except ValueError:
            continue
    return {k: v for k, v in found.items() if isinstance(v, str) and "…" not in v}


def input_text(fields: dict[str, object] | None, raw: str) -> str:
    """The strings of an input, one per line; the raw text where it is not JSON."""
    if fields is None:
        return raw.replace("\\n", "\n").replace('\\"', '"')
    lines: list[str] = []
    todo: list[object] = [fields]
    while todo and len(lines) < 2_000:
        value = todo.pop()
        if isinstance(value, str):
            lines.append(value)
        elif isinstance(value, dict):
            todo.extend(reversed(value.values()))
        elif isinstance(value, list):
            todo.extend(reversed(value))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            lines.append(repr(value))
    return "\n".join(lines)
