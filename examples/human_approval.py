"""A person decides: proposed now, saved, decided later, applied before the next reply.

Runs offline: a scripted chat model, the embedded decision model, a temporary archive.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from agentscope.agent import Agent, InjectionConfig
from agentscope.message import UserMsg
from agentscope.state import AgentState
from agentscope.tool import FunctionTool, Toolkit

from agentscope_compaction import (
    CompactionMiddleware,
    CompactionOptions,
    Compactor,
    SqlArchive,
    decide_pending,
)
from agentscope_compaction.testing.chat import ScriptedChatModel, Turn, say, use

NOTES = "agentscope_compaction"


def read_page(number: int) -> Any:
    """Read a page."""
    return "\n".join(f"page {number}, paragraph {n}" for n in range(200))


def build(archive: SqlArchive, turns: list[Turn], state: AgentState | None = None) -> Agent:
    """Build the agent, as every process of a service would."""
    options = CompactionOptions.for_agents(preserve_recent_calls=1, require_signal=False)
    compactor = Compactor(None, archive, options, ["read_page"])
    return Agent(
        name="reader",
        system_prompt="You read.",
        model=ScriptedChatModel(turns, context_size=8_000),
        toolkit=Toolkit(tools=[FunctionTool(read_page, is_read_only=True)]),
        middlewares=[CompactionMiddleware(compactor, trigger_ratio=0.3, target_ratio=0.2)],
        state=state,
        injection_config=InjectionConfig(inject_runtime_state=False),
    )


async def main() -> None:
    """Play three processes: one proposes, one decides, one applies."""
    with tempfile.TemporaryDirectory() as folder:
        saved, database = Path(folder) / "state.json", str(Path(folder) / "archive.db")

        async with SqlArchive(database) as archive:
            turns: list[Turn] = [[use("read_page", f"p{n}", number=n)] for n in range(4)]
            agent = build(archive, [*turns, [say("Read.")]])
            await agent.reply(UserMsg(name="user", content="Read the pages."))
            saved.write_text(agent.state.model_dump_json(), encoding="utf-8")

        state = AgentState.model_validate_json(saved.read_text(encoding="utf-8"))
        waiting = state.middle_context[NOTES]["pending"]
        print("a proposal waits:", sorted(waiting))
        decide_pending(state, True, proposal_id=waiting["proposal_id"])
        saved.write_text(state.model_dump_json(), encoding="utf-8")

        async with SqlArchive(database) as archive:
            state = AgentState.model_validate_json(saved.read_text(encoding="utf-8"))
            agent = build(archive, [[say("Here is the summary.")]], state)
            answer = await agent.reply(UserMsg(name="user", content="Sum up."))
            print(answer.get_text_content())
            results = [b for b in agent.state.context[1].content if b.type == "tool_result"]
            print("cut:", [b.id for b in results if "compaction" in b.metadata])


if __name__ == "__main__":
    asyncio.run(main())
