"""The client against servers that break the protocol itself, are silent, or are not there."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agentscope_compaction.errors import (
    DecisionAnswerError,
    DecisionHTTPError,
    DecisionModelError,
    DecisionTimeoutError,
)
from agentscope_compaction.models.jev import JevDecisionModel
from tests.models.jev_calls import KEY, SERVED, ask_server, pairs

pytestmark = pytest.mark.anyio

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
            await ask_server(url, timeout=0.2)
    assert len(seen) == 2
    assert b"x-typesafe-retry-count: 1" in seen[1].lower()
    assert "marker" not in str(caught.value)
    assert KEY not in caplog.text


async def test_an_endless_body_is_cut_off() -> None:
    """Reading stops at the limit, whatever length was announced."""
    body = HEAD + b"Content-Length: 99999999\r\n\r\n" + b" " * (1024 * 1024 + 70_000)
    async with raw_server(sending(body, "hang")) as (url, seen):
        with pytest.raises(DecisionAnswerError, match="too large"):
            await ask_server(url)
    assert len(seen) == 1


async def test_a_body_without_length_that_ends_early_is_not_an_answer() -> None:
    """Closing the connection may end a body, so only its content can tell that half is missing."""
    async with raw_server(sending(HEAD + b'\r\n{"model": "m", "answers": {')) as (url, seen):
        with pytest.raises(DecisionAnswerError):
            await ask_server(url)
    assert len(seen) == 1


async def test_a_slow_body_counts_against_the_deadline() -> None:
    """The caller's deadline ends even a request whose own timeout is long."""
    async with raw_server(sending(HEAD, "hang")) as (url, seen):
        model = JevDecisionModel(base_url=url, timeout=60, max_retries=5)
        loop = asyncio.get_running_loop()
        started = loop.time()
        with pytest.raises(DecisionTimeoutError, match="deadline"):
            await model(SERVED, pairs(1), deadline=started + 0.2)
        assert loop.time() - started < 10
        await model.aclose()
    assert len(seen) == 1


async def test_nobody_listens() -> None:
    """A refused connection is an HTTP error without status."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(DecisionHTTPError, match="ConnectError") as caught:
            await ask_server(url)
    assert caught.value.status is None
