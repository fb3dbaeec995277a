"""What an error response says, and whether and when to ask again; without a network.

An error repeats the status, the request id and the server's own short message, scrubbed of the
key and of anything that looks like a secret; never a body.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

from agentscope_compaction.errors import DecisionHTTPError
from agentscope_compaction.models.wire import strict_json
from agentscope_compaction.redaction import REDACTED, redact_secrets

__all__ = ["backoff", "http_error", "is_overflow", "is_retryable", "request_id", "retry_after"]

MESSAGE_CHARS = 200
"""Longest server message an error repeats."""
_MAX_BACKOFF = 5.0
_MAX_NAMED = 3


def http_error(
    status: int, headers: Mapping[str, str], body: bytes, secrets: Iterable[str] = ()
) -> DecisionHTTPError:
    """Describe an error response: status, request id, and the server's short message if any."""
    reference = request_id(headers, secrets)
    message = f"the decision service answered {status}"
    if 300 <= status < 400:
        message += " (redirects are not followed)"
    said = _scrub(_server_message(strict_json(body)), secrets)
    if said:
        message += f": {said}"
    if reference:
        message += f" [request {reference}]"
    return DecisionHTTPError(message, status=status, request_id=reference)


def request_id(headers: Mapping[str, str], secrets: Iterable[str] = ()) -> str | None:
    """Return the service's request id, scrubbed and at most 128 characters."""
    for name in ("x-typesafe-request-id", "x-request-id", "request-id"):
        value = _header(headers, name)
        if value:
            return _scrub(value, secrets)[:128] or None
    return None


def is_retryable(status: int) -> bool:
    """Whether another try may help: 408, 429, and every 5xx (529 is "overloaded")."""
    return status in (408, 429) or 500 <= status < 600


def is_overflow(status: int, body: bytes) -> bool:
    """Whether the request had too many tokens, so that half the questions may fit."""
    if not 400 <= status < 500:
        return False
    document = strict_json(body)
    if not isinstance(document, dict):
        return False
    places = [document, document.get("detail"), document.get("error")]
    kinds = [
        place.get(key)
        for place in places
        if isinstance(place, dict)
        for key in ("error_type", "type", "code")
    ]
    return "max_tokens_exceeded" in kinds


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds the server asks to wait; None to use the client's own backoff.

    ``retry-after-ms`` comes first, then ``Retry-After`` in seconds or as an HTTP date, measured
    from ``now`` (seconds since the epoch). A past date is 0; negative or not finite is ignored.
    """
    milliseconds = _seconds(_header(headers, "retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = _header(headers, "retry-after")
    seconds = _seconds(value)
    if seconds is not None or value is None:
        return seconds
    try:
        date = parsedate_to_datetime(value)
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        return max(0.0, date.timestamp() - now)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def backoff(attempt: int, initial: float) -> float:
    """Return the wait before retry ``attempt`` (0 is the first): doubling, at most 5 s."""
    return min(_MAX_BACKOFF, initial * 2.0 ** min(attempt, 30))


def _seconds(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _header(headers: Mapping[str, str], name: str) -> str | None:
    return next((value for key, value in headers.items() if key.lower() == name), None)


def _server_message(document: object) -> str:
    """The order of the official client: error, error.message, message, then detail's forms."""
    if not isinstance(document, dict):
        return ""
    error, detail = document.get("error"), document.get("detail")
    nested = error.get("message") if isinstance(error, dict) else None
    inner = detail.get("message") if isinstance(detail, dict) else None
    kind = detail.get("error_type") if isinstance(detail, dict) else None
    for candidate in (error, nested, document.get("message"), detail, inner, kind):
        if isinstance(candidate, str) and candidate.strip():
            return candidate
    if isinstance(detail, list):
        return "; ".join(filter(None, map(_validation_message, detail[:_MAX_NAMED])))
    return ""


def _validation_message(item: object) -> str:
    if not isinstance(item, dict) or not isinstance(item.get("msg"), str):
        return ""
    place = item.get("loc")
    parts = [str(part) for part in place if part != "body"] if isinstance(place, list) else []
    return f"{'.'.join(parts)}: {item['msg']}" if parts else str(item["msg"])


def _scrub(text: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        if secret:
            text = text.replace(secret, REDACTED)
    return redact_secrets(_one_line(text[: MESSAGE_CHARS * 20]))[:MESSAGE_CHARS]


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
