"""Move one request to the decision service and back: bytes, waiting and retries, no meaning.

Exceptions of the HTTP library never leave: their text can hold header values or response bytes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pydantic import SecretStr

from agentscope_compaction.errors import (
    DecisionHTTPError,
    DecisionModelError,
    DecisionTimeoutError,
)
from agentscope_compaction.models.endpoint import host_of, is_loopback
from agentscope_compaction.models.wire_errors import backoff, http_error, is_retryable, retry_after

if TYPE_CHECKING:
    import httpx

__all__ = ["Exchange", "Raw"]

MAX_RESPONSE_BYTES = 1024 * 1024
"""Longest response body that is read, after decompression."""
MAX_WAIT_SECONDS = 30.0
"""Longest wait between two tries; a service that asks for more fails at once."""

logger = logging.getLogger("agentscope_compaction")


@dataclass(frozen=True, slots=True)
class Raw:
    """A response as it came; ``body`` is empty when it was too long to read."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    tries: int = 1
    oversized: bool = False


@dataclass(slots=True, eq=False)
class Exchange:
    """How to reach one endpoint. Its own client is opened on first use, one per event loop."""

    url: str
    key: SecretStr | None
    headers: Mapping[str, SecretStr]
    timeout: float
    max_retries: int
    retry_delay: float
    client: httpx.AsyncClient | None
    owned: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient]

    def secrets(self) -> list[str]:
        """Return what must not appear in a message: the key and the extra header values."""
        hidden = [*self.headers.values(), *([self.key] if self.key else [])]
        return [value.get_secret_value() for value in hidden if len(value) >= 4]

    async def post(self, body: bytes, deadline: float | None) -> Raw:
        """Return the first response that is not worth another try.

        Args:
            body: The request body.
            deadline: Event-loop time after which nothing may be awaited.

        Raises:
            DecisionHTTPError: An error status that stayed, or no response at all.
            DecisionTimeoutError: No complete response within the time allowed.
        """
        attempt = 0
        while True:
            outcome = await self._try(body, attempt, deadline)
            if isinstance(outcome, Raw):
                if not is_retryable(outcome.status):
                    return outcome
                wait = retry_after(outcome.headers, time.time())
                error: DecisionModelError = http_error(
                    outcome.status, outcome.headers, outcome.body, self.secrets()
                )
            else:
                wait, error = None, outcome
            wait = backoff(attempt, self.retry_delay) if wait is None else wait
            if attempt >= self.max_retries or not _fits(wait, deadline):
                raise error
            attempt += 1
            logger.debug("decision service: retry %d in %.3f s", attempt, wait)
            await asyncio.sleep(wait)

    async def aclose(self) -> None:
        """Close the client opened for the running event loop; never the caller's own."""
        client = self.owned.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    async def _try(
        self, body: bytes, attempt: int, deadline: float | None
    ) -> Raw | DecisionModelError:
        """Send once; an unreachable or slow service is returned as the error it would be."""
        import httpx

        client = self._client()
        now = asyncio.get_running_loop().time()
        limit = now + self.timeout if deadline is None else min(now + self.timeout, deadline)
        if limit <= now:
            return DecisionTimeoutError("the deadline passed before the decision service was asked")
        try:
            async with asyncio.timeout_at(limit):
                return await self._send(client, body, attempt)
        except (TimeoutError, httpx.TimeoutException):
            pass
        except httpx.RequestError as error:
            kind = type(error).__name__
            return DecisionHTTPError(f"could not reach the decision service ({kind})")
        if deadline is not None and limit >= deadline:
            return DecisionTimeoutError("the decision service did not answer by the deadline")
        return DecisionTimeoutError(f"no answer from the decision service in {self.timeout:g} s")

    async def _send(self, client: httpx.AsyncClient, body: bytes, attempt: int) -> Raw:
        import httpx

        request = client.build_request(
            "POST", self.url, content=body, headers=self._headers(attempt), timeout=None
        )
        auth = None if "authorization" in request.headers else httpx.USE_CLIENT_DEFAULT
        response = await client.send(request, stream=True, follow_redirects=False, auth=auth)
        try:
            chunks: list[bytes] = []
            size = 0
            async for chunk in response.aiter_bytes():
                size += len(chunk)
                if size > MAX_RESPONSE_BYTES:
                    return Raw(response.status_code, response.headers, b"", attempt + 1, True)
                chunks.append(chunk)
        finally:
            await response.aclose()
        return Raw(response.status_code, response.headers, b"".join(chunks), attempt + 1)

    def _headers(self, attempt: int) -> dict[str, str]:
        headers = {
            "accept": "application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": "agentscope-compaction",
        }
        if self.key is not None:
            headers["authorization"] = f"Bearer {self.key.get_secret_value()}"
        headers |= {name: value.get_secret_value() for name, value in self.headers.items()}
        return headers | ({"x-typesafe-retry-count": str(attempt)} if attempt else {})

    def _client(self) -> httpx.AsyncClient:
        import httpx

        if self.client is not None:
            if self.client.is_closed:
                raise DecisionModelError("the HTTP client passed to the decision model is closed")
            return self.client
        loop = asyncio.get_running_loop()
        if loop not in self.owned:
            # A proxy would take a loopback address for itself, and plain http there shows the key.
            host = host_of(self.url)
            direct = {f"all://{host}": None} if is_loopback(host) else None
            self.owned[loop] = httpx.AsyncClient(timeout=None, mounts=direct)
        return self.owned[loop]


def _fits(wait: float, deadline: float | None) -> bool:
    """Whether a wait ends before the deadline and is not unreasonable in itself."""
    if wait > MAX_WAIT_SECONDS:
        return False
    return deadline is None or asyncio.get_running_loop().time() + wait < deadline
