"""One deadline over all requests; outstanding ones are cancelled, stubborn ones left behind."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from agentscope.classifier import (
    ClassifierResponse,
    RefusalAnswer,
)

from agentscope_compaction import (
    DecisionAnswerError,
    DecisionReason,
    DecisionTimeoutError,
)
from tests.asking import Questions, number, propose, reply

pytestmark = pytest.mark.anyio


class Hanging:
    """Answers the first calls and then waits for ever, noting who was cancelled."""

    def __init__(self, answered: int = 0, *, stubborn: bool = False, failing: int = 0) -> None:
        self.answered, self.stubborn, self.failing = answered, stubborn, failing
        self.cancelled: list[int] = []
        self.release = asyncio.Event()

    async def __call__(self, state: dict[str, Any], questions: Questions) -> ClassifierResponse:
        """Answer, refuse or wait."""
        n = number(questions)
        if n == self.failing:
            return reply(questions, result=RefusalAnswer())
        while n > self.answered:
            try:
                await self.release.wait()
                if self.stubborn:
                    raise RuntimeError("too late")
                break
            except asyncio.CancelledError:
                self.cancelled.append(n)
                if not self.stubborn:
                    raise
        return reply(questions)


async def test_deadline() -> None:
    """One deadline over all requests: then a timeout error, and all are cancelled."""
    model = Hanging(answered=1)
    with pytest.raises(DecisionTimeoutError) as caught:
        await propose(model, total_timeout_seconds=0.3)
    assert isinstance(caught.value, TimeoutError)
    assert model.cancelled == [2, 3]


async def test_deadline_counts_the_queue() -> None:
    """Requests still waiting for their turn are covered by the same deadline."""
    model = Hanging()
    with pytest.raises(DecisionTimeoutError):
        await propose(model, calls=9, max_concurrency=2, total_timeout_seconds=0.3)
    assert model.cancelled == [1, 2]


async def test_deadline_with_keep() -> None:
    """What was answered in time acts, the rest is kept as unanswered."""
    model = Hanging(answered=2)
    proposal = await propose(model, on_batch_failure="keep", total_timeout_seconds=0.3)
    assert [d.action for d in proposal.decisions] == ["drop_call", "drop_call", "keep"]
    assert proposal.decisions[2].reason == DecisionReason.UNANSWERED
    with pytest.raises(DecisionTimeoutError):
        await propose(Hanging(), on_batch_failure="keep", total_timeout_seconds=0.3)


async def test_a_model_that_ignores_cancellation() -> None:
    """Such a request is left behind after a short grace, and its late error disturbs nobody."""
    model = Hanging(stubborn=True)
    others = asyncio.all_tasks()
    loop = asyncio.get_running_loop()
    reports: list[Any] = []
    loop.set_exception_handler(lambda _, context: reports.append(context))
    started = loop.time()
    with pytest.raises(DecisionTimeoutError):
        await propose(model, total_timeout_seconds=0.3)
    assert loop.time() - started < 5
    model.release.set()
    await asyncio.wait(asyncio.all_tasks() - others, timeout=5)
    await asyncio.sleep(0)
    gc.collect()
    loop.set_exception_handler(None)
    assert model.cancelled == [1, 2, 3] and reports == []


async def test_first_bad_answer_cancels_the_others() -> None:
    """With ``fail`` a bad answer ends the asking at once instead of at the deadline."""
    model = Hanging(failing=2)
    with pytest.raises(DecisionAnswerError):
        await propose(model, total_timeout_seconds=600)
    assert model.cancelled == [1, 3]


async def test_cancelling_the_proposal_cancels_its_requests() -> None:
    """A caller that gives up leaves no request behind."""
    others, asked = asyncio.all_tasks(), asyncio.Event()
    hanging = Hanging()

    async def model(state: dict[str, Any], questions: Questions) -> ClassifierResponse:
        if number(questions) == 3:
            asked.set()
        return await hanging(state, questions)

    task = asyncio.ensure_future(propose(model))
    await asyncio.wait_for(asked.wait(), timeout=30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert hanging.cancelled == [1, 2, 3] and asyncio.all_tasks() == others
