"""Several agents, or several replies, with one hook or compactor do not disturb each other."""

from __future__ import annotations

import asyncio
import copy
import gc
import weakref
from typing import Any

import pytest
from agentscope.agent import Agent
from agentscope.tool import FunctionTool

from agentscope_compaction import (
    accept_all,
)
from agentscope_compaction.testing.chat import say, use
from tests.agents.forms import FORMS, build

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("form", FORMS)
async def test_a_deep_copy_goes_its_own_way(lab: Any, form: str) -> None:
    """A copied agent compacts, accepts and restores over the same archive, apart from the first."""
    compactor = lab.compactor()
    turns = [*lab.script(4), *lab.script(4, "d", 50)]
    agent = build(lab, form, compactor, turns, trigger_tokens=2_500, review=accept_all)
    agent.compactor = compactor  # as a class of its own might hold it
    await agent.reply(lab.user("look"))
    before = agent.state.model_dump_json()
    twin = copy.deepcopy(agent)
    await twin.reply(lab.user("look again"))
    assert [i for i in lab.cut(twin) if i.startswith("d")]
    while await compactor.restore(twin):
        pass
    assert lab.cut(twin) == []
    assert agent.state.model_dump_json() == before and lab.cut(agent)
    await agent.reply(lab.user("look again"))
    assert [i for i in lab.cut(agent) if i.startswith("d")]


@pytest.mark.parametrize("form", FORMS)
async def test_agents_are_told_apart_by_identity(lab: Any, form: str) -> None:
    """A class with an equality of its own, whose agents cannot be hashed, is an agent as any."""

    class Equal(Agent):
        def __eq__(self, other: object) -> bool:
            return isinstance(other, Agent)

    keywords = {"review": accept_all, "trigger_tokens": 2_000}
    compactor = lab.compactor()
    agents = [build(lab, form, compactor, lab.script(4), base=Equal, **keywords) for _ in "ab"]
    answers = await asyncio.gather(*(agent.reply(lab.user("look")) for agent in agents))
    assert [answer.get_text_content() for answer in answers] == ["done c", "done c"]
    assert all(lab.cut(agent) for agent in agents)
    gone = weakref.ref(agents.pop())
    gc.collect()
    assert gone() is None  # and what is remembered about an agent does not hold it


@pytest.mark.parametrize("form", ["hook", "class"])
async def test_a_second_reply_spares_the_one_that_runs(lab: Any, form: str) -> None:
    """While a call of another reply of the same agent is carried out, that reply is not over."""
    working, go_on = asyncio.Event(), asyncio.Event()

    async def work() -> Any:
        """Work."""
        working.set()
        await go_on.wait()
        return "worked"

    turns = [[say("so"), use("look", "c0", page=0)], *lab.turns(4, "d", 1), [use("work", "w")]]
    agent = build(
        lab,
        form,
        lab.compactor(lab.remover()),
        turns,
        trigger_tokens=2_000,
        review=accept_all,
        during_reply=False,
        tools=[FunctionTool(work, is_read_only=True)],
    )
    first = asyncio.create_task(agent.reply(lab.user("one")))
    await working.wait()
    second = await agent.reply(lab.user("two"))
    go_on.set()
    assert [second.get_text_content(), (await first).get_text_content()] == ["done", "done"]
    assert list(lab.results(agent)) == ["c0", "d0", "d1", "d2", "d3", "w"]  # cut, not removed
    assert lab.cut(agent)


async def test_two_agents_share_one_compactor(lab: Any) -> None:
    """Agents in two tasks do not disturb each other."""
    compactor = lab.compactor()
    agents = [
        build(lab, "hook", compactor, lab.script(6, p, s), trigger_tokens=3_000, review=accept_all)
        for p, s in (("a", 0), ("b", 100))
    ]
    await asyncio.gather(*(agent.reply(lab.user("look")) for agent in agents))
    assert all(call.startswith("a") for call in lab.cut(agents[0]))
    assert all(call.startswith("b") for call in lab.cut(agents[1]))
    assert lab.cut(agents[0]) and lab.cut(agents[1])
