"""Under which names the service may be asked.

A web page can give its own name an address of this machine (DNS rebinding) and then ask a loopback
service as if it were its own server; the browser still sends the page's name as ``Host``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from agentscope_compaction.errors import ConfigurationError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["ANY", "OwnNamesOnly", "allowed", "check_hosts", "is_loopback"]

ANY = "*"
"""Stands for every name."""
_HOST = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>\*|[A-Za-z0-9_.-]+))(?P<port>:\d*)?", re.ASCII
)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address; a name other than localhost may not."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_hosts(names: Sequence[str]) -> frozenset[str]:
    """Return the names as they are compared; :data:`ANY` makes every name one of them.

    Raises:
        ConfigurationError: One is empty, or more than a name or address (a port, a scheme).
    """
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ConfigurationError("allowed hosts are a list of names")
    for name in names:
        match = _HOST.fullmatch(name)
        if not _is_address(name) and (match is None or match["port"] is not None):
            raise ConfigurationError(f"{name!r} is no host: give a name without scheme and port")
    return frozenset(_canonical(name.removeprefix("[").removesuffix("]")) for name in names)


def allowed(header: str, names: Collection[str]) -> bool:
    """Whether a ``Host`` header names this machine's loopback or one of the names."""
    if ANY in names:
        return True
    match = _HOST.fullmatch(header.strip())
    if match is None:
        return False
    host = _canonical(match["six"] or match["name"])
    return host in names or is_loopback(host)


class OwnNamesOnly:
    """ASGI middleware: answers a request under a foreign name with ``refuse`` and reads nothing.

    A request without ``Host`` comes from no browser and passes.

    Args:
        app: The application.
        names: What :func:`check_hosts` returned.
        refuse: Returns the answer to a foreign request.
    """

    def __init__(self, app: ASGIApp, names: Collection[str], refuse: Callable[[], ASGIApp]) -> None:
        self._app = app
        self._names = names
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on one exchange, or refuse it."""
        headers = scope.get("headers", ()) if scope["type"] == "http" else ()
        given = [value.decode("latin-1") for name, value in headers if name == b"host"]
        if all(allowed(host, self._names) for host in given):
            await self._app(scope, receive, send)
        else:
            await self._refuse()(scope, receive, send)


def _canonical(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host.lower().removesuffix(".")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
