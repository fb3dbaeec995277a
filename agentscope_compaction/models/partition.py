"""Divide questions into requests without parting ``call_x`` from ``result_x``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["halves_of", "pairs_of", "parts"]


def pairs_of(questions: dict[str, Any]) -> list[list[str]]:
    """Question ids grouped so that ``call_x`` and ``result_x`` stay together, in order."""
    groups: dict[str, list[str]] = {}
    for name in questions:
        kind, _, rest = name.partition("_")
        groups.setdefault(f"_{rest}" if kind in ("call", "result") else name, []).append(name)
    return list(groups.values())


def parts(questions: dict[str, Any], limit: int | None) -> Iterator[dict[str, Any]]:
    """Split into requests of at most ``limit`` questions without parting a pair."""
    part: list[str] = []
    for pair in pairs_of(questions):
        if limit is not None and part and len(part) + len(pair) > limit:
            yield _pick(questions, part)
            part = []
        part += pair
    yield _pick(questions, part)


def halves_of(questions: dict[str, Any]) -> list[dict[str, Any]]:
    """Split into two requests; one when there is a single pair."""
    pairs = pairs_of(questions)
    middle = (len(pairs) + 1) // 2
    halves = (pairs[:middle], pairs[middle:])
    return [_pick(questions, [name for pair in half for name in pair]) for half in halves if half]


def _pick(questions: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """These questions, in the order of all."""
    wanted = set(names)
    return {name: question for name, question in questions.items() if name in wanted}
