"""The client against real servers on loopback: conforming, faulty, busy, slow and broken ones."""

import asyncio
import logging
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from agentscope.classifier import (
    BinaryAnswer,
    BinaryCriteria,
    BinaryQuestion,
    ClassifierResponse,
    JevClassifierModel,
)
from agentscope.credential import TypeSafeCredential
from jevcompat.mock import FAULTS, MockConfig  # type: ignore[import-untyped]
from jevcompat.mock import Running as ReferenceServer

from agentscope_compaction.errors import (
    DecisionAnswerError,
    DecisionHTTPError,
    DecisionModelError,
    DecisionTimeoutError,
)
from agentscope_compaction.models.jev import JevDecisionModel

pytestmark = pytest.mark.anyio

KEY = "sk-test-0123456789abcdef"
STATE: dict[str, Any] = {"goal": "Fix it", "calls": {"t1": {"tool": "Read", "result": "ok"}}}


class Running(ReferenceServer):  # type: ignore[misc]
    """The reference server, noticing at once that it should end."""

    def __init__(self, config: MockConfig | None = None) -> None:
        super().__init__(config)
        serve = self.server.serve_forever
        self.thread = threading.Thread(target=serve, args=(0.005,), daemon=True)


def pairs(count: int) -> dict[str, BinaryQuestion]:
    """Two questions for each of so many calls."""
    criteria = BinaryCriteria(true="It is needed.", false="It is not needed.")
    return {
        f"{kind}_t{n}": BinaryQuestion(instructions=f"Is {kind} {n} needed?", criteria=criteria)
        for n in range(1, count + 1)
        for kind in ("call", "result")
    }


async def ask(url: str, count: int = 1, state: Any = STATE, **settings: Any) -> ClassifierResponse:
    """One call of a fresh client."""
    defaults: dict[str, Any] = {"api_key": KEY, "retry_delay": 0}
    async with JevDecisionModel(base_url=url, **(defaults | settings)) as model:
        return await model(state, pairs(count))


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
            response = await ask(server.url)
            assert list(response.content) == ["call_t1", "result_t1"]
            for answer in response.content.values():
                assert isinstance(answer, BinaryAnswer)
                assert 0 <= answer.probability <= 1
            assert (response.usage is None) == (fault == "no-usage")
            assert ("ignored 1 answers" in caplog.text) == (fault == "extra-answer")
            assert response.metadata["request_id"] == "req_mock"
        else:
            with pytest.raises(expected[0]) as caught:
                await ask(server.url)
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
            await ask(server.url, **settings)
    assert (caught.value.status, caught.value.request_id) == (status, "req_mock")
    assert message in str(caught.value)


async def test_a_busy_server_is_asked_again() -> None:
    """Every second request gets a 429; as with the official client, all six calls succeed."""
    config = MockConfig(busy_every=2)
    with Running(config) as server:
        for _ in range(6):
            await ask(server.url)
    assert config.requests == 11


async def test_a_server_that_stays_busy_is_given_up() -> None:
    """Retries are bounded."""
    config = MockConfig(busy_every=1)
    with Running(config) as server:
        with pytest.raises(DecisionHTTPError) as caught:
            await ask(server.url, max_retries=3)
    assert (caught.value.status, config.requests) == (429, 4)
    assert "slow down" in str(caught.value)


async def test_hundreds_of_questions_in_one_request_or_many() -> None:
    """Splitting does not change a single answer."""
    with Running() as server:
        whole = await ask(server.url, 100)
        parts = await ask(server.url, 100, max_questions=64)
    assert whole.content == parts.content
    assert (whole.metadata["requests"], parts.metadata["requests"]) == (1, 4)


async def test_agentscopes_own_client_gets_the_same_answers() -> None:
    """The two are interchangeable: same questions on the wire, same response type."""
    questions = pairs(5)
    with Running(MockConfig(key=KEY)) as server:
        ours = await ask(server.url, 5, model="jev-latest")
        credential = TypeSafeCredential(api_key=KEY, base_url=server.url)
        theirs_model = JevClassifierModel(credential)
        theirs = await theirs_model(STATE, questions)
        await theirs_model.client.aclose()
    assert ours.content == theirs.content
    assert ours.model == theirs.model
    assert ours.usage is not None
    assert theirs.usage is not None
    assert ours.usage.input_tokens == theirs.usage.input_tokens


# A second, independent server with its own limits


