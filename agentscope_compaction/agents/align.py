"""Find a snapshot's blocks again in the live context: compare-and-swap's compare.

A snapshot is a prefix of the live context: messages and blocks may have been appended since, and a
call that was open may have moved on. Anything else that changed makes a proposal stale.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from agentscope_compaction.core.pairing import Spot
from agentscope_compaction.core.types import JSONObject
from agentscope_compaction.errors import StaleProposalError

__all__ = ["Alignment", "align"]

_MOVING = ("state", "finished_at", "suggested_rules")
"""Fields of a call that change while it is carried out."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Where each snapshot message and block stands in the live context; absent = gone."""

    messages: Mapping[int, int]
    blocks: Mapping[Spot, Spot]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What may differ: blocks with another known form, blocks that may be gone, open calls."""

    edited: Mapping[Spot, JSONObject]
    removable: Collection[Spot]
    open_calls: Collection[Spot]
    by_identity: bool = False
    """Match blocks by type and id, and pass over messages that are gone: for undoing."""


def align(
    snapshot: Sequence[JSONObject], live: Sequence[JSONObject], tolerance: Tolerance
) -> Alignment:
    """Align a snapshot with the live context.

    Raises:
        StaleProposalError: Something else than the tolerated changed.
    """
    messages: dict[int, int] = {}
    blocks: dict[Spot, Spot] = {}
    at = 0
    for mi, message in enumerate(snapshot):
        found = _find(mi, message, live, at, tolerance)
        spots = None
        if found is not None:
            grows = mi == len(snapshot) - 1
            spots = _align_blocks(mi, message, live[found], tolerance, grows=grows)
        if found is not None and spots is not None:
            messages[mi] = found
            blocks.update({(mi, bi): (found, place) for bi, place in spots.items()})
            at = found + 1
        elif not tolerance.by_identity and not _may_be_gone(mi, message, tolerance):
            raise StaleProposalError(f"message {mi} of the snapshot changed since the proposal")
    return Alignment(messages, blocks)


def _find(
    mi: int, message: JSONObject, live: Sequence[JSONObject], at: int, tolerance: Tolerance
) -> int | None:
    """Find the live message, at or after a place, that is this message of the snapshot.

    One reply may stand in several messages of the same id (a middleware's message splits it), so
    for undoing the one that holds some of its blocks is meant; none, if all may have gone.
    """
    last = len(live) if tolerance.by_identity else min(at + 1, len(live))
    first: int | None = None
    for index in range(at, last):
        if any(live[index].get(key) != message.get(key) for key in ("id", "role", "name")):
            continue
        if not tolerance.by_identity or _by_identity(message, live[index]):
            return index
        first = index if first is None else first
    return None if _may_be_gone(mi, message, tolerance) else first


def _may_be_gone(mi: int, message: JSONObject, tolerance: Tolerance) -> bool:
    count = len(message["content"])
    return count > 0 and all((mi, bi) in tolerance.removable for bi in range(count))


def _align_blocks(
    mi: int, message: JSONObject, live: JSONObject, tolerance: Tolerance, *, grows: bool
) -> dict[int, int] | None:
    """Place each block; None when they do not fit."""
    if tolerance.by_identity:
        return _by_identity(message, live)
    places: dict[int, int] = {}
    content, at = live["content"], 0
    for bi, block in enumerate(message["content"]):
        spot = (mi, bi)
        if at < len(content) and _same(spot, block, content[at], tolerance):
            places[bi] = at
            at += 1
        elif spot not in tolerance.removable:
            return None
    return places if grows or at == len(content) else None


def _by_identity(message: JSONObject, live: JSONObject) -> dict[int, int]:
    """Place the blocks that are still there; others may be gone, or new ones between them."""
    where: dict[tuple[object, object], list[int]] = {}
    for place, block in enumerate(live["content"]):
        where.setdefault((block.get("type"), block.get("id")), []).append(place)
    places: dict[int, int] = {}
    at = 0
    for bi, block in enumerate(message["content"]):
        known = where.get((block.get("type"), block.get("id")), ())
        found = next((place for place in known if place >= at), None)
        if found is not None:
            places[bi], at = found, found + 1
    return places


def _same(spot: Spot, block: JSONObject, live: JSONObject, tolerance: Tolerance) -> bool:
    if block == live or tolerance.edited.get(spot) == live:
        return True
    if spot in tolerance.open_calls:
        still = {key: value for key, value in block.items() if key not in _MOVING}
        return all(live.get(key) == value for key, value in still.items())
    return False
