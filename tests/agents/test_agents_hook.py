"""The memory hook and the decorator on real agents: when they look, who decides, what fails."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import gc
import inspect
import itertools
import logging
import weakref
from typing import Any

import pytest
from agentscope.agent import A2AAgent, Agent
from agentscope.event import ConfirmResult, CustomEvent, UserConfirmResultEvent
from agentscope.message import TextBlock, UserMsg
from agentscope.state import AgentState
from agentscope.tool import FunctionTool

from agentscope_compaction import (
    ArchiveError,
    CompactionMiddleware,
    CompactionMixin,
    CompactionProposal,
    ConfigurationError,
    accept_all,
    accept_if,
    compaction_middlewares,
    decide_pending,
    with_compaction,
)
from agentscope_compaction.testing import ScriptedDecisionModel
from agentscope_compaction.testing.chat import say, use

pytestmark = pytest.mark.anyio

FORMS = ["hook", "class", "instance", "mixin", "both"]


def _build(lab: Any, form: str, compactor: Any, turns: Any, **kwargs: Any) -> Any:
    """Return an agent that compacts, in one of the ways to say so."""
    base: Any = kwargs.pop("base", Agent)
    model = {key: kwargs.pop(key) for key in ("context_size", "stream") if key in kwargs}
    more: dict[str, Any] = {"cls": base} | {
        k: kwargs.pop(k) for k in ("state", "tools") if k in kwargs
    }
    if form in ("hook", "both"):
        more["middlewares"] = [CompactionMiddleware(compactor, **kwargs)]
    decorate = with_compaction(compactor, **kwargs)
    if form in ("class", "both"):
        more["cls"] = decorate(base)
    if form == "mixin":

        @decorate
        class Typed(CompactionMixin, base):  # type: ignore[misc]
            pass

        more["cls"] = Typed
    agent = lab.agent(turns, **more, **model)
    return decorate(agent) if form == "instance" else agent


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_growing_reply_is_cut_and_ends(lab: Any, form: str, stream: bool) -> None:
    """Every form cuts while one reply grows; every call ran once and the reply ends."""
    agent = _build(
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
    agent = _build(
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
    agent = _build(lab, "hook", lab.compactor(), lab.script(6), review=accept_all)
    await agent.reply(lab.user("look"))
    assert lab.judge.requests == []
    assert await lab.archive.list() == []
    assert agent.state.middle_context == {}


async def test_back_off_until_the_history_grew(lab: Any) -> None:
    """Without a reviewer at most one judging happens per growth step."""
    agent = _build(
        lab, "hook", lab.compactor(), lab.script(12), trigger_tokens=1_500, min_growth_ratio=1.0
    )
    await agent.reply(lab.user("look"))
    sizes = sorted(entry.chars for entry in await lab.archive.list())
    assert len(sizes) == 3
    assert all(later > 1.9 * earlier for earlier, later in itertools.pairwise(sizes))
    assert lab.cut(agent) == []


async def test_target_stops_acting(lab: Any) -> None:
    """Compaction stops as soon as the context is within the target."""
    agent = _build(
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
    agent = _build(
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

    agent = _build(
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
    agent = _build(
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

    agent = _build(
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


# ---- faults -------------------------------------------------------------------------------------


class _Down:
    async def __call__(self, state: Any, questions: Any) -> Any:
        raise RuntimeError("SECRET-7 down")


class _Slow:
    async def __call__(self, state: Any, questions: Any) -> Any:
        await asyncio.Event().wait()


class _Broken:
    """An archive of which one method fails."""

    def __init__(self, inner: Any, method: str) -> None:
        self._inner, self._method = inner, method.removesuffix(" cancelled")
        cancelled = method != self._method
        self._error = asyncio.CancelledError() if cancelled else ArchiveError("read-only")

    def __getattr__(self, name: str) -> Any:
        if name != self._method:
            return getattr(self._inner, name)

        async def fail(*args: Any, **kwargs: Any) -> Any:
            raise self._error

        return fail


def _raises(agent: Any, proposal: Any) -> bool:
    raise ValueError("SECRET-7")


async def _never(agent: Any, proposal: Any) -> bool:
    await asyncio.Event().wait()
    return True


def _cancels(agent: Any, proposal: Any) -> bool:
    raise asyncio.CancelledError


async def _awaits_what_is_cancelled(agent: Any, proposal: Any) -> bool:
    answer = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(answer.cancel)  # a dialogue that somebody closed
    return bool(await answer)


def _edits_state(agent: Any, proposal: Any) -> bool:
    agent.state.context[0].content[0].text = "edited"
    return True


FAULTS: dict[str, tuple[Any, str | None, Any]] = {
    "model down": (_Down(), None, accept_all),
    "model slow": (_Slow(), None, accept_all),
    "model lies": (ScriptedDecisionModel(float("nan")), None, accept_all),
    "model above one": (ScriptedDecisionModel(1.5), None, accept_all),
    "archive read-only": (None, "save", accept_all),
    "records fail": (None, "record", accept_all),
    "archive unreadable": (None, "load", accept_all),
    "archive cancelled": (None, "save cancelled", accept_all),
    "reviewer raises": (None, None, _raises),
    "reviewer cancels": (None, None, _cancels),
    "reviewer's question cancelled": (None, None, _awaits_what_is_cancelled),
    "reviewer never returns": (None, None, _never),
    "reviewer returns junk": (None, None, lambda agent, proposal: 1),
    "reviewer returns None": (None, None, lambda agent, proposal: None),
    "reviewer names unknown calls": (None, None, lambda agent, proposal: ["t999"]),
    "state edited during review": (None, None, _edits_state),
}


@pytest.mark.parametrize("form", ["hook", "class"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_every_fault_fails_open(
    lab: Any, form: str, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever fails, the agent answers from its original history and a warning says why."""
    judge, broken, review = FAULTS[fault]
    compactor = lab.compactor(judge, total_timeout_seconds=0.2)
    if broken:
        compactor._archive = _Broken(lab.archive, broken)
    agent = _build(
        lab,
        form,
        compactor,
        lab.script(4),
        trigger_tokens=2_000,
        min_growth_ratio=1.0,
        review=review,
    )
    with caplog.at_level(logging.WARNING):
        answer = await agent.reply(lab.user("look"))
    assert answer.get_text_content() == "done c"
    assert set(lab.runs.values()) == {1}
    assert lab.cut(agent) == []
    ours = [r.getMessage() for r in caplog.records if r.name == "agentscope_compaction"]
    assert ours and not any("SECRET-7" in line for line in ours)
    assert agent not in compactor.judging


