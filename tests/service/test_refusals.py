"""Every status but 200, each provoked over a real connection."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from typing import Any

import pytest

from agentscope_compaction import (
    ConfigurationError,
    DecisionAnswerError,
    DecisionHTTPError,
    DecisionModelError,
    DecisionTimeoutError,
    ObservationBudgetError,
)
from agentscope_compaction.service import create_app
from agentscope_compaction.service.failures import ErrorType
from agentscope_compaction.testing import ScriptedDecisionModel
from tests.service.conftest import Start

JSON = {"Content-Type": "application/json"}


def _error(response: Any) -> tuple[int, str]:
    body = response.json()
    assert body["success"] is False
    assert set(body["error"]) == {"type", "message"}
    assert ErrorType(body["error"]["type"])
    assert body["error"]["message"]
    return response.status_code, body["error"]["type"]


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
        assert _error(response) == (400, "MalformedJSON"), name


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
        assert _error(response) == (422, "InvalidSnapshotError"), name


def test_too_deep_is_422(start: Start, snapshot: dict[str, Any]) -> None:
    """A history nested deeper than any proposal can be is refused."""
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    snapshot["messages"][0]["extra"] = deep
    response = start().post("/compact_context", json=snapshot)
    assert _error(response) == (422, "InvalidSnapshotError")


def test_budget_is_422(start: Start, snapshot: dict[str, Any]) -> None:
    """A view that does not fit the request's own budget is the request's fault."""
    snapshot["options"]["max_state_tokens"] = 1
    response = start().post("/compact_context", json=snapshot)
    assert _error(response) == (422, "ObservationBudgetError")


def test_declared_size_is_413(start: Start, snapshot: dict[str, Any]) -> None:
    """A body whose declared size is too large is refused."""
    response = start(max_body_bytes=100).post("/compact_context", json=snapshot)
    assert _error(response) == (413, "BodyTooLarge")


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
    assert _error(response) == (415, "UnsupportedMediaType")


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer wrong", "Basic s3cret", "s3cret", "Bearer é"]
)
def test_wrong_token_is_401(start: Start, header: str | None) -> None:
    """Without the token nothing is read, not even to say what is wrong with it."""
    client = start(token="s3cret")
    headers = [] if header is None else [(b"Authorization", header.encode("latin-1"))]
    response = client.post("/compact_context", content=b"not json", headers=headers)
    assert _error(response) == (401, "Unauthorized")
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("header", ["Bearer s3cret", "bearer s3cret", "BEARER  s3cret"])
def test_right_token(start: Start, snapshot: dict[str, Any], header: str) -> None:
    """The token opens the service; the scheme's case does not count."""
    client = start(token="s3cret")
    response = client.post("/compact_context", json=snapshot, headers={"Authorization": header})
    assert response.status_code == 200


FAILURES = [
    (DecisionModelError("it failed"), 502, "DecisionModelError"),
    (DecisionHTTPError("status 429", status=429), 502, "DecisionHTTPError"),
    (DecisionAnswerError("no answer"), 502, "DecisionAnswerError"),
    (DecisionTimeoutError("late"), 504, "DecisionTimeoutError"),
    (ObservationBudgetError("too large"), 422, "ObservationBudgetError"),
    (ConfigurationError("no such package"), 500, "InternalError"),
]


@pytest.mark.parametrize(("error", "status", "kind"), FAILURES)
def test_failing_model(
    start: Start, snapshot: dict[str, Any], error: Exception, status: int, kind: str
) -> None:
    """A model's failure is answered with the status of its kind."""

    async def model(state: object, questions: object) -> Any:
        raise error

    response = start(model).post("/compact_context", json=snapshot)
    assert _error(response) == (status, kind)


def test_foreign_error_says_nothing(
    start: Start, snapshot: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """An unforeseen failure of a model never shows its text, to the client or in the log."""

    async def model(state: object, questions: object) -> Any:
        raise RuntimeError("the key is sk-123")

    with caplog.at_level(logging.DEBUG):
        response = start(model).post("/compact_context", json=snapshot)
    assert response.status_code == 502
    assert "sk-123" not in response.text + caplog.text


def test_deadline_is_504(start: Start, snapshot: dict[str, Any]) -> None:
    """The service's own deadline ends the work."""
    cancelled: list[bool] = []

    async def model(state: object, questions: object) -> Any:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    response = start(model, timeout_seconds=0.3).post("/compact_context", json=snapshot)
    assert _error(response) == (504, "DeadlineExceeded")
    assert cancelled == [True]


def test_own_deadline_is_504(start: Start, snapshot: dict[str, Any]) -> None:
    """The deadline that the request's options set ends the work too."""

    async def model(state: object, questions: object) -> Any:
        await asyncio.sleep(60)

    snapshot["options"]["total_timeout_seconds"] = 0.1
    response = start(model).post("/compact_context", json=snapshot)
    assert _error(response) == (504, "DecisionTimeoutError")


def test_unknown_path_and_method(start: Start) -> None:
    """Other paths and methods are answered in the same form."""
    client = start()
    assert _error(client.get("/elsewhere")) == (404, "NotFound")
    response = client.get("/compact_context")
    assert _error(response) == (405, "MethodNotAllowed")
    assert response.headers["allow"] == "POST"


@pytest.mark.parametrize(
    "settings",
    [
        {"max_body_bytes": 0},
        {"max_concurrent": True},
        {"timeout_seconds": float("nan")},
        {"timeout_seconds": 0},
        {"token": ""},
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
    assert _error(response) == (422, "InvalidSnapshotError")
