"""What the tests of ``compact_context`` share: a history of one long reply, and its proposal."""

from __future__ import annotations

from typing import Any

from agentscope_compaction import CompactionProposal, compact_context
from agentscope_compaction.testing import HistoryBuilder, ScriptedDecisionModel


def history(calls: int = 3, size: int = 2_000) -> HistoryBuilder:
    """A task, some calls in one reply, a text, and six closing messages."""
    builder = HistoryBuilder().user("Fix the retry bug").think("where is it?").say("I look.")
    for n in range(calls):
        builder.call("Read", {"path": f"src/{n}.py"}, f"{n}:" + "x" * size, f"c{n}")
    builder.say("Now I know.")
    for n in range(6):
        builder.user(f"go on {n}")
    return builder


async def propose(
    request: Any, answers: Any = 0.0, **arguments: Any
) -> tuple[CompactionProposal, ScriptedDecisionModel]:
    """Ask a scripted model for a proposal."""
    model = ScriptedDecisionModel(answers)
    return await compact_context(request, decision_model=model, **arguments), model
