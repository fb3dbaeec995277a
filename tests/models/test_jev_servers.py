"""The client against the reference server on loopback: conforming, faulty, busy, past a proxy."""

import logging
from typing import Any

import pytest
from agentscope.classifier import BinaryAnswer, JevClassifierModel
from agentscope.credential import TypeSafeCredential
from jevcompat.mock import FAULTS  # type: ignore[import-untyped]

from agentscope_compaction.errors import DecisionAnswerError, DecisionHTTPError, DecisionModelError
from tests.models.jev_calls import KEY, SERVED, ask_server, pairs
from tests.servers import MockConfig, Running

pytestmark = pytest.mark.anyio

# What each fault of the reference server makes of one call: the error, or None for an answer.
REFUSED: dict[str, tuple[type[DecisionModelError], int | None]] = {
    "wrong-route": (DecisionHTTPError, 404),
    "auth-rejects-header": (DecisionHTTPError, 401),
    "xssi-200": (DecisionAnswerError, None),
    "first-question-only": (DecisionAnswerError, None),
    "boolean-type": (DecisionAnswerError, None),
    "noul-range": (DecisionAnswerError, None),
    "nan": (DecisionAnswerError, None),
}
WITH_KEY: dict[str, tuple[type[DecisionModelError], int | None]] = REFUSED | {
    "auth-x-api-key": (DecisionHTTPError, 403),
}
del WITH_KEY["auth-rejects-header"]  # a server that wants a key takes the header


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("fault", [None, *FAULTS])
async def test_every_fault_is_survived_or_refused(
    fault: str | None, key: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """No fault yields a wrong answer, a hang or another exception, and no log shows the key."""
    caplog.set_level(logging.DEBUG)
    expected = (WITH_KEY if key else REFUSED).get(fault or "")
    config = MockConfig(key=key, faults=frozenset([fault] if fault else []))
    with Running(config) as server:
        if expected is None:
            response = await ask_server(server.url)
            assert list(response.content) == ["call_t1", "result_t1"]
            for answer in response.content.values():
                assert isinstance(answer, BinaryAnswer)
                assert 0 <= answer.probability <= 1
            assert (response.usage is None) == (fault == "no-usage")
            assert ("ignored 1 answers" in caplog.text) == (fault == "extra-answer")
            assert response.metadata["request_id"] == "req_mock"
        else:
            with pytest.raises(expected[0]) as caught:
                await ask_server(server.url)
            assert getattr(caught.value, "status", None) == expected[1]
            assert KEY not in str(caught.value)
        assert config.requests <= 1
    assert KEY not in caplog.text
    assert "Fix it" not in caplog.text


@pytest.mark.parametrize(
    ("fault", "settings", "status", "message"),
    [
        (None, {"api_key": ""}, 403, "Must supply an API key!"),
        (None, {"api_key": "sk-test-wrong"}, 401, "Cannot authenticate with the server."),
        (None, {"model": "unknown"}, 400, "Unknown model: unknown"),
        ("auth-plain", {"api_key": ""}, 401, "answered 401 [request"),
        ("auth-invalid-403-text", {"api_key": "sk-test-wrong"}, 401, "bad key"),
        ("reject-jev-latest", {"model": "jev-latest"}, 404, "Model not served"),
        ("error-flat", {"model": "unknown"}, 400, "Unknown model: unknown"),
        ("text-errors", {"model": "unknown"}, 400, "answered 400 [request"),
        ("plain-content-type", {"model": "unknown"}, 400, "Unknown model: unknown"),
        ("validation-400", {"state": 3}, 400, "Input should be a valid string"),
        ("text-errors", {"state": 3}, 422, "answered 422 [request"),
        (None, {"state": 3}, 422, "state: Input should be a valid string"),
    ],
)
async def test_refusals_carry_the_servers_words(
    fault: str | None, settings: dict[str, Any], status: int, message: str
) -> None:
    """Status, request id and short message reach the caller, from every error shape."""
    config = MockConfig(key=KEY, faults=frozenset([fault] if fault else []))
    with Running(config) as server:
        with pytest.raises(DecisionHTTPError) as caught:
            await ask_server(server.url, **settings)
    assert (caught.value.status, caught.value.request_id) == (status, "req_mock")
    assert message in str(caught.value)


async def test_a_busy_server_is_asked_again() -> None:
    """Every second request gets a 429; as with the official client, all six calls succeed."""
    config = MockConfig(busy_every=2)
    with Running(config) as server:
        for _ in range(6):
            await ask_server(server.url)
    assert config.requests == 11


async def test_a_server_that_stays_busy_is_given_up() -> None:
    """Retries are bounded."""
    config = MockConfig(busy_every=1)
    with Running(config) as server:
        with pytest.raises(DecisionHTTPError) as caught:
            await ask_server(server.url, max_retries=3)
    assert (caught.value.status, config.requests) == (429, 4)
    assert "slow down" in str(caught.value)


async def test_hundreds_of_questions_in_one_request_or_many() -> None:
    """Splitting does not change a single answer."""
    with Running() as server:
        whole = await ask_server(server.url, 100)
        parts = await ask_server(server.url, 100, max_questions=64)
    assert whole.content == parts.content
    assert (whole.metadata["requests"], parts.metadata["requests"]) == (1, 4)


async def test_agentscopes_own_client_gets_the_same_answers() -> None:
    """The two are interchangeable: same questions on the wire, same response type."""
    questions = pairs(5)
    with Running(MockConfig(key=KEY)) as server:
        ours = await ask_server(server.url, 5, model="jev-latest")
        credential = TypeSafeCredential(api_key=KEY, base_url=server.url)
        theirs_model = JevClassifierModel(credential)
        theirs = await theirs_model(SERVED, questions)
        await theirs_model.client.aclose()
    assert ours.content == theirs.content
    assert ours.model == theirs.model
    assert ours.usage is not None
    assert theirs.usage is not None
    assert ours.usage.input_tokens == theirs.usage.input_tokens
    assert ours.usage.output_tokens == theirs.usage.output_tokens


async def test_a_loopback_server_is_reached_without_the_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A proxy would see the key in plain http, and has another loopback."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    config = MockConfig()
    with Running(config) as server:
        response = await ask_server(server.url)
    assert list(response.content) == ["call_t1", "result_t1"]
    assert config.requests == 1
