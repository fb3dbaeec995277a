"""The client against scripted HTTP responses: each status, header form, body and failure."""

import asyncio
import json
import logging
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import respx
from agentscope.classifier import (
    BinaryAnswer,
    BinaryQuestion,
    ClassifierModelBase,
    ClassifierResponse,
    RefusalAnswer,
)
from pydantic import SecretStr

from agentscope_compaction.core.types import Thresholds
from agentscope_compaction.errors import (
    ConfigurationError,
    DecisionAnswerError,
    DecisionHTTPError,
    DecisionModelError,
    DecisionTimeoutError,
)
from agentscope_compaction.models.jev import JevDecisionModel
from agentscope_compaction.models.seam import DecisionModel

pytestmark = pytest.mark.anyio

URL = "https://api.typesafe.ai/v1/systemone"
KEY = "sk-test-0123456789abcdef"
STATE = {"goal": "state-marker"}
VARIABLES = (
    "DECISION_MODEL_API_KEY",
    "DECISION_MODEL_BASE_URL",
    "DECISION_MODEL_NAME",
    "TYPESAFE_API_KEY",
    "TYPESAFE_BASE_URL",
    "TYPESAFE_DEFAULT_MODEL",
)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the machine that runs the suite decides a test."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def router() -> Iterator[respx.MockRouter]:
    """HTTP without a network."""
    with respx.mock(assert_all_called=False) as mock:
        yield mock


def questions(*names: str) -> dict[str, BinaryQuestion]:
    """Binary questions with these ids."""
    return {name: BinaryQuestion(instructions=f"Is {name} needed?") for name in names}


PAIR = questions("call_t1", "result_t1")


def answer(request: httpx.Request, **fields: Any) -> httpx.Response:
    """Answer whatever was asked with one half."""
    asked = json.loads(request.content)["questions"]
    body = {
        "model": "jev-1.13.0",
        "answers": {name: {"type": "noul", "noul": 0.5} for name in asked},
        "usage": {"input_tokens": 10, "output_tokens": 2},
    }
    headers = {"x-typesafe-request-id": f"req_{len(asked)}"}
    return httpx.Response(200, json=body | fields, headers=headers)


def failing(*first: httpx.Response | Exception) -> Callable[[httpx.Request], httpx.Response]:
    """Give these outcomes first, then answers."""
    outcomes = iter(first)

    def respond(request: httpx.Request) -> httpx.Response:
        outcome = next(outcomes, None)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome or answer(request)

    return respond


async def ask(
    asked: dict[str, BinaryQuestion] = PAIR, deadline: float | None = None, **settings: Any
) -> ClassifierResponse:
    """One call of a fresh client that waits for nothing."""
    defaults: dict[str, Any] = {"api_key": KEY, "retry_delay": 0}
    async with JevDecisionModel(**(defaults | settings)) as model:
        return await model(STATE, asked, deadline=deadline)


async def test_one_call_is_one_authorised_request(router: respx.MockRouter) -> None:
    """The request is System One's; the response is AgentScope's."""
    route = router.post(URL).mock(side_effect=answer)
    response = await ask()
    request = route.calls.last.request
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == request.headers["accept"] == "application/json"
    assert "x-typesafe-retry-count" not in request.headers
    body = json.loads(request.content)
    assert (body["model"], body["state"]) == ("jev-1.13.0", STATE)
    assert list(body["questions"]) == ["call_t1", "result_t1"]
    assert response.model == "jev-1.13.0"
    assert response.content["result_t1"] == BinaryAnswer(probability=0.5)
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (10, 2)
    assert response.metadata == {"request_id": "req_2", "request_ids": ["req_2"], "requests": 1}


async def test_missing_usage_is_unknown_and_a_refusal_is_passed_on(
    router: respx.MockRouter,
) -> None:
    """Neither fails the call: usage is None, and the caller decides about the refused pair."""
    answers = {"call_t1": {"type": "refusal"}, "result_t1": {"type": "noul", "noul": 1}}
    router.post(URL).respond(json={"model": "m", "answers": answers})
    response = await ask()
    assert response.usage is None
    assert response.content["call_t1"] == RefusalAnswer()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 418, 422])
