"""What one service allows: sizes, times, requests at once, and who may ask."""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from agentscope_compaction.errors import ConfigurationError
from agentscope_compaction.service.failures import ErrorType, ServiceError

__all__ = [
    "DEFAULT_MAX_BODY_BYTES",
    "DEFAULT_MAX_CONCURRENT",
    "DEFAULT_TIMEOUT_SECONDS",
    "ServiceLimits",
    "Slots",
    "check_token",
    "require_token",
]

DEFAULT_MAX_BODY_BYTES = 16 * 1024 * 1024
"""A history that fills a window of 200k tokens takes about 1 MB."""
DEFAULT_MAX_CONCURRENT = 8
DEFAULT_TIMEOUT_SECONDS = 60.0
_RETRY_AFTER_SECONDS = "1"
_BEARER = "bearer "


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """Bounds of one service.

    Raises:
        ConfigurationError: A bound is not positive and finite.
    """

    max_body_bytes: int
    max_concurrent: int
    timeout_seconds: float

    def __post_init__(self) -> None:
        _positive_whole("max_body_bytes", self.max_body_bytes)
        _positive_whole("max_concurrent", self.max_concurrent)
        seconds = self.timeout_seconds
        number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not number or not 0 < seconds < math.inf:
            raise ConfigurationError("timeout_seconds must be positive and finite")


class Slots:
    """Counts the requests that are served; never waits."""

    def __init__(self, limit: int) -> None:
        self._free = limit

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold one slot.

        Raises:
            ServiceError: All are taken.
        """
        if self._free == 0:
            raise ServiceError(
                ErrorType.BUSY,
                "as many requests as allowed are running; try again soon",
                {"Retry-After": _RETRY_AFTER_SECONDS},
            )
        self._free -= 1
        try:
            yield
        finally:
            self._free += 1


def check_token(token: str | None) -> bytes | None:
    """Return the token's digest; None for none.

    Raises:
        ConfigurationError: It could never be sent in a header, or is empty.
    """
    if token is None:
        return None
    printable = isinstance(token, str) and token.isascii() and token.isprintable()
    if not printable or not token or " " in token:
        raise ConfigurationError("the service token must be printable ASCII without blanks")
    return _digest(token.encode())


def require_token(expected: bytes | None, header: str | None) -> None:
    """Check an ``Authorization`` header, in time that tells nothing about the token.

    Raises:
        ServiceError: It does not carry the token.
    """
    if expected is None:
        return
    given = header or ""
    token = given[len(_BEARER) :].strip() if given[: len(_BEARER)].lower() == _BEARER else ""
    # Digests are compared, so that not even the length of the token shows.
    if not hmac.compare_digest(_digest(token.encode("utf-8", "surrogatepass")), expected):
        raise ServiceError(
            ErrorType.UNAUTHORIZED,
            "send the service's token as 'Authorization: Bearer <token>'",
            {"WWW-Authenticate": "Bearer"},
        )


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _positive_whole(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ConfigurationError(f"{name} must be a positive integer")