class _Deaf:
    """Waits in one of its methods, and in spite of every cancellation, until it may go on."""

    def __init__(self, inner: Any, method: str) -> None:
        self._inner, self._method = inner, method
        self.go_on = asyncio.Event()

    async def __call__(self, *args: Any) -> Any:
        return await self._late("__call__", *args)

    def __getattr__(self, name: str) -> Any:
        if name != self._method:
            return getattr(self._inner, name)
        return functools.partial(self._late, name)

    async def _late(self, name: str, *args: Any, **kwargs: Any) -> Any:
        while name == self._method and not self.go_on.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.go_on.wait()
        inner = self._inner if name == "__call__" else getattr(self._inner, name)
        result = inner(*args, **kwargs)
        return await result if inspect.isawaitable(result) else result


@pytest.mark.parametrize("deaf", ["save", "record", "load", "model", "reviewer", "history"])
async def test_whatever_will_not_end_is_left_behind(lab: Any, deaf: str) -> None:
    """The agent answers although a cancellation is ignored; what comes late changes nothing."""
    compactor = lab.compactor(total_timeout_seconds=0.05)
    review: Any = None if deaf == "history" else accept_all  # read where a person decides late
    if deaf == "model":
        stuck = compactor.decision_model = _Deaf(lab.judge, "__call__")
    elif deaf == "reviewer":
        review = stuck = _Deaf(accept_all, "__call__")
    else:
        stuck = compactor._archive = _Deaf(lab.archive, deaf)
    turns = [*lab.script(4), [say("done c")]]
    agent = _build(lab, "hook", compactor, turns, trigger_tokens=2_000, review=review)
    if deaf == "history":
        await agent.reply(lab.user("look"))
        assert decide_pending(agent.state, True)
    async with asyncio.timeout(10):
        answer = await agent.reply(lab.user("look"))
    judging, before = agent in compactor.judging, lab.dump(agent)
    stuck.go_on.set()
    assert answer.get_text_content() == "done c"
    assert judging or deaf == "model"  # at most one: it has not ended; requests have their own end
    async with asyncio.timeout(10):
        while agent in compactor.judging:
            await asyncio.sleep(0)
    assert lab.dump(agent) == before and lab.cut(agent) == []