async def test_a_client_error_is_not_retried(router: respx.MockRouter, status: int) -> None:
    """The same request would fail again."""
    detail = {"error_type": "x", "message": f"no, {KEY}"}
    headers = {"x-typesafe-request-id": "req_9", "retry-after": "0"}
    route = router.post(URL).respond(status, json={"detail": detail}, headers=headers)
    with pytest.raises(DecisionHTTPError) as caught:
        await ask(max_retries=3)
    assert route.call_count == 1
    assert (caught.value.status, caught.value.request_id) == (status, "req_9")
    assert str(caught.value).endswith(f"answered {status}: no, [redacted] [request req_9]")


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
async def test_a_transient_status_is_retried(router: respx.MockRouter, status: int) -> None:
    """The retry says which one it is; when all are used up the status is raised."""
    route = router.post(URL).mock(side_effect=failing(httpx.Response(status)))
    assert (await ask()).metadata["requests"] == 2
    assert route.calls.last.request.headers["x-typesafe-retry-count"] == "1"
    route.mock(return_value=httpx.Response(status))
    with pytest.raises(DecisionHTTPError) as caught:
        await ask(max_retries=2)
    assert (caught.value.status, route.call_count) == (status, 2 + 3)


@pytest.mark.parametrize(
    "headers",
    [
        {"retry-after-ms": "0"},
        {"retry-after": "0"},
        {"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"},
        {"retry-after-ms": "-1", "retry-after": "0"},
    ],
)
async def test_the_servers_wait_replaces_the_backoff(
    router: respx.MockRouter, headers: dict[str, str]
) -> None:
    """With a backoff that would fail at once, only the header's zero makes a retry possible."""
    router.post(URL).mock(side_effect=failing(httpx.Response(429, headers=headers)))
    deadline = asyncio.get_running_loop().time() + 2
    assert (await ask(retry_delay=3, deadline=deadline)).metadata["requests"] == 2


@pytest.mark.parametrize("headers", [{}, {"retry-after": "-1"}, {"retry-after": "nan"}])
async def test_without_a_usable_header_the_backoff_counts(
    router: respx.MockRouter, headers: dict[str, str]
) -> None:
    """A backoff that ends past the deadline is not begun."""
    route = router.post(URL).respond(503, headers=headers)
    with pytest.raises(DecisionHTTPError):
        await ask(retry_delay=3, deadline=asyncio.get_running_loop().time() + 2)
    assert route.call_count == 1


@pytest.mark.parametrize(("wait", "within"), [("60", 30.0), ("31", None), ("999999999", None)])
async def test_a_wait_past_the_deadline_fails_at_once(
    router: respx.MockRouter, wait: str, within: float | None
) -> None:
    """Nobody waits for an answer that would come too late; without a deadline 30 s is the limit."""
    route = router.post(URL).respond(429, headers={"retry-after": wait})
    started = asyncio.get_running_loop().time()
    with pytest.raises(DecisionHTTPError) as caught:
        await ask(deadline=None if within is None else started + within, max_retries=5)
    assert (caught.value.status, route.call_count) == (429, 1)
    assert asyncio.get_running_loop().time() - started < 5


async def test_a_deadline_that_has_passed_sends_nothing(router: respx.MockRouter) -> None:
    """The error is a timeout, also for those who catch ``TimeoutError``."""
    route = router.post(URL).mock(side_effect=answer)
    with pytest.raises(DecisionTimeoutError) as caught:
        await ask(deadline=asyncio.get_running_loop().time() - 1)
    assert isinstance(caught.value, TimeoutError)
    assert not route.called


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("secret-marker"),
        httpx.ReadError("secret-marker"),
        httpx.WriteError("secret-marker"),
        httpx.RemoteProtocolError("secret-marker"),
        httpx.ProxyError("secret-marker"),
        httpx.DecodingError("secret-marker"),
    ],
)
async def test_a_connection_error_is_retried_then_named(
    router: respx.MockRouter, error: httpx.RequestError
) -> None:
    """Its kind is told, its text is not: it can hold bytes of headers or responses."""
    route = router.post(URL).mock(side_effect=failing(error))
    assert (await ask()).metadata["requests"] == 2
    route.mock(side_effect=error)
    with pytest.raises(DecisionHTTPError) as caught:
        await ask()
    assert (caught.value.status, caught.value.request_id) == (None, None)
    assert type(error).__name__ in str(caught.value)
    assert "secret-marker" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize("error", [httpx.ReadTimeout, httpx.ConnectTimeout, httpx.PoolTimeout])
