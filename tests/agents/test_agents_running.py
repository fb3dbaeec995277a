"""Compacting an agent that is at work, or goes on to work, disturbs none of its calls."""

from __future__ import annotations

from typing import Any

import pytest
from agentscope.agent import Agent
from agentscope.message import ToolCallBlock, ToolCallState
from agentscope.tool import FunctionTool

from agentscope_compaction import with_compaction
from agentscope_compaction.testing.chat import use

pytestmark = pytest.mark.anyio


async def test_open_calls_are_untouched_and_accepting_goes_on(lab: Any) -> None:
    """A call that runs or waits keeps its place and state while a proposal is accepted."""
    agent = await lab.worked()
    waiting = ToolCallBlock(id="ask", name="look", input='{"page": 9}', state=ToolCallState.ASKING)
    agent.state.context[-1].content.append(waiting)
    proposal = await agent.propose_compaction(goal="sum up")
    assert "ask" not in {d.call_id for d in proposal.decisions}
    await agent.accept_compaction(proposal)
    assert agent.state.context[-1].content[-1] is waiting
    assert agent.state.has_awaiting_tool_calls("worker")


@pytest.mark.parametrize("removing", [False, True])
async def test_a_tool_of_the_agent_may_compact_it(lab: Any, removing: bool) -> None:
    """The call that compacts, and any beside it, keep their places and get their results."""
    agents: list[Any] = []

    async def tidy() -> Any:
        """Compact the context."""
        proposal = await agents[0].propose_compaction(goal="go on")
        return f"cut {len(await agents[0].accept_compaction(proposal))}"

    judge = lab.remover() if removing else None
    compactor = lab.compactor(judge, preserve_recent_calls=0)
    compactor.eligible_tool_names = ("look", "tidy")
    cls = with_compaction(compactor, before_reply=False, during_reply=False)(Agent)
    together = [use("look", "beside", page=8), use("tidy", "k"), use("look", "after", page=9)]
    turns = [*lab.turns(3), together, *lab.script(2, "d", 50)]
    tool = FunctionTool(tidy, name="tidy", is_read_only=True)
    agents.append(lab.agent(turns, cls=cls, tools=[tool]))
    answer = await agents[0].reply(lab.user("look, tidy up, look"))
    assert answer.get_text_content() == "done d"
    assert set(lab.runs.values()) == {1} and len(lab.runs) == 7
    assert set(lab.cut(agents[0])) >= {"c0", "c1", "c2"}
    blocks = [block for message in agents[0].state.context for block in message.content]
    calls = [block.id for block in blocks if block.type == "tool_call"]
    assert calls == ["c0", "c1", "c2", "beside", "k", "after", "d0", "d1"]
    assert sorted(calls) == sorted(lab.results(agents[0]))


async def test_the_agent_keeps_running(lab: Any) -> None:
    """After an acceptance the next reply runs its two calls once and ends."""
    agent = await lab.worked()
    await agent.accept_compaction(await agent.propose_compaction(goal="sum up"))
    answer = await agent.reply(lab.user("go on"))
    assert answer.get_text_content() == "done d"
    assert set(lab.runs.values()) == {1}
    assert len(agent.model.calls) == 10


async def test_removal_is_refused_in_a_running_reply(lab: Any) -> None:
    """Within the running reply a removal becomes a cut."""
    seen: list[Any] = []

    class Watcher(Agent):
        async def compress_context(self, *args: Any, **kwargs: Any) -> None:
            if len(self.model.calls) == 4:  # type: ignore[attr-defined]
                seen.append(await self.propose_compaction(goal="go on"))  # type: ignore[attr-defined]
                await self.accept_compaction(seen[0])  # type: ignore[attr-defined]
            await super().compress_context(*args, **kwargs)

    cls = with_compaction(lab.compactor(lab.remover()), during_reply=False)(Watcher)
    agent = lab.agent(lab.script(6), cls=cls)
    await agent.reply(lab.user("look"))
    done = [d for d in seen[0].decisions if d.action != "keep"]
    assert {(d.action, d.reason) for d in done} == {("drop_result", "removal_unsafe")}
    assert lab.cut(agent) == ["c0", "c1", "c2"]
    assert set(lab.runs.values()) == {1} and len(lab.runs) == 6