async def test_an_earlier_interruption_is_not_this_one(lab: Any) -> None:
    """A task that was interrupted once still replies when a reviewer's question is cancelled."""
    started = asyncio.Event()

    async def wait() -> Any:
        """Wait."""
        started.set()
        await asyncio.Event().wait()

    agent = _build(
        lab,
        "hook",
        lab.compactor(),
        [[use("wait", "w")], *lab.script(4)],
        trigger_tokens=2_000,
        review=_awaits_what_is_cancelled,
        tools=[FunctionTool(wait, is_read_only=True)],
    )

    async def session() -> list[Any]:
        return [await agent.reply(lab.user(text)) for text in ("wait", "look")]

    task = asyncio.create_task(session())
    await started.wait()
    task.cancel()
    first, second = await task
    assert first.finished_reason == "interrupted"
    assert second.get_text_content() == "done c"


async def test_a_state_edited_during_judging_is_stale(lab: Any) -> None:
    """An edit made while the model judged wins; the proposal is dropped."""
    agents: list[Any] = []

    class Editing(ScriptedDecisionModel):
        async def __call__(self, state: Any, questions: Any) -> Any:
            agents[0].state.context[0].content[0].text = f"edit {len(self.requests)}"
            return await super().__call__(state, questions)

    compactor = lab.compactor(Editing({"call": 0.9, "result": 0.0}))
    agents.append(
        _build(lab, "hook", compactor, lab.script(4), trigger_tokens=2_000, review=accept_all)
    )
    await agents[0].reply(lab.user("look"))
    assert lab.cut(agents[0]) == []
    assert agents[0].state.context[0].get_text_content().startswith("edit ")


async def test_an_interrupt_during_judging_ends_the_judging(lab: Any) -> None:
    """A cancelled reply cancels the judging, and the next reply may judge again."""
    judging = asyncio.Event()

    class Waiting(ScriptedDecisionModel):
        async def __call__(self, state: Any, questions: Any) -> Any:
            if not judging.is_set():
                judging.set()
                await asyncio.Event().wait()
            return await super().__call__(state, questions)

    compactor = lab.compactor(Waiting({"call": 0.9, "result": 0.0}))
    agent = _build(
        lab,
        "class",
        compactor,
        [*lab.script(8), [say("again")]],
        trigger_tokens=4_000,
        review=accept_all,
    )
    task = asyncio.create_task(agent.reply(lab.user("look")))
    await judging.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert agent not in compactor.judging
    assert lab.cut(agent) == []
    agent.state.middle_context.clear()
    await agent.reply(lab.user("go on"))
    assert lab.cut(agent)


@pytest.mark.parametrize("form", FORMS)
async def test_a_deep_copy_goes_its_own_way(lab: Any, form: str) -> None:
    """A copied agent compacts, accepts and restores over the same archive, apart from the first."""
    compactor = lab.compactor()
    turns = [*lab.script(4), *lab.script(4, "d", 50)]
    agent = _build(lab, form, compactor, turns, trigger_tokens=2_500, review=accept_all)
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
    agents = [_build(lab, form, compactor, lab.script(4), base=Equal, **keywords) for _ in "ab"]
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
    agent = _build(
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
        _build(lab, "hook", compactor, lab.script(6, p, s), trigger_tokens=3_000, review=accept_all)
        for p, s in (("a", 0), ("b", 100))
    ]
    await asyncio.gather(*(agent.reply(lab.user("look")) for agent in agents))
    assert all(call.startswith("a") for call in lab.cut(agents[0]))
    assert all(call.startswith("b") for call in lab.cut(agents[1]))
    assert lab.cut(agents[0]) and lab.cut(agents[1])


# ---- who decides --------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
async def test_without_a_reviewer_it_only_announces(lab: Any, form: str) -> None:
    """Proposals are archived, announced as events and kept as pending, never applied."""
    agent = _build(lab, form, lab.compactor(), lab.script(4), trigger_tokens=2_000)
    events = [event async for event in agent.reply_stream(lab.user("look"))]
    told = [e for e in events if isinstance(e, CustomEvent) and e.name == "compaction_proposed"]
    assert told and told[-1].value["proposal_id"] == agent.pending_proposal.proposal_id
    assert lab.cut(agent) == []
    assert agent.state.middle_context["agentscope_compaction"]["pending"]


