"""Where a saved history is cut, as if compaction had happened there.

A cut stands where all calls made so far have their results. A user message nearby wins, because
the goal is then known best; otherwise it is the first such place at or after the wanted share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentscope_compaction.core.pairing import Spot
from agentscope_compaction.core.types import JSONObject

__all__ = ["Cut", "choose_cuts"]

_NEARBY = 0.1
"""Share of all calls by which a user message may lie off the wanted place."""
_NO_GOAL = "Continue the task."


@dataclass(frozen=True, slots=True)
class Cut:
    """One history in two parts."""

    past: list[JSONObject]
    """What a compactor would be given."""
    future: list[JSONObject]
    """What really happened next."""
    goal: str
    """Text of the newest user message before the cut."""
    share: float
    """Share of the calls that lie before the cut."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A legal cut: the first block after it, and the calls done before."""

    spot: Spot
    done: int
    after_user: bool


def choose_cuts(messages: Sequence[JSONObject], shares: Sequence[float]) -> list[Cut]:
    """Cut a history near each share of its calls.

    Args:
        messages: The whole history, as message objects.
        shares: Wanted shares of calls before the cut, each in (0, 1).

    Returns:
        Distinct cuts in history order, each with a call before and a block after it; fewer than
        ``shares`` where the history is too short, none without calls.
    """
    places = list(_places(messages))
    total = sum(block.get("type") == "tool_result" for _, _, block in _blocks(messages))
    inner = [place for place in places if 0 < place.done < total]
    chosen = {place.spot: place for s in shares if (place := _nearest(inner, s * total, total))}
    return [_cut(messages, place, total) for _, place in sorted(chosen.items())]


def _blocks(messages: Sequence[JSONObject]) -> Iterator[tuple[int, int, JSONObject]]:
    for mi, message in enumerate(messages):
        for bi, block in enumerate(message["content"]):
            yield mi, bi, block


def _places(messages: Sequence[JSONObject]) -> Iterator[_Place]:
    opened, done = 0, 0
    after_user = False
    for mi, bi, block in _blocks(messages):
        kind = block.get("type")
        # A result still belongs to what came before it; a user's blocks are not torn apart.
        torn = messages[mi]["role"] == "user" and bi > 0
        if opened == done and kind != "tool_result" and not torn:
            yield _Place((mi, bi), done, after_user)
        opened += kind == "tool_call"
        done += kind == "tool_result"
        after_user = messages[mi]["role"] == "user"


def _nearest(places: Sequence[_Place], wanted: float, total: int) -> _Place | None:
    near = [p for p in places if p.after_user and abs(p.done - wanted) <= _NEARBY * total]
    if near:
        return min(near, key=lambda place: (abs(place.done - wanted), place.spot))
    return next((place for place in places if place.done >= wanted), None)


def _cut(messages: Sequence[JSONObject], place: _Place, total: int) -> Cut:
    mi, bi = place.spot
    past, future = list(messages[:mi]), list(messages[mi:])
    if bi:
        message = messages[mi]
        past.append({**message, "content": message["content"][:bi]})
        future[0] = {**message, "content": message["content"][bi:]}
    return Cut(past, future, _goal(past), place.done / total)


def _goal(past: Sequence[JSONObject]) -> str:
    for message in reversed(past):
        if message["role"] == "user":
            texts = [str(b["text"]) for b in message["content"] if b.get("type") == "text"]
            if text := "\n".join(texts).strip():
                return text
    return _NO_GOAL
