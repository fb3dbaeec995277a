"""A decorated agent class whose own method decides which outputs may be cut.

Runs offline: a scripted chat model, the embedded decision model, a temporary archive.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from agentscope.agent import Agent, InjectionConfig
from agentscope.message import UserMsg
from agentscope.tool import FunctionTool, Toolkit

from agentscope_compaction import (
    CompactionMixin,
    CompactionOptions,
    CompactionProposal,
    Compactor,
    SqlArchive,
    with_compaction,
)
from agentscope_compaction.testing.chat import ScriptedChatModel, say, use


def read_log(day: int) -> Any:
    """Read the log of a day."""
    return "\n".join(f"day {day}, line {n}: request served" for n in range(150))


async def main() -> None:
    """Let an agent read logs until its window fills up."""
    with tempfile.TemporaryDirectory() as folder:
        async with SqlArchive(str(Path(folder) / "archive.db")) as archive:
            options = CompactionOptions.for_agents(preserve_recent_calls=2, require_signal=False)
            compactor = Compactor(None, archive, options, ["read_log"])

            @with_compaction(compactor, trigger_ratio=0.5, target_ratio=0.3)
            class LogReader(CompactionMixin):
                def review_compaction(self, proposal: CompactionProposal) -> list[str]:
                    """Accept cuts, but never of the first day's log."""
                    acting = [d for d in proposal.decisions if d.action != "keep"]
                    accepted = [d.id for d in acting if d.call_id != "day-0"]
                    print(f"accepting {len(accepted)} of {len(acting)} proposed cuts")
                    return accepted

            turns = [[use("read_log", f"day-{day}", day=day)] for day in range(8)]
            agent: Agent = LogReader(
                name="reader",
                system_prompt="You read logs.",
                model=ScriptedChatModel([*turns, [say("Nothing unusual.")]], context_size=12_000),
                toolkit=Toolkit(tools=[FunctionTool(read_log, is_read_only=True)]),
                injection_config=InjectionConfig(inject_runtime_state=False),
            )
            answer = await agent.reply(UserMsg(name="user", content="Was there anything unusual?"))
            print(answer.get_text_content())
            blocks = [block for message in agent.state.context for block in message.content]
            results = [block for block in blocks if block.type == "tool_result"]
            cut = [block.id for block in results if "compaction" in block.metadata]
            print(f"{len(cut)} of {len(results)} outputs are cut: {', '.join(cut)}")


if __name__ == "__main__":
    asyncio.run(main())
