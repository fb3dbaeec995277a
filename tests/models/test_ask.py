"""Asking: bounded concurrency, one deadline, strict answers, and what a failure means."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from agentscope.classifier import (
    BinaryAnswer,
    BinaryQuestion,
    ChoiceAnswer,
    ClassifierResponse,
    RefusalAnswer,
)

from agentscope_compaction import (
    CompactionProposal,
    ConfigurationError,
    DecisionAnswerError,
    DecisionHTTPError,
    DecisionModelError,
    DecisionReason,
    DecisionTimeoutError,
    compact_context,
)
from agentscope_compaction.testing import HistoryBuilder, ScriptedDecisionModel, check_proposal

pytestmark = pytest.mark.anyio

Questions = Mapping[str, BinaryQuestion]


def history(calls: int = 3) -> HistoryBuilder:
    """A task, calls, and one recent message."""
    builder = HistoryBuilder().user("task")
    for n in range(calls):
        builder.call("A", {"n": n}, "x" * 1_000, f"c{n}")
    return builder.user("go on")


async def propose(model: Any, calls: int = 3, **options: Any) -> CompactionProposal:
    """Propose with one request per call and the given model."""
    builder = history(calls)
    options = {"preserve_recent_messages": 1, "max_questions_per_request": 2, **options}
    proposal = await compact_context(builder.request(**options), model)
    check_proposal(builder.messages, proposal)
    return proposal


def number(questions: Questions) -> int:
    """The number of the call a request asks about: 1 for ``call_t1``."""
    return int(next(iter(questions)).rpartition("t")[2])


def reply(questions: Questions, probability: float = 0.0, **odd: Any) -> ClassifierResponse:
    """A response; keywords replace answers by question kind."""
    content: dict[str, Any] = {}
    for name in questions:
        kind = name.partition("_")[0]
        content[name] = odd.get(kind, BinaryAnswer(probability))
    return ClassifierResponse(model="m-1", content=content)


async def test_a_plain_function_is_a_model() -> None:
    """Any async function of (state, questions) will do, and its questions are AgentScope's."""
    seen: list[BinaryQuestion] = []

    async def model(state: dict[str, Any], questions: Questions) -> ClassifierResponse:
        seen.extend(questions.values())
        return reply(questions)

    proposal = await propose(model)
    assert proposal.stats["model"] == "m-1" and proposal.stats["requests"] == 3
    assert all(isinstance(q, BinaryQuestion) and isinstance(q.instructions, str) for q in seen)
    assert len(seen) == 6


async def test_batches_ask_each_pair_once_and_together() -> None:
    """Both questions of a call travel together, in order, within the limit, each once."""
    model = ScriptedDecisionModel(1.0)
    await propose(model, calls=7, max_questions_per_request=4)
    batches = [list(questions) for _, questions in model.requests]
    expected = [f"{kind}_t{n}" for n in range(1, 8) for kind in ("call", "result")]
    assert [name for batch in batches for name in batch] == expected
    assert [len(batch) for batch in batches] == [4, 4, 4, 2]


async def test_each_request_sees_the_same_state_of_its_own() -> None:
    """Every request gets an equal state, and what a model does to its copy reaches nobody."""
    states = []

    async def model(state: dict[str, Any], questions: Questions) -> ClassifierResponse:
        states.append(repr(state))
        state["calls"].clear()
        state["goal"] = "mine"
        return reply(questions)

    proposal = await propose(model, calls=5, max_concurrency=1)
    assert len(states) == 5 and len(set(states)) == 1
    assert repr(dict(proposal.observation)) == states[0]


@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_concurrency_is_bounded(limit: int) -> None:
    """Never more than ``max_concurrency`` requests are in flight, and as many as that."""
    running = peak = 0

    async def model(state: dict[str, Any], questions: Questions) -> ClassifierResponse:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        for _ in range(3):
            await asyncio.sleep(0)
        running -= 1
        return reply(questions)

    await propose(model, calls=9, max_concurrency=limit)
    assert peak == limit


class Odd:
    """A value that is anything but an answer."""


BAD_ANSWERS: dict[str, Any] = {
    "missing": None,
    "refused": RefusalAnswer(),
    "choice": ChoiceAnswer(choice="a", confidence=1.0, probabilities={"a": 1.0}),
    "list": [0.5],
    "number": 0.5,
    "mapping": {"type": "binary_answer", "probability": 0.5},
    "wrong type": SimpleNamespace(type="noul", probability=0.5),
    "no type": SimpleNamespace(probability=0.5),
    "no probability": SimpleNamespace(type="binary_answer"),
    **{
        f"probability {value!r}": BinaryAnswer(value)
        for value in (-0.01, 1.01, math.nan, math.inf, -math.inf, True, False, "0.5", None, [0.5])
    },
}
NO_RESPONSES: dict[str, Any] = {
    "none": None,
    "text": "yes",
    "list content": SimpleNamespace(content=[1]),
    "no content": Odd(),
}


