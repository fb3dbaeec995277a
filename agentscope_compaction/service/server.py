"""Listen and serve: uvicorn on a socket of our own, so that a taken port is a plain error."""

from __future__ import annotations

import logging
import math
import socket

import uvicorn
from fastapi import FastAPI

from agentscope_compaction.errors import ConfigurationError
from agentscope_compaction.service.hosts import is_loopback

__all__ = ["is_loopback", "listen", "run", "server_for"]

_log = logging.getLogger("agentscope_compaction")


def run(app: FastAPI, host: str, port: int, *, guarded: bool, grace_seconds: float) -> None:
    """Serve until interrupted.

    Args:
        app: The application.
        host: Address to listen on.
        port: Port; 0 takes a free one.
        guarded: Whether a token is asked for; decides how loud the warning is.
        grace_seconds: How long requests in flight may take after the interrupt.
    """
    if not is_loopback(host):
        _warn(host, guarded=guarded)
    with listen(host, port) as listener:
        server = server_for(app, grace_seconds)
        _announce(listener)
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:  # uvicorn raises it again once it has shut down
            pass
    if not server.started:
        raise ConfigurationError("the service did not start; the lines above say why")


def server_for(app: FastAPI, grace_seconds: float) -> uvicorn.Server:
    """Return the server, configured but not started."""
    config = uvicorn.Config(
        app,
        lifespan="on",
        ws="none",
        server_header=False,
        access_log=False,
        timeout_graceful_shutdown=math.ceil(grace_seconds),
    )
    return uvicorn.Server(config)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        ConfigurationError: The port is out of range.
        OSError: The address is taken, not ours, or not known.
    """
    if not 0 <= port <= 65_535:
        raise ConfigurationError("the port must be between 0 and 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=128)


def _announce(listener: socket.socket) -> None:
    """Say where it is, on uvicorn's log: uvicorn itself only names the socket it was given."""
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    logging.getLogger("uvicorn.error").info("Serving on http://%s:%d", shown, port)


def _warn(host: str, *, guarded: bool) -> None:
    who = "whoever knows the token" if guarded else "ANYBODY, WITHOUT A TOKEN,"
    _log.warning(
        "LISTENING ON %s, NOT ON LOOPBACK: %s may send histories to this service from other "
        "machines, over plain HTTP that others can read and change. Put a TLS proxy in front%s.",
        host,
        who,
        "" if guarded else " and set a token",
    )
