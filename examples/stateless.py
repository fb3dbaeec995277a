"""One history in, one proposal out: no agent, no key, no network."""

import asyncio

from agentscope_compaction import CompactionOptions, CompactionRequest, compact_context
from agentscope_compaction.testing import HistoryBuilder


def history() -> list[dict[str, object]]:
    """An invented session; yours is ``[m.model_dump(mode="json") for m in your_messages]``."""
    page = "The shop opens at nine and closes at six, on market days at four. " * 40
    builder = HistoryBuilder().user("When does the shop open, and why do refunds fail?")
    builder.call("WebFetch", {"url": "https://shop.example.com/hours"}, page)
    builder.call("WebFetch", {"url": "https://shop.example.com/hours"}, page)
    builder.call("Grep", {"pattern": "def refund"}, "refunds.py:42: def refund(order_id):")
    builder.say("It opens at nine. The refund code is at refunds.py:42.")
    return builder.user("Fix the refund in refunds.py:42").messages


async def main() -> None:
    """Propose, look, and take the new history or leave it."""
    request = CompactionRequest(
        messages=history(),
        goal="Fix the refund bug at refunds.py:42",
        eligible_tool_names=["WebFetch", "Grep"],
        options=CompactionOptions.for_agents(preserve_recent_calls=0),
    )
    proposal = await compact_context(request)
    for decision in proposal.decisions:
        print(decision.id, decision.tool_name, decision.action, decision.reason)
    print(proposal.stats["chars_before"], "->", proposal.stats["chars_after"], "characters")


if __name__ == "__main__":
    asyncio.run(main())