@pytest.mark.parametrize("kind", ["call", "result"])
@pytest.mark.parametrize("answer", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
async def test_malformed_answers(answer: Any, kind: str) -> None:
    """One bad answer fails the proposal, or with ``keep`` keeps just its own call."""

    async def model(state: dict[str, Any], questions: Questions) -> ClassifierResponse:
        return reply(questions, **({kind: answer} if number(questions) == 2 else {}))

    with pytest.raises(DecisionAnswerError, match=f"{kind}_t2"):
        await propose(model)
    proposal = await propose(model, on_batch_failure="keep")
    assert [d.reason for d in proposal.decisions] == [
        DecisionReason.CALL_NOT_NEEDED,
        DecisionReason.UNANSWERED,
        DecisionReason.CALL_NOT_NEEDED,
    ]
    assert (proposal.decisions[1].keep_call, proposal.decisions[1].keep_result) == (None, None)


@pytest.mark.parametrize("response", NO_RESPONSES.values(), ids=NO_RESPONSES)
async def test_responses_that_are_none(response: Any) -> None:
    """A response without a mapping of answers is an answer error."""

    async def model(state: dict[str, Any], questions: Questions) -> Any:
        return response

    with pytest.raises(DecisionAnswerError):
        await propose(model)
    with pytest.raises(DecisionAnswerError):
        await propose(model, on_batch_failure="keep")


async def test_absent_and_extra_answers(caplog: pytest.LogCaptureFixture) -> None:
    """An absent answer is an error; one that was not asked is ignored with a warning."""

    async def model(state: dict[str, Any], questions: Questions) -> ClassifierResponse:
        answered = reply(questions)
        answered.content["call_t99"] = BinaryAnswer(0.5)
        if number(questions) == 2:
            del answered.content["result_t2"]
        return answered

    with caplog.at_level(logging.WARNING, "agentscope_compaction"):
        proposal = await propose(model, on_batch_failure="keep")
    assert proposal.decisions[1].reason == DecisionReason.UNANSWERED
    assert sum("not asked" in record.message for record in caplog.records) == 3
    with pytest.raises(DecisionAnswerError, match="result_t2"):
        await propose(model)


FAILURES: dict[str, tuple[BaseException, type[Exception]]] = {
    "error": (RuntimeError("secret body"), DecisionModelError),
    "timeout": (TimeoutError(), DecisionTimeoutError),
    "http": (DecisionHTTPError("no", status=503, request_id="r"), DecisionHTTPError),
    "own cancellation": (asyncio.CancelledError(), DecisionModelError),
}


@pytest.mark.parametrize(("error", "expected"), FAILURES.values(), ids=FAILURES)
async def test_failed_requests(error: BaseException, expected: type[Exception]) -> None:
    """A failed request fails the proposal, or with ``keep`` keeps its own calls."""

    async def model(state: dict[str, Any], questions: Questions) -> ClassifierResponse:
        if number(questions) == 2:
            raise error
        return reply(questions)

    with pytest.raises(expected) as caught:
        await propose(model)
    assert "secret" not in str(caught.value)
    assert isinstance(caught.value, DecisionModelError)
    proposal = await propose(model, on_batch_failure="keep")
    assert proposal.decisions[1].reason == DecisionReason.UNANSWERED
    assert proposal.decisions[2].reason == DecisionReason.CALL_NOT_NEEDED


async def test_keep_raises_when_nothing_was_answered() -> None:
    """``keep`` needs at least one answer to act on."""

    async def model(state: dict[str, Any], questions: Questions) -> ClassifierResponse:
        raise ValueError

    with pytest.raises(DecisionModelError, match="ValueError"):
        await propose(model, on_batch_failure="keep")


async def test_a_configuration_error_is_never_kept_over() -> None:
    """What the user must repair is raised whatever ``on_batch_failure`` says."""

    async def model(state: dict[str, Any], questions: Questions) -> ClassifierResponse:
        if number(questions) == 2:
            raise ConfigurationError("no key")
        return reply(questions)

    with pytest.raises(ConfigurationError):
        await propose(model, on_batch_failure="keep")


async def test_models_that_are_not_asynchronous() -> None:
    """A synchronous function and something not callable are model errors."""
    for model in (lambda state, questions: reply(questions), 3):
        with pytest.raises(DecisionModelError):
            await propose(model)


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


async def test_usage_is_summed_and_may_be_unknown() -> None:
    """Reported tokens add up over requests; what is not reported stays unknown."""
    proposal = await propose(ScriptedDecisionModel(0.0))
    assert proposal.stats["usage"] == {"input_tokens": 300, "output_tokens": 6}

    async def silent(state: dict[str, Any], questions: Questions) -> ClassifierResponse:
        return reply(questions)

    proposal = await propose(silent)
    assert proposal.stats["usage"] == {"input_tokens": None, "output_tokens": None}
