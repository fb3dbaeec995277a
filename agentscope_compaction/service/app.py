"""The FastAPI application: who may ask, how much at once, and one answer for every failure."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from agentscope_compaction.compact import compact_context, embedded
from agentscope_compaction.core.types import CompactionProposal
from agentscope_compaction.errors import CompactionError
from agentscope_compaction.models.seam import DecisionModel
from agentscope_compaction.service.bodies import check_headers, encode, parse, read_body, success
from agentscope_compaction.service.failures import (
    STATUS,
    ErrorType,
    ServiceError,
    as_service_error,
)
from agentscope_compaction.service.hosts import OwnNamesOnly
from agentscope_compaction.service.limits import ServiceLimits, Slots, require_token
from agentscope_compaction.service.lingering import LingeringEnd
from agentscope_compaction.service.openapi import RESPONSES, Health, describe

__all__ = ["build_app"]

_log = logging.getLogger("agentscope_compaction")
_WIRE_VERSION = "1"
"""``schema_version`` of the proposals that are answered."""
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def build_app(
    decision_model: DecisionModel | None,
    token: bytes | None,
    limits: ServiceLimits,
    *,
    hosts: frozenset[str] | None,
    close_model: bool,
) -> FastAPI:
    """Return the application; see ``agentscope_compaction.service.create_app``."""
    model = embedded() if decision_model is None else decision_model
    service = _Service(model, token, limits, Slots(limits.max_concurrent))

    # FastAPI's documentation pages load scripts from elsewhere, so there are none.
    app = FastAPI(
        title="agentscope-compaction",
        version=_WIRE_VERSION,
        lifespan=_lifespan(model, close_model),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.add_api_route(
        "/compact_context",
        service.compact,
        methods=["POST"],
        summary="Propose a compacted history for one snapshot.",
        responses=RESPONSES,
        operation_id="compact_context",
    )
    app.add_api_route(
        "/health",
        _health,
        methods=["GET"],
        summary="Say that the service runs.",
        operation_id="health",
        response_model=Health,
    )
    app.add_exception_handler(HTTPException, _no_route)
    if hosts is not None:
        app.add_middleware(OwnNamesOnly, names=hosts, refuse=_foreign)
    app.add_middleware(LingeringEnd, seconds=limits.timeout_seconds)
    describe(app, guarded=token is not None, named=hosts is not None)
    return app


def _lifespan(
    model: DecisionModel, close_model: bool
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # Takes seconds when first imported; better now than in the first request.
        await asyncio.to_thread(importlib.import_module, "agentscope.classifier")
        yield
        close = getattr(model, "aclose", None)
        if close_model and close is not None:
            await close()

    return lifespan


@dataclass(frozen=True, slots=True)
class _Service:
    """What a request needs to be answered."""

    model: DecisionModel
    token: bytes | None
    limits: ServiceLimits
    slots: Slots

    async def compact(self, request: Request) -> Response:
        """Judge the old tool calls of a history and propose a smaller one; nothing is kept."""
        try:
            require_token(self.token, request.headers.get("authorization"))
            check_headers(request.headers, self.limits.max_body_bytes)
            with self.slots.taken():
                return await self._answer(request)
        except Exception as error:
            return _failure(error)

    async def _answer(self, request: Request) -> Response:
        limits = self.limits
        body = await read_body(request.stream(), limits.max_body_bytes, limits.timeout_seconds)
        value = await asyncio.to_thread(parse, body)
        work = compact_context(value, self.model)
        proposal = await _unless_gone(request, work, limits.timeout_seconds)
        if proposal is None:
            return Response(status_code=499)  # nobody reads it
        content = await asyncio.to_thread(lambda: encode(success(proposal)))
        return _json(200, content)


async def _unless_gone(
    request: Request, work: Coroutine[Any, Any, CompactionProposal], seconds: float
) -> CompactionProposal | None:
    """Await the work while somebody waits for it; None once the client has gone.

    Raises:
        ServiceError: The service's own deadline passed; the work is cancelled.
    """
    working = asyncio.create_task(work)
    # With the body read, the only message left to come is the disconnect.
    gone = asyncio.ensure_future(request.receive())
    try:
        done, _ = await asyncio.wait(
            {working, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if working in done:
            return working.result()
        if gone in done:
            return None
        raise ServiceError(ErrorType.DEADLINE, f"not answered within {seconds:g} s")
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)


async def _health() -> Response:
    return _json(200, encode(Health().model_dump()))


async def _no_route(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict(getattr(error, "headers", None) or {})
    kind = {404: ErrorType.NOT_FOUND, 405: ErrorType.METHOD_NOT_ALLOWED}.get(status)
    detail = str(getattr(error, "detail", "")) or "the request cannot be answered"
    return _failure(ServiceError(kind or ErrorType.INTERNAL, detail, headers))


def _foreign() -> Response:
    return _failure(
        ServiceError(
            ErrorType.FOREIGN_HOST,
            "the Host header is not a name of this service; --allow-host names it one",
        )
    )


def _failure(error: Exception) -> Response:
    known = as_service_error(error)
    if known.kind is ErrorType.INTERNAL:
        # Of a bug only its type and place are logged: its text may quote the history.
        what = str(error) if isinstance(error, CompactionError) else type(error).__name__
        _log.error("request failed: %s at %s", what, _place(error))
    content = encode(
        {"success": False, "error": {"type": known.kind.value, "message": known.message}}
    )
    return _json(STATUS[known.kind], content, known.headers)


def _place(error: Exception) -> str:
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    if frame is None:
        return "an unknown place"
    return f"{frame.tb_frame.f_globals.get('__name__')}:{frame.tb_lineno}"


def _json(status: int, content: bytes, headers: dict[str, str] | None = None) -> Response:
    return Response(
        content, status, headers={**_HEADERS, **(headers or {})}, media_type="application/json"
    )
