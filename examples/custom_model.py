"""A decision model of your own: any async function with AgentScope's classifier signature."""

import asyncio
from collections.abc import Mapping
from typing import Any

from agentscope.classifier import BinaryAnswer, BinaryQuestion, ClassifierResponse

from agentscope_compaction import compact_context
from agentscope_compaction.testing import HistoryBuilder


async def newest_half(
    state: dict[str, Any], questions: Mapping[str, BinaryQuestion]
) -> ClassifierResponse:
    """Keep the newer half of the calls; question ids are ``call_t1``, ``result_t1``, ..."""
    calls = list(state["calls"])
    newer = set(calls[len(calls) // 2 :])
    answers = {q: BinaryAnswer(float(q.partition("_")[2] in newer)) for q in questions}
    return ClassifierResponse(model="newest-half", content=dict(answers))


async def main() -> None:
    """Ask it about six readings of a file each."""
    builder = HistoryBuilder().user("Read the chapters")
    for chapter in range(1, 7):
        builder.reply().call("Read", {"path": f"chapter{chapter}.md"}, f"Chapter {chapter}. " * 50)
    request = {
        "messages": builder.user("Summarise the last chapters").messages,
        "goal": "Summarise chapters 4 to 6",
        "eligible_tool_names": ["Read"],
        "options": {"preserve_recent_messages": 1},
    }
    proposal = await compact_context(request, decision_model=newest_half)
    for decision in proposal.decisions:
        print(decision.id, decision.action, f"{decision.chars_before} -> {decision.chars_after}")


if __name__ == "__main__":
    asyncio.run(main())
