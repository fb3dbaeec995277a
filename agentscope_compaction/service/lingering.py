"""Answer before the body has arrived, and let the client find the answer.

A server that closes a connection while bytes are still arriving makes the operating system reset
it, and a reset throws away an answer that the client has not read yet. So the answer goes out, what
still arrives is thrown away for a bounded time, and only then is the exchange ended.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["IDLE_SECONDS", "LingeringEnd"]

IDLE_SECONDS = 2.0
"""How long nothing may arrive before a client counts as waiting for the end, or gone."""


class LingeringEnd:
    """ASGI middleware: ends an exchange when its request has ended, or after a bounded time.

    Args:
        app: The application.
        seconds: The longest time for one request's rest to arrive; it is kept nowhere.
    """

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on one exchange."""
        if scope["type"] != "http" or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        ended = False

        async def noting() -> Message:
            nonlocal ended
            message = await receive()
            if message["type"] != "http.request" or not message.get("more_body", False):
                ended = True
            return message

        async def holding(message: Message) -> None:
            last = message["type"] == "http.response.body" and not message.get("more_body", False)
            if not last or ended:
                await send(message)
                return
            await send({**message, "more_body": True})
            now = asyncio.get_running_loop().time
            deadline = now() + self._seconds
            with suppress(TimeoutError):
                while not ended and now() < deadline:
                    async with asyncio.timeout(min(IDLE_SECONDS, deadline - now())):
                        await noting()
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        await self._app(scope, noting, holding)


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
