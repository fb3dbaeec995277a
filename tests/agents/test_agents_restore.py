"""Restoring by hand brings back the very bytes, whatever was cut or removed."""

from __future__ import annotations

from typing import Any

import pytest
from agentscope.agent import Agent
from agentscope.message import Msg
from agentscope.state import AgentState

from agentscope_compaction import with_compaction
from agentscope_compaction.testing import HistoryBuilder

pytestmark = pytest.mark.anyio


async def test_removal_in_finished_replies_and_back(lab: Any) -> None:
    """Removed pairs go whole, and restoring brings back the very bytes."""
    agent = await lab.worked(judge=lab.remover())
    before = lab.dump(agent)
    proposal = await agent.propose_compaction(goal="sum up")
    await agent.accept_compaction(proposal)
    assert list(lab.results(agent)) == ["c5"]
    await agent.reply(lab.user("go on"))
    assert lab.runs.total() == 8  # nothing ran again
    assert await agent.restore_compaction(proposal) == ("t1", "t2", "t3", "t4", "t5")
    assert lab.dump(agent)[:2] == before
    assert await agent.restore_compaction(proposal) == ()


@pytest.mark.parametrize("removing", [False, True])
@pytest.mark.parametrize("calls", [None, ["t1", "t4"]])
async def test_restore_in_a_new_process(lab: Any, removing: bool, calls: Any) -> None:
    """With only the archive and the saved state, the old context comes back byte for byte."""
    agent = await lab.worked(judge=lab.remover() if removing else None)
    before = lab.dump(agent)
    await agent.accept_compaction(await agent.propose_compaction(goal="sum up"), calls=calls)
    assert lab.dump(agent) != before
    state = AgentState.model_validate_json(agent.state.model_dump_json())
    fresh = lab.agent([], cls=with_compaction(lab.compactor())(Agent), state=state)
    assert await fresh.restore_compaction() == tuple(calls or ("t1", "t2", "t3", "t4", "t5"))
    assert lab.dump(fresh) == before


@pytest.mark.parametrize("removing", [False, True])
@pytest.mark.parametrize("cuts", [(1, 2), (2, 4), (3, 7), (5, 6), (4, 8), (10, 11)])
async def test_a_reply_in_several_messages_of_one_id(
    lab: Any, removing: bool, cuts: tuple[int, int]
) -> None:
    """Where a middleware's message splits a reply, its parts are told apart and come back."""
    agent = await lab.worked(judge=lab.remover() if removing else None)
    task, whole = agent.state.context
    agent.state.context = [task]
    for start, end in ((0, cuts[0]), (cuts[0], cuts[1]), (cuts[1], None)):
        part = whole.model_copy(update={"content": whole.content[start:end]})
        agent.state.context += [part, lab.user("by the way")]
    before = lab.dump(agent)
    proposal = await agent.propose_compaction(goal="sum up")
    assert await agent.accept_compaction(proposal, calls=["t1", "t3"]) == ("t1", "t3")
    assert await agent.accept_compaction(proposal) == ("t2", "t4", "t5")
    assert await agent.accept_compaction(proposal) == ()
    assert await agent.restore_compaction(proposal) == ("t1", "t2", "t3", "t4", "t5")
    assert lab.dump(agent) == before
    assert await agent.restore_compaction(proposal) == ()


async def test_restore_passes_over_what_left_the_context(lab: Any) -> None:
    """Where the host dropped part of a message since, the rest is still restored."""
    agent = await lab.worked()
    proposal = await agent.propose_compaction(goal="sum up")
    await agent.accept_compaction(proposal)
    del agent.state.context[1].content[:4]
    assert await agent.restore_compaction(proposal) == ("t3", "t4", "t5")
    assert lab.cut(agent) == []


async def test_two_passes_and_back(lab: Any) -> None:
    """Stubs are not judged again, and passes are undone one by one."""
    agent = await lab.worked()
    first = lab.dump(agent)
    await agent.accept_compaction(await agent.propose_compaction(goal="sum up"))
    await agent.reply(lab.user("go on"))
    second = await agent.propose_compaction(goal="sum up")
    acting = [d.call_id for d in second.decisions if d.action != "keep"]
    assert acting == ["c5", "d0"]
    await agent.accept_compaction(second)
    assert await agent.restore_compaction() == ("t6", "t7")
    assert await agent.restore_compaction() == ("t1", "t2", "t3", "t4", "t5")
    assert lab.dump(agent)[:2] == first
    assert await agent.restore_compaction() == ()


async def test_a_message_of_only_calls_can_be_judged(lab: Any) -> None:
    """A reply that never said a word is judged like any other, and may vanish when it is over."""
    built = HistoryBuilder().user("look").reply()
    built.call("look", {"page": 1}, lab.page(1), "a").user("and?").say("nothing")
    state = AgentState(context=[Msg.model_validate(message) for message in built.messages])
    compactor = lab.compactor(lab.remover(), preserve_recent_calls=0)
    agent = lab.agent([], cls=with_compaction(compactor)(Agent), state=state)
    before = lab.dump(agent)
    proposal = await agent.propose_compaction(goal="sum up")
    assert await agent.accept_compaction(proposal) == ("t1",)
    assert len(agent.state.context) == 3
    assert await agent.restore_compaction(proposal) == ("t1",)
    assert lab.dump(agent) == before
