"""``compact_context`` over HTTP; needs the extra ``service`` (FastAPI and uvicorn).

``POST /compact_context`` takes the JSON form of ``CompactionRequest`` and answers
``{"success": true, "answer": <proposal>, "metadata": {"compaction": <stats>}}``, or
``{"success": false, "error": {"type", "message"}}`` with one of these statuses:

====== ==========================================================================================
400    the body is not JSON (NaN, infinities and numbers that overflow are not JSON either)
401    a token is required, and the request brings none or another one
404    no such path
405    no such method
408    the body did not arrive in time
413    the body is larger than allowed
415    the content type is not JSON
421    the ``Host`` header is a foreign one
422    the JSON is no valid snapshot, or does not fit its own token budgets
500    the service is misconfigured, or has a bug
502    the decision model failed, or answered something unusable
503    as many requests as allowed are running; ``Retry-After`` says when to come back
504    the deadline of the request (``options.total_timeout_seconds``) or of the service passed
====== ==========================================================================================

FastAPI is imported when an application is made, not with this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from agentscope_compaction.errors import ConfigurationError
from agentscope_compaction.service.hosts import ANY, check_hosts, is_loopback
from agentscope_compaction.service.limits import (
    DEFAULT_MAX_BODY_BYTES,
    DEFAULT_MAX_CONCURRENT,
    DEFAULT_TIMEOUT_SECONDS,
    ServiceLimits,
    check_token,
)

if TYPE_CHECKING:
    from fastapi import FastAPI

    from agentscope_compaction.models.seam import DecisionModel

__all__ = ["create_app", "serve"]

_EXTRA = frozenset({"fastapi", "starlette", "uvicorn"})


def create_app(
    decision_model: DecisionModel | None = None,
    *,
    token: str | None = None,
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
    max_concurrent: int = DEFAULT_MAX_CONCURRENT,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    allowed_hosts: Sequence[str] | None = None,
    close_model: bool = False,
) -> FastAPI:
    """Return the ASGI application.

    Args:
        decision_model: Asked by every request; None is the embedded model.
        token: Clients must send it as ``Authorization: Bearer <token>``; None asks for none.
            ``/health`` and ``/openapi.json`` are open to all.
        max_body_bytes: Largest request body; a larger one is refused while it still arrives.
        max_concurrent: Requests served at once; one more is answered 503. Together with
            ``max_body_bytes`` it bounds the memory for bodies.
        timeout_seconds: Time for one request: once for its body to arrive, once for its answer.
        allowed_hosts: Names and addresses that a request's ``Host`` header may hold beside
            ``localhost`` and loopback addresses; ``"*"`` or None allows every one.
        close_model: Whether the model's ``aclose()`` is awaited at shutdown.

    Raises:
        ConfigurationError: The extra ``service`` is not installed, a limit is not positive, a
            host is none, or the token is not printable ASCII without blanks.
    """
    limits = ServiceLimits(max_body_bytes, max_concurrent, timeout_seconds)
    secret = check_token(token)
    hosts = None if allowed_hosts is None else check_hosts(allowed_hosts)
    if hosts is not None and ANY in hosts:
        hosts = None
    try:
        from agentscope_compaction.service.app import build_app
    except ModuleNotFoundError as error:
        _explain(error)
    return build_app(decision_model, secret, limits, hosts=hosts, close_model=close_model)


def serve(
    host: str = "127.0.0.1",
    port: int = 8080,
    *,
    decision_model: DecisionModel | None = None,
    token: str | None = None,
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
    max_concurrent: int = DEFAULT_MAX_CONCURRENT,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    allowed_hosts: Sequence[str] | None = None,
    close_model: bool = False,
) -> None:
    """Serve until interrupted (SIGINT, SIGTERM); requests in flight are answered first.

    Anything but a loopback address is announced by a warning: the service speaks plain HTTP.

    Args:
        host: Address to listen on.
        port: Port; 0 takes a free one, which is announced on the log.
        decision_model: See :func:`create_app`, as for the other arguments.
        token: A bearer token.
        max_body_bytes: Largest request body.
        max_concurrent: Requests served at once.
        timeout_seconds: Time for one request.
        allowed_hosts: As for :func:`create_app`, but None on a loopback address allows loopback
            names and addresses only: a web page can reach it under a name of its own.
        close_model: Whether the model is closed at shutdown.

    Raises:
        ConfigurationError: As :func:`create_app`, or a port out of range.
        OSError: The address cannot be listened on.
    """
    if allowed_hosts is None and is_loopback(host):
        allowed_hosts = ()
    app = create_app(
        decision_model,
        token=token,
        max_body_bytes=max_body_bytes,
        max_concurrent=max_concurrent,
        timeout_seconds=timeout_seconds,
        allowed_hosts=allowed_hosts,
        close_model=close_model,
    )
    try:
        from agentscope_compaction.service.server import run
    except ModuleNotFoundError as error:
        _explain(error)
    run(app, host, port, guarded=token is not None, grace_seconds=timeout_seconds)


def _explain(error: ModuleNotFoundError) -> NoReturn:
    if error.name is None or error.name.partition(".")[0] not in _EXTRA:
        raise error
    raise ConfigurationError(
        f"{error.name} is missing; install agentscope-compaction[service]"
    ) from error
