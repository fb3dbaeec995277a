"""Answers that are known before the body has arrived reach the client all the same."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.service.conftest import Start, error_of

JSON = {"Content-Type": "application/json"}
PIECE = b" " * 65_536
PIECES = 128


def pieces() -> Iterator[bytes]:
    """Eight megabytes, more than the sockets between client and server hold."""
    yield from [PIECE] * PIECES


@pytest.mark.parametrize("declared", [True, False])
def test_every_client_gets_its_413(start: Start, declared: bool) -> None:
    """Twenty clients that first send all of a large body and then listen are all answered."""
    client = start(max_body_bytes=1_000)

    def send(_: int) -> tuple[int, str]:
        body: Any = PIECE * PIECES if declared else pieces()
        url = client.base_url.join("/compact_context")
        return error_of(httpx.post(url, content=body, headers=JSON, trust_env=False, timeout=30))

    with ThreadPoolExecutor(5) as pool:
        assert set(pool.map(send, range(20))) == {(413, "BodyTooLarge")}


@pytest.mark.parametrize(
    ("settings", "headers", "refusal"),
    [
        ({"token": "s3cret"}, JSON, (401, "Unauthorized")),
        ({}, {"Content-Type": "text/plain"}, (415, "UnsupportedMediaType")),
        ({"allowed_hosts": []}, {**JSON, "Host": "evil.example"}, (421, "ForeignHost")),
    ],
)
def test_other_early_answers_arrive(
    start: Start, settings: dict[str, Any], headers: dict[str, str], refusal: tuple[int, str]
) -> None:
    """So do the other answers that need no body, also where the client closes afterwards."""
    client = start(**settings)
    for connection in ("close", "keep-alive"):
        answer = client.post(
            "/compact_context",
            content=PIECE * PIECES,
            headers={**headers, "Connection": connection},
        )
        assert error_of(answer) == refusal
    assert client.get("/health", headers={"Host": "localhost"}).status_code == 200


def test_a_client_that_never_ends_is_left(start: Start) -> None:
    """The rest of a body is thrown away for a bounded time, then the connection is closed."""
    client = start(max_body_bytes=1_000, timeout_seconds=0.5)
    head = (
        "POST /compact_context HTTP/1.1\r\nHost: localhost\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    address = (client.base_url.host, client.base_url.port or 0)
    began = time.monotonic()
    with socket.create_connection(address, 20) as raw, pytest.raises(OSError):
        raw.sendall(head.encode())
        while time.monotonic() < began + 20:
            raw.sendall(b"800\r\n" + b" " * 0x800 + b"\r\n")
    assert time.monotonic() < began + 15


def test_a_client_that_waits_is_answered_at_once(start: Start) -> None:
    """Who asks before sending a body is refused without having to send it."""
    client = start(max_body_bytes=1_000)
    head = (
        "POST /compact_context HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"
    )
    address = (client.base_url.host, client.base_url.port or 0)
    with socket.create_connection(address, 20) as raw:
        raw.sendall(head.encode())
        assert raw.recv(65_536).startswith(b"HTTP/1.1 413 ")
