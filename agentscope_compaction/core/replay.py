"""Apply some of a proposal's decisions to the archived original, later and elsewhere.

Everything a proposal edits is a pure function of original, options and decisions, so a stored
proposal needs no copy of its messages.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from agentscope_compaction.core.dedupe import find_duplicates
from agentscope_compaction.core.options import CompactionOptions
from agentscope_compaction.core.pairing import find_pairs
from agentscope_compaction.core.rebuild import Edit
from agentscope_compaction.core.stubs import Recovery, stub_text
from agentscope_compaction.core.types import Action, CallDecision, DecisionReason, JSONObject

__all__ = ["edits_of"]


def edits_of(
    messages: Sequence[JSONObject],
    decisions: Sequence[CallDecision],
    options: CompactionOptions,
    source_refs: Mapping[str, str],
    chosen: Collection[str] | None = None,
) -> dict[str, Edit]:
    """Return the edits of the decisions that act, by decision id.

    Args:
        messages: The original snapshot.
        decisions: The proposal's decisions.
        options: The options it was made with.
        source_refs: The references its stubs name.
        chosen: Decision ids to apply; None = all.
    """
    pairing = find_pairs(messages, options.reused_ids)
    pairs = {pair.id: pair for pair in pairing.pairs}
    holders = find_duplicates(pairing.pairs, {})
    edits: dict[str, Edit] = {}
    for decision in decisions:
        acts = decision.applied and decision.action is not Action.KEEP
        if not acts or (chosen is not None and decision.id not in chosen):
            continue
        pair = pairs[decision.id]
        if decision.action is Action.DROP_CALL:
            edits[decision.id] = Edit(pair, None)
            continue
        duplicate = decision.reason is DecisionReason.DUPLICATE
        recovery = Recovery(
            call_id=pair.call_id,
            source_ref=source_refs.get(pair.call_id),
            holder=holders[pair.id].call_id if duplicate else None,
        )
        edits[decision.id] = Edit(pair, stub_text(pair.text or "", recovery, options))
    return edits
