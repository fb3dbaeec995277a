"""What an error response says, and when a request is tried again."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentscope_compaction.models.wire_errors import (
    backoff,
    http_error,
    is_overflow,
    is_retryable,
    request_id,
    retry_after,
)

KEY = "sk-test-0123456789abcdef"
VALIDATION = {
    "detail": [
        {"loc": ["body", "questions", "call_t1"], "msg": "Field required", "input": "SECRET"},
        {"loc": ["body"], "msg": "Bad"},
        "text",
    ]
}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": "flat"}, "flat"),
        ({"error": {"message": "nested", "code": 400}}, "nested"),
        ({"message": "top", "error_type": "x"}, "top"),
        ({"detail": "plain"}, "plain"),
        ({"detail": {"error_type": "authentication_error", "message": "No key"}}, "No key"),
        ({"detail": {"error_type": "max_tokens_exceeded"}}, "max_tokens_exceeded"),
        (VALIDATION, "questions.call_t1: Field required; Bad"),
        ({"error": "two\n\tlines \x00 here"}, "two lines here"),
        ({"error": f"bad key {KEY}!"}, "bad key [redacted]!"),
        ({"error": "bad token ghp_" + "fake" * 9}, "bad token [redacted]"),
        ({"error": "x" * 5000}, "x" * 200),
    ],
)
def test_the_servers_short_message_is_repeated(body: Any, said: str) -> None:
    """Every shape that compatible servers send gives the message, capped and scrubbed."""
    error = http_error(400, {}, json.dumps(body).encode(), [KEY])
    assert str(error) == f"the decision service answered 400: {said}"


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>SECRET</html>", b"SECRET", b"[]", b'{"detail": [{"input": "SECRET"}]}', b"\xff"],
)
def test_a_body_without_a_message_is_not_repeated(body: bytes) -> None:
    """A body that is not in a known shape stays out of the error."""
    assert str(http_error(500, {}, body)) == "the decision service answered 500"


@pytest.mark.parametrize(
    ("headers", "reference"),
    [
        ({}, None),
        ({"X-TypeSafe-Request-Id": "req_1"}, "req_1"),
        ({"x-request-id": "req_2"}, "req_2"),
        ({"x-typesafe-request-id": "r" * 500}, "r" * 128),
        ({"x-typesafe-request-id": f"a\n{KEY}"}, "a [redacted]"),
    ],
)
def test_the_request_id_is_in_the_error(headers: dict[str, str], reference: str | None) -> None:
    """Support asks for the request id, so an error has it as attribute and in its text."""
    error = http_error(503, headers, b"", [KEY])
    assert (error.status, error.request_id) == (503, reference)
    assert request_id(headers, [KEY]) == reference
    assert reference is None or reference in str(error)


def test_a_redirect_says_so() -> None:
    """A moved server is a configuration to correct, not something to follow with a key."""
    assert "redirects are not followed" in str(http_error(307, {}, b""))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after-ms": "250"}, 0.25),
        ({"Retry-After-Ms": "250", "Retry-After": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9),
        ({"retry-after-ms": "-1", "retry-after": "9"}, 9),
        ({"retry-after-ms": "inf"}, None),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "later"}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:16:50 GMT"}, 10),
        ({"retry-after": "Thu, 01 Jan 1970 00:16:50 -0000"}, 10),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0),
        ({"retry-after": "Thu, 99 Jan 1970 00:00:00 GMT"}, None),
    ],
)
def test_every_form_of_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    """Milliseconds first, then seconds or a date; nonsense leaves the wait to the client."""
    assert retry_after(headers, now=1000) == seconds


@given(st.text(), st.text())
def test_any_header_value_is_a_wait_or_none(milliseconds: str, after: str) -> None:
    """No header makes the client wait forever or raise."""
    wait = retry_after({"retry-after-ms": milliseconds, "retry-after": after}, now=0)
    assert wait is None or 0 <= wait < float("inf")


def test_only_transient_statuses_are_retried() -> None:
    """408, 429 and every 5xx, 529 included."""
    retried = {status for status in range(100, 600) if is_retryable(status)}
    assert retried == {408, 429, *range(500, 600)}


def test_backoff_doubles_to_a_cap() -> None:
    """Half a second at first, never more than five."""
    assert [backoff(n, 0.5) for n in range(6)] == [0.5, 1, 2, 4, 5, 5]
    assert backoff(10_000, 0) == 0


@pytest.mark.parametrize(
    ("status", "body", "overflow"),
    [
        (400, {"detail": {"error_type": "max_tokens_exceeded"}}, True),
        (413, {"error": {"code": "max_tokens_exceeded", "message": "x"}}, True),
        (422, {"error_type": "max_tokens_exceeded", "message": "x"}, True),
        (500, {"detail": {"error_type": "max_tokens_exceeded"}}, False),
        (400, {"detail": {"error_type": "api_usage_error"}}, False),
        (400, {"detail": "max_tokens_exceeded"}, False),
        (400, [], False),
    ],
)
def test_overflow_is_recognised(status: int, body: Any, overflow: bool) -> None:
    """Only this error can be cured by asking fewer questions at once."""
    assert is_overflow(status, json.dumps(body).encode()) is overflow
