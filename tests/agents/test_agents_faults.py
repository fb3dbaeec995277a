"""Whatever fails, hangs or is interrupted beside a reply, the agent answers."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import logging
from typing import Any

import pytest
from agentscope.tool import FunctionTool

from agentscope_compaction import (
    ArchiveError,
    accept_all,
    decide_pending,
)
from agentscope_compaction.testing import ScriptedDecisionModel
from agentscope_compaction.testing.chat import say, use
from tests.agents.forms import build

pytestmark = pytest.mark.anyio


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
    agent = build(
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


async def test_the_warning_says_where_foreign_code_failed(
    lab: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Function, file and line of the reviewer's fault, and not its words, which may quote."""
    agent = build(lab, "hook", lab.compactor(), lab.script(4), trigger_tokens=2_000, review=_raises)
    with caplog.at_level(logging.WARNING):
        await agent.reply(lab.user("look"))
    line = _raises.__code__.co_firstlineno + 1
    assert f" in _raises ({__file__}:{line})" in caplog.text
    assert "SECRET-7" not in caplog.text


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
    agent = build(lab, "hook", compactor, turns, trigger_tokens=2_000, review=review)
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

    agent = build(
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
        build(lab, "hook", compactor, lab.script(4), trigger_tokens=2_000, review=accept_all)
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
    agent = build(
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