async def test_a_timeout_is_retried_then_raised(
    router: respx.MockRouter, error: type[httpx.TimeoutException]
) -> None:
    """Asking is free of side effects, so it may be repeated."""
    route = router.post(URL).mock(side_effect=failing(error("t")))
    assert (await ask()).metadata["requests"] == 2
    route.mock(side_effect=error("t"))
    with pytest.raises(DecisionTimeoutError):
        await ask()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(router: respx.MockRouter, status: int) -> None:
    """Following one would hand the key and the state to another host."""
    other = router.post("https://other.example/").mock(side_effect=answer)
    router.post(URL).respond(status, headers={"location": "https://other.example/"})
    with pytest.raises(DecisionHTTPError, match="redirects are not followed"):
        await ask(http_client=httpx.AsyncClient(follow_redirects=True))
    assert not other.called


@pytest.mark.parametrize(
    "content",
    [b"", b"<html>", b")]}'\n{}", b"{}", b'{"model": "m", "answers": {}', b"\xff", b"[]"],
)
async def test_a_malformed_success_is_not_retried(router: respx.MockRouter, content: bytes) -> None:
    """A server that speaks another language does so again."""
    route = router.post(URL).respond(200, content=content)
    with pytest.raises(DecisionAnswerError):
        await ask(max_retries=3)
    assert route.call_count == 1


@pytest.mark.parametrize("size", [1024 * 1024 + 1, 8 * 1024 * 1024])
async def test_an_oversized_body_is_not_read(router: respx.MockRouter, size: int) -> None:
    """Memory is bounded whatever the server sends, and an error status keeps its meaning."""
    route = router.post(URL).respond(200, content=b" " * size)
    with pytest.raises(DecisionAnswerError, match="too large"):
        await ask()
    route.respond(404, content=b" " * size)
    with pytest.raises(DecisionHTTPError, match="404"):
        await ask()


def overflow(limit: int) -> Callable[[httpx.Request], httpx.Response]:
    """A server whose context holds only so many questions; it gives no message."""

    def respond(request: httpx.Request) -> httpx.Response:
        if len(json.loads(request.content)["questions"]) > limit:
            detail = {"error_type": "max_tokens_exceeded"}
            return httpx.Response(400, json={"detail": detail})
        return answer(request)

    return respond


SIX = questions("call_t1", "result_t1", "result_t2", "other", "call_t3", "call_t2", "result_t3")


async def test_too_many_tokens_halves_the_questions_once(router: respx.MockRouter) -> None:
    """Pairs stay together, nothing is asked twice, and the two halves read as one response."""
    route = router.post(URL).mock(side_effect=overflow(4))
    response = await ask(SIX)
    asked = [list(json.loads(call.request.content)["questions"]) for call in route.calls]
    assert asked == [
        list(SIX),
        ["call_t1", "result_t1", "result_t2", "call_t2"],
        ["other", "call_t3", "result_t3"],
    ]
    assert list(response.content) == list(SIX)
    assert response.usage is not None
    assert response.usage.input_tokens == 20
    assert response.metadata["request_ids"] == ["req_4", "req_3"]
    assert response.metadata["requests"] == 3


async def test_a_half_that_is_still_too_long_fails(router: respx.MockRouter) -> None:
    """Splitting happens once; the error is the server's."""
    route = router.post(URL).mock(side_effect=overflow(3))
    with pytest.raises(DecisionHTTPError, match="max_tokens_exceeded") as caught:
        await ask(SIX)
    assert (caught.value.status, route.call_count) == (400, 2)


async def test_a_single_pair_that_is_too_long_is_not_asked_again(
    router: respx.MockRouter,
) -> None:
    """There is nothing to halve, and the same request would fail again."""
    route = router.post(URL).mock(side_effect=overflow(1))
    with pytest.raises(DecisionHTTPError, match="max_tokens_exceeded"):
        await ask()
    assert route.call_count == 1


async def test_halves_answered_by_two_models_have_no_known_profile(
    router: respx.MockRouter,
) -> None:
    """When an alias moves between two requests, doubt keeps more."""
    models = iter(["jev-1.13.0", "jev-1.14.0"])
    router.post(URL).mock(side_effect=lambda request: answer(request, model=next(models)))
    response = await ask(SIX, max_questions=4)
    assert response.model == "jev-1.13.0 + jev-1.14.0"
    assert JevDecisionModel(KEY).thresholds_for(response.model) == (0.05, 0.1)


async def test_questions_per_request_are_limited(router: respx.MockRouter) -> None:
    """Gateways have their own limits; a pair is never parted."""
    route = router.post(URL).mock(side_effect=answer)
    await ask(SIX, max_questions=3)
    asked = [list(json.loads(call.request.content)["questions"]) for call in route.calls]
    assert asked == [
        ["call_t1", "result_t1"],
        ["result_t2", "other", "call_t2"],
        ["call_t3", "result_t3"],
    ]


