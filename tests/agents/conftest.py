"""A small laboratory: real agents with a scripted chat model, and a compactor that cuts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from agentscope.agent import Agent, ContextConfig, InjectionConfig, ReActConfig
from agentscope.message import Msg, UserMsg
from agentscope.state import AgentState
from agentscope.tool import FunctionTool, Toolkit

from agentscope_compaction import CompactionOptions, Compactor, InMemoryArchive, with_compaction
from agentscope_compaction.testing import ScriptedDecisionModel
from agentscope_compaction.testing.chat import ScriptedChatModel, Turn, say, use

CUT = {"call": 0.9, "result": 0.0}
REMOVE = {"call": 0.0, "result": 0.0}


class Lab:
    """Builds agents and compactors over one archive in memory."""

    def __init__(self) -> None:
        self.archive = InMemoryArchive()
        self.runs: Counter[int] = Counter()
        self.judge = ScriptedDecisionModel(CUT)

    def page(self, number: int) -> str:
        """What the tool ``look`` shows: 3,000 characters with one fact in the middle."""
        filler = f"line of page {number}\n" * 90
        return f"{filler}the code of page {number} is {number * 7919}\n{filler}"

    def tool(self) -> FunctionTool:
        """Return the tool."""

        def look(page: int) -> Any:
            """Show a page."""
            self.runs[page] += 1
            return self.page(page)

        return FunctionTool(look, name="look", is_read_only=True)

    def turns(self, count: int, prefix: str = "c", start: int = 0) -> list[Turn]:
        """Return ``count`` turns of one call each."""
        return [[use("look", f"{prefix}{n}", page=start + n)] for n in range(count)]

    def script(self, count: int, prefix: str = "c", start: int = 0) -> list[Turn]:
        """Return the turns of a whole reply: calls, then a text."""
        return [*self.turns(count, prefix, start), [say(f"done {prefix}")]]

    def compactor(self, judge: Any = None, **options: Any) -> Compactor:
        """Return a compactor that cuts all but the newest call."""
        given = {"preserve_recent_calls": 1, "require_signal": False, **options}
        return Compactor(
            judge if judge is not None else self.judge,
            self.archive,
            CompactionOptions.for_agents(**given),
            ["look"],
        )

    def agent(
        self,
        turns: Sequence[Turn],
        *,
        cls: type[Agent] = Agent,
        state: AgentState | None = None,
        middlewares: list[Any] | None = None,
        tools: Sequence[Any] = (),
        context_size: int = 1_000_000,
        system_prompt: str = "You work.",
        **model: Any,
    ) -> Any:
        """Return an agent."""
        return cls(
            name="worker",
            system_prompt=system_prompt,
            model=ScriptedChatModel(turns, context_size=context_size, **model),
            toolkit=Toolkit(tools=[self.tool(), *tools]),
            middlewares=middlewares,
            state=state,
            context_config=ContextConfig(),
            react_config=ReActConfig(max_iters=200),
            injection_config=InjectionConfig(inject_runtime_state=False),
        )

    async def worked(self, count: int = 6, judge: Any = None, **options: Any) -> Any:
        """Return a decorated agent that made ``count`` calls in one reply and finished it."""
        compactor = self.compactor(judge, **options)
        cls = with_compaction(compactor, before_reply=False, during_reply=False)(Agent)
        agent = self.agent([*self.script(count), *self.script(2, "d", 50)], cls=cls)
        await agent.reply(self.user("look at the pages"))
        return agent

    def user(self, text: str) -> Msg:
        """Return a user message."""
        return UserMsg(name="user", content=text)

    def remover(self) -> ScriptedDecisionModel:
        """Return a judge that finds no call worth keeping."""
        return ScriptedDecisionModel(REMOVE)

    def dump(self, agent: Any) -> list[dict[str, Any]]:
        """Return the agent's context as JSON."""
        return [message.model_dump(mode="json") for message in agent.state.context]

    def results(self, agent: Any) -> dict[str, Any]:
        """Return the live results by call id."""
        blocks = [b for m in agent.state.context for b in m.content]
        return {b.id: b for b in blocks if b.type == "tool_result"}

    def cut(self, agent: Any) -> list[str]:
        """Return ids of the results that were cut."""
        return [i for i, block in self.results(agent).items() if "compaction" in block.metadata]

    async def kinds(self, ref: str) -> list[str]:
        """Return the kinds of outcomes recorded about a snapshot."""
        return [str(record.outcome.kind) for record in await self.archive.history(ref)]


@pytest.fixture
def lab() -> Lab:
    """A laboratory."""
    return Lab()
