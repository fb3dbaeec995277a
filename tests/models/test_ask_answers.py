"""Strict answers: what counts as one, and what a bad one or a failed request means."""

from __future__ import annotations

import asyncio
import logging
import math
from types import SimpleNamespace
from typing import Any

import pytest
from agentscope.classifier import (
    BinaryAnswer,
    ChoiceAnswer,
    ClassifierResponse,
    RefusalAnswer,
)

from agentscope_compaction import (
    ConfigurationError,
    DecisionAnswerError,
    DecisionHTTPError,
    DecisionModelError,
    DecisionReason,
    DecisionTimeoutError,
)
from tests.asking import Questions, number, propose, reply

pytestmark = pytest.mark.anyio


class Odd:
    """A value that is anything but an answer."""


class Broken:
    """An object of a client library that fails when it is looked at."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("SECRET-5")


NO_PROBABILITIES: list[Any] = [
    *(-0.01, 1.01, 10**400, -(10**400), math.nan, math.inf, -math.inf),
    *(True, False, "0.5", None, [0.5]),
]
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
    **{f"probability {value!r:.12}": BinaryAnswer(value) for value in NO_PROBABILITIES},
}
NO_RESPONSES: dict[str, Any] = {
    "none": None,
    "text": "yes",
    "list content": SimpleNamespace(content=[1]),
    "no content": Odd(),
    "broken": Broken(),
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


async def test_an_answer_that_cannot_be_looked_at() -> None:
    """An answer object that raises counts as a bad answer, of its own call alone."""

    async def model(state: dict[str, Any], questions: Questions) -> ClassifierResponse:
        bad: Any = {"result": Broken()} if number(questions) == 2 else {}
        return reply(questions, **bad)

    with pytest.raises(DecisionAnswerError) as failed:
        await propose(model)
    assert "SECRET-5" not in str(failed.value)
    proposal = await propose(model, on_batch_failure="keep")
    reasons = [d.reason.value for d in proposal.decisions]
    assert reasons == ["call_not_needed", "unanswered", "call_not_needed"]


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