async def test_extra_answers_are_ignored_with_a_warning(
    router: respx.MockRouter, caplog: pytest.LogCaptureFixture
) -> None:
    """The count is logged, not the content."""
    answers = {name: {"type": "noul", "noul": 0} for name in [*PAIR, "x-marker"]}
    router.post(URL).respond(json={"model": "m", "answers": answers})
    assert list((await ask()).content) == list(PAIR)
    assert "ignored 1 answers" in caplog.text
    assert "x-marker" not in caplog.text


async def test_endpoint_model_and_headers_are_configurable(router: respx.MockRouter) -> None:
    """A gateway with another path, name and key header; the key of its own header is hidden."""
    url = "https://gateway.example/api/alpha/decisions"
    route = router.post(url).mock(side_effect=answer)
    headers = {"X-API-Key": "gateway-marker", "X-Title": "compaction"}
    model = JevDecisionModel(model="typesafe/jev-1.13", endpoint=url, headers=headers)
    async with model:
        await model("a text", PAIR)
    request = route.calls.last.request
    assert request.headers["x-api-key"] == "gateway-marker"
    assert "authorization" not in request.headers
    assert json.loads(request.content)["model"] == "typesafe/jev-1.13"
    assert json.loads(request.content)["state"] == "a text"
    assert "gateway-marker" not in repr(model) + repr(vars(model))


async def test_a_client_passed_in_is_used_and_left_open(router: respx.MockRouter) -> None:
    """Its own authorisation does not replace the key; its owner closes it."""
    route = router.post(URL).mock(side_effect=answer)
    async with httpx.AsyncClient(auth=("user", "fake")) as client:
        await ask(http_client=client)
        assert not client.is_closed
        await ask(http_client=client)
    assert route.calls.last.request.headers["authorization"] == f"Bearer {KEY}"
    with pytest.raises(DecisionModelError, match="closed"):
        await ask(http_client=client)


async def test_a_closed_model_opens_again(router: respx.MockRouter) -> None:
    """``aclose`` ends connections, not the model; closing twice is harmless."""
    router.post(URL).mock(side_effect=answer)
    model = JevDecisionModel(KEY)
    await model(STATE, PAIR)
    await model.aclose()
    await model.aclose()
    await model(STATE, PAIR)
    await model.aclose()


def test_one_model_serves_several_event_loops(router: respx.MockRouter) -> None:
    """Each loop has its own connections."""
    router.post(URL).mock(side_effect=answer)
    model = JevDecisionModel(KEY)

    async def once() -> str:
        async with model:
            return (await model(STATE, PAIR)).model

    assert [asyncio.run(once()) for _ in range(2)] == ["jev-1.13.0"] * 2


async def test_cancellation_passes_through(router: respx.MockRouter) -> None:
    """The caller's own deadline works by cancelling, and no retry swallows it."""
    begun = asyncio.Event()
    tries = 0

    async def hang(request: httpx.Request) -> httpx.Response:
        nonlocal tries
        tries += 1
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    router.post(URL).mock(side_effect=hang)
    task = asyncio.create_task(ask(max_retries=3))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tries == 1


async def test_the_key_and_the_bodies_are_in_no_log(
    router: respx.MockRouter, caplog: pytest.LogCaptureFixture
) -> None:
    """With every logger at DEBUG, through success, retry, refusal and malformed answers."""
    caplog.set_level(logging.DEBUG)
    outcomes: list[httpx.Response | Exception] = [
        httpx.Response(429, headers={"retry-after": "0"}, json={"error": f"slow {KEY}"}),
        httpx.ReadError(KEY),
    ]
    router.post(URL).mock(side_effect=failing(*outcomes))
    await ask(max_retries=2)
    for body in ({"model": "m", "answers": {}, "echo": [KEY, STATE]}, {"error": KEY}):
        router.post(URL).respond(200 if "model" in body else 401, json=body)
        with pytest.raises(DecisionModelError) as caught:
            await ask()
        assert KEY not in repr(caught.value)
    assert "retry 1 in" in caplog.text
    assert KEY not in caplog.text
    assert "state-marker" not in caplog.text


@pytest.mark.parametrize("show", [repr, str, lambda model: repr(vars(model))])
def test_the_key_is_not_shown(show: Callable[[object], str]) -> None:
    """Neither by the model nor by what it holds."""
    assert KEY not in show(JevDecisionModel(KEY, headers={"x-extra": KEY}))


def test_a_key_is_not_pickled() -> None:
    """A model is not serialisable, so no key is written with it."""
    with pytest.raises(Exception, match="pickle"):
        pickle.dumps(JevDecisionModel(KEY))


