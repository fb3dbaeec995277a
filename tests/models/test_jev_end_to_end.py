"""Both Jev clients through ``compact_context``, against servers on loopback."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agentscope.classifier import (
    BinaryQuestion,
    ClassifierResponse,
    JevClassifierModel,
    OpenAIClassifierModel,
)
from agentscope.credential import OpenAICredential, TypeSafeCredential
from jevcompat.mock import FAULTS  # type: ignore[import-untyped]

from agentscope_compaction import (
    CompactionError,
    CompactionProposal,
    DecisionAnswerError,
    DecisionHTTPError,
    DecisionReason,
    DecisionTimeoutError,
    JevDecisionModel,
    compact_context,
    decision_model_from_env,
)
from agentscope_compaction.testing import (
    HistoryBuilder,
    ScriptedDecisionModel,
    check_proposal,
)
from tests.servers import MockConfig, Running, script_server

pytestmark = pytest.mark.anyio

KEY = "sk-test-0123456789abcdef"
MODEL = "jev-1.13.0"
CALLS = 9


def history() -> HistoryBuilder:
    """A task and nine old calls, then a closing message."""
    builder = HistoryBuilder().user("Fix the retry bug in secret-project")
    for n in range(CALLS):
        builder.call("Read", {"path": f"src/{n}.py"}, f"body-marker {n} " * 200, f"c{n}")
    return builder.user("Go on.")


def request(**options: Any) -> dict[str, Any]:
    """Ask about all nine in batches of two calls."""
    chosen = {"preserve_recent_messages": 1, "max_questions_per_request": 4}
    return history().request("Fix it", None, **(chosen | options))


async def ours(url: str, key: str = KEY, **options: Any) -> CompactionProposal:
    """Propose with the bundled client, without waits between tries."""
    async with JevDecisionModel(key, url, MODEL, retry_delay=0) as model:
        return await compact_context(request(**options), model)


@asynccontextmanager
async def classifier(url: str, key: str = KEY) -> AsyncIterator[JevClassifierModel]:
    """AgentScope's own client."""
    credential = TypeSafeCredential(api_key=key, base_url=url)
    model = JevClassifierModel(credential, retry_delay=0.001)
    try:
        yield model
    finally:
        await model.client.aclose()


async def theirs(url: str, key: str = KEY, **options: Any) -> CompactionProposal:
    """Propose with AgentScope's own client."""
    async with classifier(url, key) as model:
        return await compact_context(request(**options), model)


def sound(proposal: CompactionProposal) -> None:
    """The proposal holds together, and each probability in it is one."""
    check_proposal(history().messages, proposal)
    for decision in proposal.decisions:
        for value in (decision.keep_call, decision.keep_result):
            assert value is None or (math.isfinite(value) and 0 <= value <= 1)


@pytest.mark.parametrize("key", [None, KEY])
async def test_agentscopes_client_works_unchanged(key: str | None) -> None:
    """Its model, pointed at the reference server, drives a proposal as ours does."""
    with Running(MockConfig(key=key)) as server:
        proposal = await theirs(server.url)
        same = await ours(server.url)
    sound(proposal)
    assert [(d.keep_call, d.keep_result) for d in proposal.decisions] == [
        (d.keep_call, d.keep_result) for d in same.decisions
    ]
    assert proposal.messages == same.messages
    assert proposal.stats["requests"] == 5
    assert proposal.stats["questions"] == 2 * CALLS