@pytest.fixture(scope="module")
def dev_double() -> Iterator[str]:
    """``dev-double serve --engine mock`` on a free port; ended with the module."""
    command = shutil.which("dev-double", path=str(Path(sys.executable).parent))
    if command is None:
        pytest.skip("dev-double is not installed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [command, "serve", "--engine", "mock", "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _await_port(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def _await_port(process: subprocess.Popen[bytes], port: int) -> None:
    limit = time.monotonic() + 30
    while time.monotonic() < limit and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("dev-double did not start")


async def test_dev_double_answers_its_limit(dev_double: str) -> None:
    """64 questions at once are the portable maximum."""
    response = await ask(dev_double, 32, api_key="")
    assert len(response.content) == 64


async def test_dev_double_refuses_one_pair_more_unless_split(dev_double: str) -> None:
    """Its flat error shape is read, and the limit can be configured."""
    with pytest.raises(DecisionHTTPError) as caught:
        await ask(dev_double, 33)
    assert caught.value.status == 400
    assert "64" in str(caught.value)
    response = await ask(dev_double, 33, max_questions=64)
    assert len(response.content) == 66


async def test_dev_double_refuses_a_large_body(dev_double: str) -> None:
    """413 is not retried, and its words reach the caller."""
    with pytest.raises(DecisionHTTPError) as caught:
        await ask(dev_double, 1, state={"goal": "x" * 70_000})
    assert caught.value.status == 413
    assert "64 KiB" in str(caught.value)
    assert "xxx" not in str(caught.value)


# Servers that break the protocol itself

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
Behaviour = Callable[[asyncio.StreamWriter], Any]


@asynccontextmanager
async def raw_server(behave: Behaviour) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Read one request per connection, then do as told; also yields the requests."""
    seen: list[bytes] = []
    done = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if b"content-length" in line)
        await reader.readexactly(int(length.partition(b":")[2]))
        seen.append(head)
        if await behave(writer) == "hang":
            await done.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", seen
    finally:
        done.set()
        server.close()
        await server.wait_closed()


def sending(data: bytes, then: str = "") -> Behaviour:
    """Send these bytes, then close or hang."""

    async def behave(writer: asyncio.StreamWriter) -> str:
        writer.write(data)
        await writer.drain()
        return then

    return behave


async def resetting(writer: asyncio.StreamWriter) -> None:
    """End the connection with a reset."""
    writer.transport.abort()


@pytest.mark.parametrize(
    ("behave", "error"),
    [
        (resetting, DecisionHTTPError),
        (sending(b""), DecisionHTTPError),
        (sending(b"garbage-marker\r\n\r\n"), DecisionHTTPError),
        (sending(HEAD + b"Content-Length: 100\r\n\r\n{}"), DecisionHTTPError),
        (sending(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"), DecisionHTTPError),
        (
            sending(HEAD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"),
            DecisionHTTPError,
        ),
        (sending(b"", "hang"), DecisionTimeoutError),
        (sending(HEAD, "hang"), DecisionTimeoutError),
        (sending(HEAD + b"Content-Length: 100\r\n\r\n{", "hang"), DecisionTimeoutError),
    ],
)
async def test_a_broken_connection_is_retried_then_named(
    behave: Behaviour, error: type[DecisionModelError], caplog: pytest.LogCaptureFixture
) -> None:
    """Resets, silence, half a body and nonsense end in one documented error, in bounded time."""
    caplog.set_level(logging.DEBUG)
    async with raw_server(behave) as (url, seen):
        with pytest.raises(error) as caught:
            await ask(url, timeout=0.2)
    assert len(seen) == 2
    assert b"x-typesafe-retry-count: 1" in seen[1].lower()
    assert "marker" not in str(caught.value)
    assert KEY not in caplog.text


async def test_an_endless_body_is_cut_off() -> None:
    """Reading stops at the limit, whatever length was announced."""
    body = HEAD + b"Content-Length: 99999999\r\n\r\n" + b" " * (1024 * 1024 + 70_000)
    async with raw_server(sending(body, "hang")) as (url, seen):
        with pytest.raises(DecisionAnswerError, match="too large"):
            await ask(url)
    assert len(seen) == 1


async def test_a_body_without_length_that_ends_early_is_not_an_answer() -> None:
    """Closing the connection may end a body, so only its content can tell that half is missing."""
    async with raw_server(sending(HEAD + b'\r\n{"model": "m", "answers": {')) as (url, _):
        with pytest.raises(DecisionAnswerError):
            await ask(url)


async def test_a_slow_body_counts_against_the_deadline() -> None:
    """The caller's deadline ends even a request whose own timeout is long."""
    async with raw_server(sending(HEAD, "hang")) as (url, seen):
        model = JevDecisionModel(base_url=url, timeout=60, max_retries=5)
        loop = asyncio.get_running_loop()
        started = loop.time()
        with pytest.raises(DecisionTimeoutError, match="deadline"):
            await model(STATE, pairs(1), deadline=started + 0.2)
        assert loop.time() - started < 10
        await model.aclose()
    assert len(seen) == 1


async def test_nobody_listens() -> None:
    """A refused connection is an HTTP error without status."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(DecisionHTTPError, match="ConnectError") as caught:
            await ask(url)
    assert caught.value.status is None


async def test_a_loopback_server_is_reached_without_the_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A proxy would see the key in plain http, and has another loopback."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with Running() as server:
        assert (await ask(server.url)).model