@pytest.mark.parametrize(
    ("variables", "arguments", "expected"),
    [
        ({"TYPESAFE_API_KEY": "a"}, {}, ("a", "https://api.typesafe.ai", "jev-1.13.0")),
        (
            {
                "TYPESAFE_API_KEY": "a",
                "TYPESAFE_BASE_URL": "https://t",
                "TYPESAFE_DEFAULT_MODEL": "jev-latest",
            },
            {},
            ("a", "https://t", "jev-latest"),
        ),
        (
            {
                "TYPESAFE_API_KEY": "a",
                "DECISION_MODEL_API_KEY": " b ",
                "DECISION_MODEL_BASE_URL": "https://d",
                "DECISION_MODEL_NAME": "n",
            },
            {},
            ("b", "https://d", "n"),
        ),
        ({"TYPESAFE_API_KEY": "a", "DECISION_MODEL_API_KEY": " "}, {}, ("a", ..., ...)),
        (
            {"DECISION_MODEL_API_KEY": "b", "DECISION_MODEL_NAME": "n"},
            {"api_key": SecretStr("c"), "base_url": "https://x", "model": "y"},
            ("c", "https://x", "y"),
        ),
    ],
)
async def test_the_environment_fills_in_arguments(
    router: respx.MockRouter,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    arguments: dict[str, Any],
    expected: tuple[Any, ...],
) -> None:
    """Arguments win, then the seed's variables, then TypeSafe's own; blank is unset."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    key, base, name = expected
    base = "https://api.typesafe.ai" if base is ... else base
    route = router.post(f"{base}/v1/systemone").mock(side_effect=answer)
    async with JevDecisionModel(**arguments) as model:
        await model(STATE, PAIR)
    assert route.calls.last.request.headers["authorization"] == f"Bearer {key}"
    assert name is ... or model.model == name


@pytest.mark.parametrize(
    "settings",
    [
        {"api_key": None},
        {"api_key": ""},
        {"api_key": "a b"},
        {"base_url": "http://host"},
        {"endpoint": "https://u:fake@host/"},
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"timeout": float("inf")},
        {"timeout": True},
        {"timeout": 10**400},
        {"retry_delay": 10**400},
        {"headers": [("x-a", "b")]},
        {"headers": "x-a: b"},
        {"retry_delay": -1},
        {"max_retries": -1},
        {"max_retries": True},
        {"max_questions": 1},
        {"headers": {"a": "b\n"}},
        {"headers": {" a": "b"}},
        {"headers": {"a": 1}},
        *(
            {name: value}
            for name in ("timeout", "max_retries", "retry_delay", "max_questions")
            for value in ("2", b"2", [2], float("-inf"))
        ),
        {"timeout": None},
        {"retry_delay": None},
        {"max_retries": None},
        {"max_retries": 1.5},
        {"max_questions": 2.0},
        *({name: 5} for name in ("api_key", "base_url", "endpoint", "model")),
        *({name: b"https://h/"} for name in ("api_key", "base_url", "endpoint", "model")),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any]) -> None:
    """At construction, before anything is opened."""
    with pytest.raises(ConfigurationError):
        JevDecisionModel(**{"api_key": KEY, **settings})


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("jev-1.13.0", (0.1, 0.2)),
        ("jev-1.14.0", (0.1, 0.2)),
        ("typesafe/jev-1.13-20260917", (0.1, 0.2)),
        ("typesafe/jev-1.14", (0.1, 0.2)),
        ("jev-1.13.1", (0.05, 0.1)),
        ("jev-1.15.0", (0.05, 0.1)),
        ("jev-2.0.0", (0.05, 0.1)),
        ("jev-latest", (0.05, 0.1)),
        ("xjev-1.13.0", (0.05, 0.1)),
    ],
)
def test_thresholds_belong_to_a_version(
    name: str, profile: tuple[float, float], caplog: pytest.LogCaptureFixture
) -> None:
    """An unknown version is warned about once and keeps more."""
    model = JevDecisionModel(KEY, model=name)
    assert model.thresholds == Thresholds(*profile)
    assert [model.thresholds_for(name) for _ in range(2)] == [Thresholds(*profile)] * 2
    assert len(caplog.records) == (profile == (0.05, 0.1))


def test_the_client_is_a_decision_model() -> None:
    """It fits the seam, accepts a deadline and is not local."""
    model = JevDecisionModel(KEY)
    assert isinstance(model, DecisionModel)
    assert isinstance(model, ClassifierModelBase)
    assert (model.accepts_deadline, model.local) == (True, False)
