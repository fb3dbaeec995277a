"""Which failures are asked about again, after which wait, and which are final."""

import asyncio

import httpx
import pytest
import respx

from agentscope_compaction.errors import (
    DecisionAnswerError,
    DecisionHTTPError,
    DecisionTimeoutError,
)
from tests.models.jev_calls import KEY, URL, answer, ask, failing

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("clean_environment")]


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
    with pytest.raises(DecisionHTTPError) as caught:
        await ask(retry_delay=3, deadline=asyncio.get_running_loop().time() + 2)
    assert (caught.value.status, route.call_count) == (503, 1)


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
    assert route.call_count == 2 + 2


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(router: respx.MockRouter, status: int) -> None:
    """Following one would hand the key and the state to another host."""
    other = router.post("https://other.example/").mock(side_effect=answer)
    router.post(URL).respond(status, headers={"location": "https://other.example/"})
    with pytest.raises(DecisionHTTPError, match="redirects are not followed") as caught:
        await ask(http_client=httpx.AsyncClient(follow_redirects=True))
    assert caught.value.status == status
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
