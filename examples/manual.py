"""By hand: propose, look, accept a part, accept the rest, restore.

Runs offline: scripted chat and decision models, a temporary archive.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from agentscope.agent import InjectionConfig
from agentscope.message import UserMsg
from agentscope.tool import FunctionTool, Toolkit

from agentscope_compaction import (
    CompactionMixin,
    CompactionOptions,
    Compactor,
    SqlArchive,
    with_compaction,
)
from agentscope_compaction.testing import ScriptedDecisionModel
from agentscope_compaction.testing.chat import ScriptedChatModel, say, use


def read_file(path: str) -> Any:
    """Read a file."""
    return "\n".join(f"{path}:{n}: value = {n}" for n in range(120))


async def main() -> None:
    """Compact a finished reply by hand."""
    with tempfile.TemporaryDirectory() as folder:
        async with SqlArchive(str(Path(folder) / "archive.db")) as archive:
            options = CompactionOptions.for_agents(preserve_recent_calls=1, require_signal=False)
            judge = ScriptedDecisionModel({"call": 0.9, "result": 0.05})
            compactor = Compactor(judge, archive, options, ["read_file"])

            @with_compaction(compactor, before_reply=False, during_reply=False)
            class Coder(CompactionMixin):
                pass

            turns = [[use("read_file", f"r{n}", path=f"module_{n}.py")] for n in range(4)]
            agent = Coder(
                name="coder",
                system_prompt="You code.",
                model=ScriptedChatModel([*turns, [say("All modules read.")]]),
                toolkit=Toolkit(tools=[FunctionTool(read_file, is_read_only=True)]),
                injection_config=InjectionConfig(inject_runtime_state=False),
            )
            await agent.reply(UserMsg(name="user", content="Read the modules."))
            before = [message.model_dump() for message in agent.state.context]

            proposal = await agent.propose_compaction(goal="Write the release notes.")
            for decision in proposal.decisions:
                print(f"{decision.id} {decision.call_id}: {decision.action} ({decision.reason})")
            stats = proposal.stats
            print(f"tokens: {stats['tokens_before']} -> {stats['tokens_after']}")

            acting = [d.id for d in proposal.decisions if d.action != "keep"]
            print("accepted:", await agent.accept_compaction(proposal, calls=acting[:1]))
            print("accepted:", await agent.accept_compaction(proposal))
            print("again:", await agent.accept_compaction(proposal))
            print("restored:", await agent.restore_compaction(proposal))
            after = [message.model_dump() for message in agent.state.context]
            print("as before:", before == after)


if __name__ == "__main__":
    asyncio.run(main())
