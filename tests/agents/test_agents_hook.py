"""The memory hook and the decorator on real agents: when they look, and who decides."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from agentscope.event import ConfirmResult, CustomEvent, UserConfirmResultEvent
from agentscope.message import TextBlock
from agentscope.state import AgentState
from agentscope.tool import FunctionTool

from agentscope_compaction import (
    accept_all,
    accept_if,
    compaction_middlewares,
    decide_pending,
)
from agentscope_compaction.testing.chat import say, use
from tests.agents.forms import FORMS, build

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_growing_reply_is_cut_and_ends(lab: Any, form: str, stream: bool) -> None:
    """Every form cuts while one reply grows; every call ran once and the reply ends."""
    agent = build(
        lab,
        form,
        lab.compactor(),
        lab.script(12),
        context_size=8_000,
        stream=stream,
        review=accept_all,
    )
    answer = await agent.reply(lab.user("look at the pages"))
    assert answer.get_text_content() == "done c"
    assert set(lab.runs.values()) == {1} and len(lab.runs) == 12
    assert lab.cut(agent)
    assert agent.model.summaries == 0


@pytest.mark.parametrize("form", FORMS)
async def test_the_work_is_done_once(lab: Any, form: str) -> None:
    """Hook and decorator together ask no more than one of them."""
    agent = build(
        lab,
        form,
        lab.compactor(),
        lab.script(6),
        trigger_tokens=4_000,
        review=accept_all,
        min_growth_ratio=0,
    )
    await agent.reply(lab.user("look"))
    entries = await lab.archive.list()
    calls = [name for name in lab.judge.asked if name.startswith("call_")]
    assert len(calls) == len(set(calls)), calls
    assert len(entries) == len(lab.judge.requests)


async def test_nothing_happens_below_the_trigger(lab: Any) -> None:
    """Below the trigger nothing is asked, archived or noted."""
    agent = build(lab, "hook", lab.compactor(), lab.script(6), review=accept_all)
    await agent.reply(lab.user("look"))
    assert lab.judge.requests == []
    assert await lab.archive.list() == []
    assert agent.state.middle_context == {}


async def test_back_off_until_the_history_grew(lab: Any) -> None:
    """Without a reviewer at most one judging happens per growth step."""
    agent = build(
        lab, "hook", lab.compactor(), lab.script(12), trigger_tokens=1_500, min_growth_ratio=1.0
    )
    await agent.reply(lab.user("look"))
    sizes = sorted(entry.chars for entry in await lab.archive.list())
    assert len(sizes) == 3
    assert all(later > 1.9 * earlier for earlier, later in itertools.pairwise(sizes))
    assert lab.cut(agent) == []


async def test_target_stops_acting(lab: Any) -> None:
    """Compaction stops as soon as the context is within the target."""
    agent = build(
        lab,
        "hook",
        lab.compactor(),
        lab.script(8),
        trigger_tokens=5_000,
        target_tokens=4_500,
        review=accept_all,
        min_growth_ratio=1.0,
    )
    await agent.reply(lab.user("look"))
    assert 0 < len(lab.cut(agent)) < 7


@pytest.mark.parametrize("form", FORMS)
async def test_before_reply_judges_by_the_new_message(lab: Any, form: str) -> None:
    """The goal before a reply is the message that is about to be answered."""
    agent = build(
        lab,
        form,
        lab.compactor(),
        [*lab.script(6), [say("hello")]],
        trigger_tokens=2_000,
        during_reply=False,
        review=accept_all,
    )
    await agent.reply(lab.user("look at the pages"))
    assert lab.judge.requests == []
    await agent.reply(lab.user("what is the code of page 5?"))
    assert lab.judge.requests[0][0]["goal"] == "what is the code of page 5?"
    assert lab.cut(agent)


async def test_a_resumed_reply_is_left_alone(lab: Any) -> None:
    """Answers to a parked reply do not trigger the look before a reply."""

    def risky() -> Any:
        """Do something risky."""
        return "done"

    agent = build(
        lab,
        "class",
        lab.compactor(),
        [*lab.turns(4), [use("risky", "r")], [say("end")]],
        trigger_tokens=100,
        during_reply=False,
        review=accept_all,
        tools=[FunctionTool(risky)],
    )
    await agent.reply(lab.user("look, then act"))
    (call,) = agent.state.get_awaiting_tool_calls("worker")
    confirmed = ConfirmResult(confirmed=True, tool_call=call)
    event = UserConfirmResultEvent(reply_id=agent.state.reply_id, confirm_results=[confirmed])
    answer = await agent.reply(event)
    assert answer.get_text_content() == "end"
    assert lab.judge.requests == []


@pytest.mark.parametrize("form", FORMS)
async def test_a_resumed_reply_announces_its_proposals(lab: Any, form: str) -> None:
    """A reply that goes on tells of its proposals itself, not the one that comes next."""

    def risky() -> Any:
        """Do something risky."""
        return "done"

    turns = [[use("risky", "r")], *lab.script(4), [say("end")]]
    settings = {"trigger_tokens": 2_500, "review": accept_all}
    agent = build(
        lab,
        form,
        lab.compactor(),
        turns,
        tools=[FunctionTool(risky)],
        before_reply=False,
        **settings,
    )
    await agent.reply(lab.user("look, then act"))
    (call,) = agent.state.get_awaiting_tool_calls("worker")
    confirmed = ConfirmResult(confirmed=True, tool_call=call)
    event = UserConfirmResultEvent(reply_id=agent.state.reply_id, confirm_results=[confirmed])
    told = []
    for given in (event, lab.user("next")):
        events = [item async for item in agent.reply_stream(given)]
        told.append(sum(isinstance(item, CustomEvent) for item in events))
    assert told == [len(lab.judge.requests), 0] and told[0] > 0


async def test_a_parked_reply_survives_a_pass(lab: Any) -> None:
    """Cutting while a call waits for the user leaves that call to be confirmed and run once."""
    ran = []

    def risky() -> Any:
        """Do something risky."""
        ran.append(1)
        return "done"

    agent = build(
        lab,
        "class",
        lab.compactor(),
        [*lab.turns(4), [use("risky", "r")], [say("end")]],
        during_reply=False,
        before_reply=False,
        tools=[FunctionTool(risky)],
    )
    await agent.reply(lab.user("look, then act"))
    await agent.accept_compaction(await agent.propose_compaction(goal="go on"))
    assert lab.cut(agent) and not ran
    (call,) = agent.state.get_awaiting_tool_calls("worker")
    confirmed = ConfirmResult(confirmed=True, tool_call=call)
    await agent.reply(
        UserConfirmResultEvent(reply_id=agent.state.reply_id, confirm_results=[confirmed])
    )
    assert ran == [1]


@pytest.mark.parametrize("form", FORMS)
async def test_without_a_reviewer_it_only_announces(lab: Any, form: str) -> None:
    """Proposals are archived, announced as events and kept as pending, never applied."""
    agent = build(lab, form, lab.compactor(), lab.script(4), trigger_tokens=2_000)
    events = [event async for event in agent.reply_stream(lab.user("look"))]
    told = [e for e in events if isinstance(e, CustomEvent) and e.name == "compaction_proposed"]
    assert told and told[-1].value["proposal_id"] == agent.pending_proposal.proposal_id
    assert lab.cut(agent) == []
    assert agent.state.middle_context["agentscope_compaction"]["pending"]


@pytest.mark.parametrize(
    ("rule", "accepted"),
    [
        ({}, True),
        ({"min_saved_tokens": 100}, True),
        ({"min_saved_tokens": 1_000_000}, False),
        ({"min_saved_ratio": 0.9999}, False),
        ({"max_break_even_calls": 0}, False),
        ({"max_break_even_calls": 1_000}, True),
    ],
)
async def test_accept_if(lab: Any, rule: Any, accepted: bool) -> None:
    """The shipped rule accepts what saves enough, or pays for the broken prompt cache in time."""
    agent = await lab.worked()
    proposal = await agent.propose_compaction(goal="sum up")
    assert proposal.stats["reread_tokens"] > 0
    assert accept_if(**rule)(agent, proposal) is accepted


@pytest.mark.parametrize("decision", [True, False, ["t1", "t2"]])
async def test_a_person_decides_across_processes(lab: Any, decision: Any) -> None:
    """Proposed now, state saved, decided later, applied before the next reply."""
    agent = build(
        lab, "hook", lab.compactor(), lab.script(4), trigger_tokens=2_000, min_growth_ratio=1.0
    )
    await agent.reply(lab.user("look"))
    waiting = agent.pending_proposal.proposal_id
    state = AgentState.model_validate_json(agent.state.model_dump_json())
    assert not decide_pending(state, True, proposal_id="another")
    assert decide_pending(state, decision, proposal_id=waiting)
    state = AgentState.model_validate_json(state.model_dump_json())
    fresh = build(lab, "class", lab.compactor(), [[say("hello")]], state=state)
    await fresh.reply(lab.user("go on"))
    expected = {True: 1, False: 0}.get(decision if isinstance(decision, bool) else True, 1)
    assert bool(lab.cut(fresh)) == bool(expected)
    assert not decide_pending(fresh.state, True)


async def test_a_late_decision_that_no_longer_fits(lab: Any) -> None:
    """A decided proposal about a history that changed is dropped with a warning."""
    agent = build(
        lab,
        "hook",
        lab.compactor(),
        [*lab.script(4), [say("hello")]],
        trigger_tokens=2_000,
        min_growth_ratio=1.0,
    )
    await agent.reply(lab.user("look"))
    decide_pending(agent.state, True)
    agent.state.context[0].content[0] = TextBlock(text="edited")
    await agent.reply(lab.user("go on"))
    assert lab.cut(agent) == []
    assert "pending" not in agent.state.middle_context["agentscope_compaction"]


async def test_the_service_factory(lab: Any) -> None:
    """The factory gives one middleware per run, over one compactor, and takes the workspace."""
    factory = compaction_middlewares(lab.compactor(), accept_all, trigger_tokens=2_000)
    state: Any = None
    for prefix in ("a", "b"):
        middlewares = await factory("user", "agent", "session", None)
        agent = lab.agent(lab.script(4, prefix), middlewares=middlewares, state=state)
        await agent.reply(lab.user("look"))
        state = AgentState.model_validate_json(agent.state.model_dump_json())
    assert lab.cut(agent)
