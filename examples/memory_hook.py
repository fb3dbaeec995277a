"""The memory hook: a plain agent that compacts while it works and recalls what it needs again.

Runs offline: scripted chat and decision models, a temporary archive.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from agentscope.agent import Agent, InjectionConfig
from agentscope.message import UserMsg
from agentscope.tool import FunctionTool, Toolkit

from agentscope_compaction import (
    CompactionMiddleware,
    CompactionOptions,
    Compactor,
    SqlArchive,
    accept_if,
)
from agentscope_compaction.testing import ScriptedDecisionModel
from agentscope_compaction.testing.chat import ScriptedChatModel, say, use


def search(query: str) -> Any:
    """Search the documents."""
    return "\n".join(f"{query}: hit {n} in document {n % 7}" for n in range(150))


async def main() -> None:
    """Let an agent search until outputs must go, then ask one of them back."""
    with tempfile.TemporaryDirectory() as folder:
        async with SqlArchive(str(Path(folder) / "archive.db")) as archive:
            options = CompactionOptions.for_agents(preserve_recent_calls=2, require_signal=False)
            judge = ScriptedDecisionModel({"call": 0.9, "result": 0.05})
            compactor = Compactor(judge, archive, options, ["search"])
            hook = CompactionMiddleware(
                compactor, accept_if(min_saved_ratio=0.1), trigger_ratio=0.5, target_ratio=0.3
            )
            turns = [[use("search", f"s{n}", query=f"topic {n}")] for n in range(8)]
            recall = [use("recall_tool_output", "back", call_id="s0", pattern="hit 99")]
            agent = Agent(
                name="searcher",
                system_prompt="You search.",
                model=ScriptedChatModel(
                    [*turns, recall, [say("Hit 99 is in document 1.")]], context_size=12_000
                ),
                # Only AgentScope's service adds a middleware's tools by itself.
                toolkit=Toolkit(
                    tools=[FunctionTool(search, is_read_only=True), *await hook.list_tools()]
                ),
                middlewares=[hook],
                injection_config=InjectionConfig(inject_runtime_state=False),
            )
            answer = await agent.reply(UserMsg(name="user", content="Where is hit 99 of topic 0?"))
            print(answer.get_text_content())
            blocks = [block for message in agent.state.context for block in message.content]
            results = {block.id: block for block in blocks if block.type == "tool_result"}
            cut = [name for name, block in results.items() if "compaction" in block.metadata]
            print(f"cut: {', '.join(cut)}")
            for entry in reversed(await archive.list()):
                kinds = [record.outcome.kind for record in await archive.history(entry.ref)]
                print(f"archived {entry.chars} characters: {', '.join(kinds)}")


if __name__ == "__main__":
    asyncio.run(main())
