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


ODD_USAGE: dict[str, Any] = {
    "broken": Broken(),
    "text": SimpleNamespace(input_tokens="1", output_tokens=None),
    "not whole": SimpleNamespace(input_tokens=1.5, output_tokens=math.nan),
    "flag": SimpleNamespace(input_tokens=True, output_tokens=False),
    "negative": SimpleNamespace(input_tokens=-1, output_tokens=-1),
    "no number of JSON": SimpleNamespace(input_tokens=10**5_000, output_tokens=10**5_000),
}


@pytest.mark.parametrize("usage", ODD_USAGE.values(), ids=ODD_USAGE)
async def test_odd_usage_is_unknown(usage: Any) -> None:
    """What a model says of its own costs never fails a proposal, nor its JSON."""

    async def model(state: dict[str, Any], questions: Questions) -> Any:
        answers = reply(questions)
        return SimpleNamespace(content=answers.content, model=answers.model, usage=usage)

    proposal = await propose(model)
    assert proposal.stats["usage"] == {"input_tokens": None, "output_tokens": None}
    assert proposal.changed and proposal.model_dump_json()


class Declaring:
    """A model of which one declaration cannot be looked at."""

    def __init__(self, name: str) -> None:
        self.broken = name
        self.seen: list[dict[str, Any]] = []

    def __getattribute__(self, name: str) -> Any:
        if name == object.__getattribute__(self, "broken"):
            raise RuntimeError("SECRET-5")
        return object.__getattribute__(self, name)

    async def __call__(self, state: dict[str, Any], questions: Questions) -> ClassifierResponse:
        """Answer everything alike."""
        self.seen.append(state)
        return reply(questions)


@pytest.mark.parametrize("name", ["local", "reads_only", "accepts_deadline"])
async def test_a_declaration_that_fails_is_none(name: str) -> None:
    """In doubt the model is remote: it gets its own copy, and no outputs."""
    model = Declaring(name)
    assert (await propose(model)).changed
    assert not any("output" in call for state in model.seen for call in state["calls"].values())


@pytest.mark.parametrize("name", ["thresholds", "thresholds_for"])
async def test_a_profile_that_fails_is_a_configuration_error(name: str) -> None:
    """It is read only where the options leave the thresholds to it, before anything is asked."""
    model = Declaring(name)
    assert (await propose(model)).changed
    asked = len(model.seen)
    with pytest.raises(ConfigurationError) as failed:
        await propose(model, keep_threshold=None)
    assert "SECRET-5" not in str(failed.value) and len(model.seen) == asked


async def test_a_profile_by_version_that_fails() -> None:
    """A model's own function of the answering version is foreign code too."""

    class Versioned(Declaring):
        def thresholds_for(self, answered: str) -> Any:
            """Fail."""
            raise RuntimeError("SECRET-5")

    with pytest.raises(ConfigurationError, match="RuntimeError"):
        await propose(Versioned(""), keep_threshold=None)
