"""A proposal fits the context it was made of, and what was appended since; nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from agentscope.message import TextBlock

from agentscope_compaction import StaleProposalError

pytestmark = pytest.mark.anyio


async def test_accepted_late_keeps_what_came_since(lab: Any) -> None:
    """Messages and blocks appended after the proposal survive its acceptance."""
    agent = await lab.worked()
    proposal = await agent.propose_compaction(goal="sum up")
    agent.state.context[-1].content.append(TextBlock(text="an afterthought"))
    await agent.reply(lab.user("go on"))
    since = lab.dump(agent)
    assert await agent.accept_compaction(proposal) == ("t1", "t2", "t3", "t4", "t5")
    now = lab.dump(agent)
    assert now[2:] == since[2:]
    assert now[1]["content"][-1] == since[1]["content"][-1]
    assert lab.cut(agent) == ["c0", "c1", "c2", "c3", "c4"]


def _edit(context: list[Any]) -> None:
    context[1].content[-1].text = "other words"


def _edit_result(context: list[Any]) -> None:
    block = next(b for b in context[1].content if b.type == "tool_result")
    block.output = "other output"


def _edit_unproposed(context: list[Any]) -> None:
    next(b for b in context[1].content if b.id == "c5").input = '{"page": 6}'


def _swap_tail(context: list[Any]) -> None:
    del context[1].content[:2]
    context[1].content += [TextBlock(text="a"), TextBlock(text="b")]


def _drop_message(context: list[Any]) -> None:
    context.append(context.pop(0))


def _clear(context: list[Any]) -> None:
    context.clear()


@pytest.mark.parametrize(
    "change", [_edit, _edit_result, _edit_unproposed, _swap_tail, _drop_message, _clear]
)
async def test_any_other_change_is_stale(lab: Any, change: Any) -> None:
    """An edit in place, or as many deleted as appended, refuses the whole proposal."""
    agent = await lab.worked()
    proposal = await agent.propose_compaction(goal="sum up")
    change(agent.state.context)
    before = agent.state.model_dump_json()
    with pytest.raises(StaleProposalError):
        await agent.accept_compaction(proposal)
    assert agent.state.model_dump_json() == before
    assert agent.pending_proposal is None
    assert await lab.kinds(proposal.archive_ref) == ["proposed", "stale"]


async def test_another_agent_is_stale(lab: Any) -> None:
    """A proposal about one agent's history does not fit another's."""
    agent, other = await lab.worked(), await lab.worked()
    proposal = await agent.propose_compaction(goal="sum up")
    before = other.state.model_dump_json()
    with pytest.raises(StaleProposalError):
        await other.accept_compaction(proposal)
    assert other.state.model_dump_json() == before
