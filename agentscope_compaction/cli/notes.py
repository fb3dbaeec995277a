"""What a reader of a proposal should know about who answered, and what left the process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from agentscope_compaction.cli.streams import command_line, inert
from agentscope_compaction.core.types import CompactionProposal, DecisionReason
from agentscope_compaction.models.ask import is_local
from agentscope_compaction.models.seam import DecisionModel

__all__ = ["STAND_IN", "candidate_notes", "model_notes"]

STAND_IN = (
    "Answered by the embedded model: a lexical stand-in for a real decision model. It knows which "
    "strings come back, not what they mean, and its probabilities are not calibrated. "
    "Nothing left this process."
)
_JEV_CALIBRATED = 0.5


def model_notes(
    proposal: CompactionProposal, model: DecisionModel, options: dict[str, Any]
) -> Iterator[str]:
    """Say how far to trust the answers, and what was sent for them."""
    own_thresholds = options.get("keep_threshold", _JEV_CALIBRATED) is None
    flag = "" if own_thresholds else " --option keep_threshold=null"
    if is_local(model):
        yield STAND_IN
        again = command_line("propose", "...", "--model", "jev")
        yield f"To ask Jev instead: DECISION_MODEL_API_KEY=<your key> {again}{flag}"
        return
    answered = inert(str(proposal.stats["model"] or "nobody"), 60)
    evidence = options.get("evidence_chars", 0)
    outputs = f"up to {evidence} characters of each output" if evidence else "no output text"
    yield (
        f"Answered by {answered}. It was sent the goal, the conversation's texts and the calls' "
        f"inputs, {outputs}; {proposal.stats['redactions']} secrets were blanked out first."
    )
    if not own_thresholds:
        yield (f"Thresholds are not the model's own; Jev keeps almost nothing at 0.5: try{flag}")


def candidate_notes(proposal: CompactionProposal) -> Iterator[str]:
    """Say how to get candidates where there is none."""
    if proposal.stats["candidates"] or not proposal.decisions:
        return
    reasons = Counter(decision.reason for decision in proposal.decisions)
    if reasons[DecisionReason.TOOL_NOT_ELIGIBLE]:
        tools = Counter(
            decision.tool_name
            for decision in proposal.decisions
            if decision.reason is DecisionReason.TOOL_NOT_ELIGIBLE
        )
        names = ", ".join(f"{inert(tool, 60)} ({n})" for tool, n in tools.most_common(12))
        yield f"Only calls of tools named with --tool may be compacted. Tools here: {names}"
    if reasons[DecisionReason.RECENT_MESSAGE] or reasons[DecisionReason.FIRST_MESSAGE]:
        yield (
            "AgentScope keeps a whole reply in one message, so all of it may count as recent: "
            "--for-agents counts calls instead of messages"
        )