async def test_the_class_decides(lab: Any) -> None:
    """``review_compaction`` of a decorated class, or of its subclass, decides; sync or async."""

    @with_compaction(lab.compactor(), trigger_tokens=2_000)
    class Base(Agent):
        def review_compaction(self, proposal: CompactionProposal) -> list[str]:
            return ["t1"]

    class Child(Base):
        async def review_compaction(  # type: ignore[override]
            self, proposal: CompactionProposal
        ) -> bool:
            return False

    agent, child = lab.agent(lab.script(4), cls=Base), lab.agent(lab.script(4), cls=Child)
    await agent.reply(lab.user("look"))
    await child.reply(lab.user("look"))
    assert lab.cut(agent) and lab.cut(child) == []
    assert child.pending_proposal is None


class _Asked(Agent):
    """An agent whose replies have a signature of their own."""

    async def reply(self, question: str, *, loud: bool = False) -> Any:  # type: ignore[override]
        return await super().reply(UserMsg(name="user", content=question.upper()))

    async def reply_stream(self, question: str, *, loud: bool = False) -> Any:  # type: ignore[override]
        async for item in super().reply_stream(UserMsg(name="user", content=question.upper())):
            yield item


@pytest.mark.parametrize("form", ["class", "instance", "mixin"])
@pytest.mark.parametrize("args", [(("look",), {}), ((), {"question": "look", "loud": True})])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_signature_of_its_own_is_kept(
    lab: Any, form: str, args: tuple[Any, Any], stream: bool
) -> None:
    """A class that takes something else than AgentScope's inputs is called as it says."""
    given, named = args
    keywords = {"trigger_tokens": 2_000, "review": accept_all, "during_reply": False}
    turns = [*lab.script(4), [say("end")]]
    agent = _build(lab, form, lab.compactor(), turns, base=_Asked, **keywords)
    for _ in range(2):
        if stream:
            assert [item async for item in agent.reply_stream(*given, **named)]
        else:
            await agent.reply(*given, **named)
    assert [message.get_text_content() for message in agent.state.context[::2]] == ["LOOK"] * 2
    assert lab.cut(agent)  # it was looked at before the second reply


async def test_base_and_subclass_decorated_work_once(lab: Any) -> None:
    """A decorated subclass of a decorated class asks once, with its own settings."""
    base = with_compaction(lab.compactor(), trigger_tokens=10)(Agent)

    @with_compaction(lab.compactor(), trigger_tokens=2_000, review=accept_all)
    class Child(base):  # type: ignore[misc, valid-type]
        pass

    agent = lab.agent(lab.script(5), cls=Child)
    await agent.reply(lab.user("look"))
    calls = [name for name in lab.judge.asked if name.startswith("call_")]
    assert calls and len(calls) == len(set(calls))


def test_only_agents_can_be_decorated(lab: Any) -> None:
    """Anything that is no ``Agent`` is a ``TypeError``; bad numbers are told at once."""
    decorate: Any = with_compaction(lab.compactor())
    for target in (A2AAgent, object, 3):
        with pytest.raises(TypeError):
            decorate(target)
    for bad in ({"trigger_ratio": 1.5}, {"target_tokens": 0}, {"min_growth_ratio": True}):
        with pytest.raises(ConfigurationError):
            with_compaction(lab.compactor(), **bad)
        with pytest.raises(ConfigurationError):
            CompactionMiddleware(lab.compactor(), **bad)


async def test_an_undecorated_mixin_says_so(lab: Any) -> None:
    """The typed mixin alone works as an agent and names what is missing."""
    agent = lab.agent([[say("hi")]], cls=CompactionMixin)
    assert (await agent.reply(lab.user("hi"))).get_text_content() == "hi"
    with pytest.raises(ConfigurationError):
        await agent.propose_compaction(goal="x")


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
    agent = _build(
        lab, "hook", lab.compactor(), lab.script(4), trigger_tokens=2_000, min_growth_ratio=1.0
    )
    await agent.reply(lab.user("look"))
    waiting = agent.pending_proposal.proposal_id
    state = AgentState.model_validate_json(agent.state.model_dump_json())
    assert not decide_pending(state, True, proposal_id="another")
    assert decide_pending(state, decision, proposal_id=waiting)
    state = AgentState.model_validate_json(state.model_dump_json())
    fresh = _build(lab, "class", lab.compactor(), [[say("hello")]], state=state)
    await fresh.reply(lab.user("go on"))
    expected = {True: 1, False: 0}.get(decision if isinstance(decision, bool) else True, 1)
    assert bool(lab.cut(fresh)) == bool(expected)
    assert not decide_pending(fresh.state, True)


async def test_a_late_decision_that_no_longer_fits(lab: Any) -> None:
    """A decided proposal about a history that changed is dropped with a warning."""
    agent = _build(
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
