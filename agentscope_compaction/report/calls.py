"""What the report shows of each call: its fate, and its output before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from agentscope_compaction.core.jsontext import compact, digest
from agentscope_compaction.core.options import ReusedIds
from agentscope_compaction.core.pairing import Pair, find_pairs
from agentscope_compaction.core.types import (
    Action,
    CallDecision,
    CompactionProposal,
    CompactionRequest,
    JSONObject,
)
from agentscope_compaction.errors import InvalidSnapshotError

__all__ = ["Call", "Fate", "calls_of"]


class Fate(StrEnum):
    """What becomes of a call; a stub that would not be shorter leaves it as it is."""

    KEEP = "keep"
    CUT = "drop_result"
    REMOVE = "drop_call"
    NOT_SHORTER = "not_shorter"


@dataclass(frozen=True, slots=True)
class Call:
    """One decision with the texts it is about; None where the report was not given them."""

    decision: CallDecision
    fate: Fate
    arguments: str | None
    before: str | None
    after: str | None

    @property
    def changes(self) -> bool:
        """Whether accepting it changes the history."""
        return self.fate in (Fate.CUT, Fate.REMOVE)


def calls_of(proposal: CompactionProposal, request: CompactionRequest | None) -> list[Call]:
    """Return every decision with its texts, in history order.

    Raises:
        InvalidSnapshotError: The request holds another history than the one proposed about.
    """
    reused = _reused_ids(proposal, request)
    kept = [d for d in proposal.decisions if d.action is not Action.DROP_CALL]
    after = _matched(kept, proposal.messages, reused)
    before: Mapping[str, Pair] = {}
    if request is not None:
        if digest(compact(request.messages)) != proposal.snapshot_digest:
            raise InvalidSnapshotError("the request is not the one this proposal was made for")
        before = _matched(proposal.decisions, request.messages, reused)
    return [_call(d, before.get(d.id), after.get(d.id)) for d in proposal.decisions]


def _call(decision: CallDecision, before: Pair | None, after: Pair | None) -> Call:
    known = before or after
    raw = known.call.get("input") if known else None
    return Call(
        decision=decision,
        fate=_fate(decision),
        arguments=raw if isinstance(raw, str) else None,
        before=before.text if before else None,
        after=after.text if after else None,
    )


def _fate(decision: CallDecision) -> Fate:
    if not decision.applied:
        return Fate.NOT_SHORTER
    return Fate(decision.action.value)


def _matched(
    decisions: Sequence[CallDecision], messages: Sequence[JSONObject], reused: ReusedIds
) -> dict[str, Pair]:
    """Pairs by decision id; nothing at all when the two do not go together."""
    pairs = find_pairs(messages, reused).pairs
    if [d.call_id for d in decisions] != [pair.call_id for pair in pairs]:
        return {}
    return dict(_zipped(decisions, pairs))


def _zipped(decisions: Sequence[CallDecision], pairs: Sequence[Pair]) -> Iterator[tuple[str, Pair]]:
    for decision, pair in zip(decisions, pairs, strict=True):
        yield decision.id, pair


def _reused_ids(proposal: CompactionProposal, request: CompactionRequest | None) -> ReusedIds:
    if request is not None:
        return request.options.reused_ids
    options = proposal.stats.get("options")
    named = options.get("reused_ids") if isinstance(options, Mapping) else None
    return ReusedIds.PAIR if named == ReusedIds.PAIR.value else ReusedIds.KEEP