@pytest.mark.parametrize("chosen", ["direct", "environment"])
async def test_the_decisions_client_works_unchanged(chosen: str) -> None:
    """AgentScope's client of OpenAI's Decisions drives a proposal; a refusal is an answer error."""

    def script(name: str, state: dict[str, Any]) -> float | None:
        assert state["goal"] == "Fix it" and "body-marker" not in str(state)
        return None if name in refused else 0.9 if name.startswith("call") else 0.2

    refused: set[str] = set()
    with script_server(script, model="decider-1") as (url, requests):
        settings = {"BACKEND": "openai", "API_KEY": KEY, "BASE_URL": f"{url}/v1"}
        env = {f"DECISION_MODEL_{name}": value for name, value in settings.items()}
        model: Any = decision_model_from_env(env=env, dotenv=False)
        if chosen == "direct":
            model = OpenAIClassifierModel(OpenAICredential(api_key=KEY, base_url=f"{url}/v1"))
        proposal = await compact_context(request(), model)
        assert [d.action for d in proposal.decisions] == ["drop_result"] * CALLS
        assert (proposal.stats["model"], proposal.stats["requests"]) == ("decider-1", 5)
        assert proposal.stats["usage"] == {"input_tokens": 5_000, "output_tokens": 2 * CALLS}
        asked = [question for body in requests for question in body["questions"]]
        assert all(q["type"] == "predicate" and "\nTrue: " in q["instructions"] for q in asked)
        refused.add("result_t4")
        with pytest.raises(DecisionAnswerError, match="result_t4"):
            await compact_context(request(), model)
        proposal = await compact_context(request(on_batch_failure="keep"), model)
        assert [d.id for d in proposal.decisions if d.reason == "unanswered"] == ["t4"]
        await (model.client.close() if chosen == "direct" else model.aclose())
    sound(proposal)


@pytest.mark.parametrize("propose", [ours, theirs], ids=["ours", "theirs"])
async def test_a_busy_server_still_answers(propose: Any) -> None:
    """Refused for now (429) is tried again, and every question is answered in the end."""
    config = MockConfig(busy_every=3)
    with Running(config) as server:
        proposal = await propose(server.url, max_concurrency=1)
    sound(proposal)
    assert all(d.keep_call is not None for d in proposal.decisions)
    assert config.requests == 7


