"""Archive histories in PostgreSQL, so that agents on many machines share one archive.

Set AGENTSCOPE_COMPACTION_ARCHIVE to ``postgresql+asyncpg://user:password@host/database`` (extra
``postgres``); without it the same code runs on an archive in memory.
"""

from __future__ import annotations

import asyncio
import os

from agentscope_compaction import CompactionOptions, Compactor, archive_from_url
from agentscope_compaction.testing import HistoryBuilder, ScriptedDecisionModel


async def main() -> None:
    """Archive, propose, and look up what was cut."""
    history = HistoryBuilder().user("Which host serves the shop?")
    for number in range(12):
        history.call("Bash", {"command": f"dig host-{number}.example.com"}, "answer section\n" * 90)
    async with archive_from_url(os.environ.get("AGENTSCOPE_COMPACTION_ARCHIVE", "memory:")) as kept:
        compactor = Compactor(
            ScriptedDecisionModel({"call": 0.9, "result": 0.02}),
            archive=kept,
            options=CompactionOptions.for_agents(require_signal=False),
            eligible_tool_names=["Bash"],
        )
        proposal = await compactor.propose(
            history.messages, goal="Move the shop to host-3", session_id="example"
        )
        print(proposal.reason, proposal.stats["chars_before"], "->", proposal.stats["chars_after"])
        assert proposal.archive_ref is not None
        original = await kept.load(proposal.archive_ref)
        print("archived messages:", len(original), "identical:", original == history.messages)
        print("snapshots removed again:", await kept.delete("example"))


if __name__ == "__main__":
    asyncio.run(main())
