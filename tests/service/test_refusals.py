"""Every status but 200, each provoked over a real connection."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from agentscope_compaction import ConfigurationError
from agentscope_compaction.core.jsontext import MAX_DEPTH
from agentscope_compaction.service import create_app
from agentscope_compaction.testing import ScriptedDecisionModel
from tests.service.conftest import Start, error_of

JSON = {"Content-Type": "application/json"}


MALFORMED = {
    "empty": b"",
    "cut": b'{"goal": "x", "messages": [',
    "nan": b'{"goal": "x", "messages": [], "extra": NaN}',
    "infinity": b'{"goal": "x", "messages": [{"a": -Infinity}]}',
    "overflow": b'{"goal": "x", "messages": [{"a": 1e999}]}',
    "huge integer": b'{"goal": "x", "messages": [' + b"9" * 5000 + b"]}",
    "not utf-8": b'{"goal": "\xff"}',
    "utf-16": '{"goal": "x"}'.encode("utf-16"),
    "nested": b"[" * 100_000,
    "binary": bytes(range(256)),
}


def test_malformed_json_is_400(start: Start) -> None:
    """Bytes that are not JSON are refused, whatever is wrong with them."""
    client = start()
    for name, body in MALFORMED.items():
        response = client.post("/compact_context", content=body, headers=JSON)
        assert error_of(response) == (400, "MalformedJSON"), name


INVALID: dict[str, Any] = {
    "a list": [],
    "a string": "x",
    "null": None,
    "no messages": {"goal": "x"},
    "blank goal": {"goal": " ", "messages": []},
    "unknown field": {"goal": "x", "messages": [], "more": 1},
    "bad role": {"goal": "x", "messages": [{"role": "tool", "content": []}]},
    "string content": {"goal": "x", "messages": [{"role": "user", "content": "hi"}]},
    "bool threshold": {"goal": "x", "messages": [], "options": {"keep_threshold": True}},
    "unknown option": {"goal": "x", "messages": [], "options": {"speed": 1}},
}


def test_invalid_snapshot_is_422(start: Start) -> None:
    """JSON that is no snapshot is refused with what is wrong."""
    client = start()
    for name, body in INVALID.items():
        content = json.dumps(body).encode()
        response = client.post("/compact_context", content=content, headers=JSON)
        assert error_of(response) == (422, "InvalidSnapshotError"), name


def test_too_deep_is_422(start: Start, snapshot: dict[str, Any]) -> None:
    """A history nested deeper than any proposal can be is refused."""
    deep: Any = 1
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    snapshot["messages"][0]["extra"] = deep
    response = start().post("/compact_context", json=snapshot)
    assert error_of(response) == (422, "InvalidSnapshotError")


def test_budget_is_422(start: Start, snapshot: dict[str, Any]) -> None:
    """A view that does not fit the request's own budget is the request's fault."""
    snapshot["options"]["max_state_tokens"] = 1
    response = start().post("/compact_context", json=snapshot)
    assert error_of(response) == (422, "ObservationBudgetError")


def test_declared_size_is_413(start: Start, snapshot: dict[str, Any]) -> None:
    """A body whose declared size is too large is refused."""
    response = start(max_body_bytes=100).post("/compact_context", json=snapshot)
    assert error_of(response) == (413, "BodyTooLarge")


def test_streamed_size_is_413(start: Start) -> None:
    """A body without declared size is refused while it arrives, before it ends."""
    client = start(max_body_bytes=1000)
    head = (
        "POST /compact_context HTTP/1.1\r\nHost: localhost\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection((client.base_url.host, client.base_url.port or 0), 20) as raw:
        raw.sendall(head.encode() + b"800\r\n" + b" " * 0x800 + b"\r\n")
        answer = b""
        while block := raw.recv(65536):
            answer += block
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"BodyTooLarge" in answer


def test_slow_body_is_408(start: Start) -> None:
    """A body that does not arrive in time gives its place to others."""
    client = start(timeout_seconds=0.2, max_concurrent=1)
    head = (
        "POST /compact_context HTTP/1.1\r\nHost: localhost\r\n"
        "Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{"
    )
    with socket.create_connection((client.base_url.host, client.base_url.port or 0), 20) as raw:
        raw.sendall(head.encode())
        answer = raw.recv(65536)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert client.post("/compact_context", json={}).status_code == 422


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {**JSON, "Content-Encoding": "gzip"},
    ],
)
def test_other_content_is_415(start: Start, headers: dict[str, str]) -> None:
    """Only plain JSON is taken: what a browser sends to any address unasked is not."""
    response = start().post("/compact_context", content=b"{}", headers=headers)
    assert error_of(response) == (415, "UnsupportedMediaType")


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer wrong", "Basic s3cret", "s3cret", "Bearer é"]
)
def test_wrong_token_is_401(start: Start, header: str | None) -> None:
    """Without the token nothing is read, not even to say what is wrong with it."""
    client = start(token="s3cret")
    headers = [] if header is None else [(b"Authorization", header.encode("latin-1"))]
    response = client.post("/compact_context", content=b"not json", headers=headers)
    assert error_of(response) == (401, "Unauthorized")
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("header", ["Bearer s3cret", "bearer s3cret", "BEARER  s3cret"])
def test_right_token(start: Start, snapshot: dict[str, Any], header: str) -> None:
    """The token opens the service; the scheme's case does not count."""
    client = start(token="s3cret")
    response = client.post("/compact_context", json=snapshot, headers={"Authorization": header})
    assert response.status_code == 200


def test_unknown_path_and_method(start: Start) -> None:
    """Other paths and methods are answered in the same form."""
    client = start()
    for path in ("/elsewhere", "/health/", "/%00"):
        assert error_of(client.get(path)) == (404, "NotFound")
    assert error_of(client.post("/compact_context/", json={})) == (404, "NotFound")
    response = client.get("/compact_context")
    assert error_of(response) == (405, "MethodNotAllowed")
    assert response.headers["allow"] == "POST"


@pytest.mark.parametrize(
    "settings",
    [
        {"max_body_bytes": 0},
        {"max_concurrent": True},
        {"timeout_seconds": float("nan")},
        {"timeout_seconds": 0},
        {"timeout_seconds": "60"},
        {"timeout_seconds": None},
        {"max_body_bytes": "16M"},
        {"token": ""},
        {"token": b"bytes"},
        {"token": 3},
        {"token": "two words"},
        {"token": "schlüssel"},
    ],
)
def test_impossible_settings(settings: dict[str, Any]) -> None:
    """A setting that cannot work is refused before anything listens."""
    with pytest.raises(ConfigurationError):
        create_app(ScriptedDecisionModel(), **settings)


def test_error_text_is_ascii(start: Start) -> None:
    """An error that names a strange field is still ASCII JSON."""
    body = json.dumps({"goal": "x", "messages": [], "\ud800é": 1}).encode()
    response = start().post("/compact_context", content=body, headers=JSON)
    assert response.content.isascii()
    assert error_of(response) == (422, "InvalidSnapshotError")