@pytest.mark.parametrize("failure", ["fail", "keep"])
@pytest.mark.parametrize("propose", [ours, theirs], ids=["ours", "theirs"])
@pytest.mark.parametrize("fault", [None, *FAULTS])
async def test_no_fault_gets_a_wrong_answer_accepted(
    fault: str | None, propose: Any, failure: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Each fault ends in valid answers or in one documented error, whichever client asks."""
    caplog.set_level(logging.DEBUG, "agentscope_compaction")
    config = MockConfig(key=KEY, faults=frozenset([fault] if fault else []))
    with Running(config) as server:
        try:
            sound(await propose(server.url, on_batch_failure=failure))
        except CompactionError as exc:
            assert fault is not None
            assert KEY not in str(exc)
    mine = "".join(r.getMessage() for r in caplog.records if r.name == "agentscope_compaction")
    assert KEY not in mine
    assert "body-marker" not in mine


@pytest.mark.parametrize("failure", ["fail", "keep"])
@pytest.mark.parametrize(
    ("fault", "error", "status"),
    [
        ("wrong-route", DecisionHTTPError, 404),
        ("auth-x-api-key", DecisionHTTPError, 403),
        ("xssi-200", DecisionAnswerError, None),
        ("first-question-only", DecisionAnswerError, None),
        ("boolean-type", DecisionAnswerError, None),
        ("noul-range", DecisionAnswerError, None),
        ("nan", DecisionAnswerError, None),
    ],
)
async def test_a_fault_in_every_batch_fails(
    fault: str, error: type[CompactionError], status: int | None, failure: str
) -> None:
    """Where nothing was answered there is no proposal, under ``keep`` as well."""
    with Running(MockConfig(key=KEY, faults=frozenset([fault]))) as server:
        with pytest.raises(error) as caught:
            await ours(server.url, on_batch_failure=failure)
    assert getattr(caught.value, "status", None) == status


async def test_the_key_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    """Not of this package, nor of the HTTP libraries below, at DEBUG; nor is any content."""
    caplog.set_level(logging.DEBUG)
    with Running(MockConfig(key=KEY, busy_every=2)) as server:
        sound(await ours(server.url, max_concurrency=1))
        with pytest.raises(DecisionHTTPError):
            await ours(server.url, key="sk-test-wrong")
    assert caplog.records
    for hidden in (KEY, "sk-test-wrong", "body-marker", "secret-project"):
        assert hidden not in caplog.text


async def test_batches_that_fail_leave_their_calls_alone() -> None:
    """Under ``keep`` the answered batches act; under ``fail`` there is no proposal."""

    async def propose(failure: str) -> CompactionProposal:
        with Running(MockConfig(busy_every=2)) as server:
            async with JevDecisionModel("", server.url, MODEL, max_retries=0) as model:
                given = request(on_batch_failure=failure, max_concurrency=1)
                return await compact_context(given, model)

    proposal = await propose("keep")
    sound(proposal)
    unanswered = [d.id for d in proposal.decisions if d.reason is DecisionReason.UNANSWERED]
    assert unanswered == ["t3", "t4", "t7", "t8"]
    with pytest.raises(DecisionHTTPError) as caught:
        await propose("fail")
    assert caught.value.status == 429


async def test_a_refusal_keeps_its_pair() -> None:
    """Under ``keep`` one refused question spares its call only; under ``fail`` all fails."""
    with script_server(lambda name, state: None if name == "call_t2" else 0.0) as (url, _):
        proposal = await ours(url, on_batch_failure="keep")
        with pytest.raises(DecisionAnswerError, match="call_t2"):
            await ours(url, on_batch_failure="fail")
    sound(proposal)
    kept = {d.id: d.reason for d in proposal.decisions if d.action == "keep"}
    assert kept == {"t2": DecisionReason.UNANSWERED}


async def test_the_deadline_reaches_a_model_that_accepts_it() -> None:
    """The proposal's one deadline is handed down, the same to every request."""
    seen: list[float] = []

    class Timed(ScriptedDecisionModel):
        accepts_deadline = True

        async def __call__(
            self,
            state: dict[str, Any],
            questions: Mapping[str, BinaryQuestion],
            deadline: float = 0.0,
        ) -> ClassifierResponse:
            seen.append(deadline)
            return await super().__call__(state, questions)

    started = asyncio.get_running_loop().time()
    sound(await compact_context(request(total_timeout_seconds=20), Timed(0.9)))
    assert len(seen) == 5
    assert len(set(seen)) == 1
    assert 20 <= seen[0] - started <= asyncio.get_running_loop().time() - started + 20


async def test_a_silent_server_ends_at_the_deadline() -> None:
    """The deadline of the proposal wins over the client's own longer timeout."""
    over = threading.Event()

    def script(name: str, state: dict[str, Any]) -> float:
        over.wait(20)
        return 0.0

    with script_server(script) as (url, seen):
        try:
            with pytest.raises(DecisionTimeoutError):
                async with JevDecisionModel(KEY, url, MODEL, timeout=60) as model:
                    await compact_context(request(total_timeout_seconds=0.3), model)
        finally:
            over.set()
    assert 1 <= len(seen) <= 4


@pytest.mark.parametrize(
    ("answering", "thresholds", "warned"),
    [("jev-1.14.0", (0.1, 0.2), False), ("jev-9.0.0", (0.05, 0.1), True)],
)
async def test_the_profile_is_that_of_the_model_that_answered(
    answering: str, thresholds: tuple[float, float], warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """With ``keep_threshold=None`` the thresholds follow the version; an unknown one keeps more."""
    script = {"call": 0.07, "result": 0.15}
    with script_server(lambda name, state: script[name.split("_")[0]], answering) as (url, _):
        proposal = await ours(url, keep_threshold=None)
    call, result = thresholds
    assert proposal.stats["thresholds"] == {"call": call, "result": result}
    assert proposal.stats["model"] == answering
    assert {d.action.value for d in proposal.decisions} == {"keep" if warned else "drop_call"}
    assert ("not a known version" in caplog.text) == warned
