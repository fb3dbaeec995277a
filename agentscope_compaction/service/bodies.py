"""Bytes in, JSON out: bounded while they arrive, strict about what JSON is, safe to send."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from agentscope_compaction.core.types import CompactionProposal
from agentscope_compaction.service.failures import ErrorType, ServiceError

__all__ = ["check_headers", "encode", "parse", "read_body", "success"]


def check_headers(headers: Mapping[str, str], max_bytes: int) -> None:
    """Refuse what the headers alone show to be unacceptable.

    A JSON content type is insisted on: browsers send a web page's own text to a loopback service
    without asking first, but not JSON.

    Raises:
        ServiceError: Not JSON, compressed, or declared to be too large.
    """
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (
        kind.startswith("application/") and kind.endswith("+json")
    ):
        raise ServiceError(
            ErrorType.UNSUPPORTED_MEDIA_TYPE, "send 'Content-Type: application/json'"
        )
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise ServiceError(ErrorType.UNSUPPORTED_MEDIA_TYPE, "send the body uncompressed")
    declared = headers.get("content-length", "")
    if declared.isdigit() and (len(declared) > 18 or int(declared) > max_bytes):
        _refuse_size(max_bytes)


async def read_body(chunks: AsyncIterator[bytes], max_bytes: int, seconds: float) -> bytes:
    """Collect a body.

    Raises:
        ServiceError: It is larger than allowed, or takes longer.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in chunks:
                if len(body) + len(chunk) > max_bytes:
                    _refuse_size(max_bytes)
                body += chunk
    except TimeoutError:
        raise ServiceError(
            ErrorType.BODY_TIMEOUT,
            f"the body did not arrive within {seconds:g} s",
            {"Connection": "close"},
        ) from None
    return bytes(body)


def _refuse_size(max_bytes: int) -> None:
    # The rest of the body is thrown away unread: the connection is of no further use.
    raise ServiceError(
        ErrorType.BODY_TOO_LARGE,
        f"the body is larger than {max_bytes} bytes",
        {"Connection": "close"},
    )


def parse(body: bytes) -> dict[str, Any]:
    r"""Parse the JSON object in a body.

    NaN and infinities, which Python's parser takes, are refused: no other parser could read the
    answer. Lone surrogates written as ``\ud800`` are kept.

    Raises:
        ServiceError: It is not JSON in UTF-8, or no object.
    """
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse, parse_float=_finite)
    except UnicodeDecodeError:
        raise ServiceError(ErrorType.MALFORMED_JSON, "the body is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ServiceError(ErrorType.MALFORMED_JSON, f"the body is not JSON: {error}") from None
    except RecursionError:
        raise ServiceError(ErrorType.MALFORMED_JSON, "the body is nested too deeply") from None
    except ValueError as error:
        raise ServiceError(ErrorType.MALFORMED_JSON, f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ServiceError(ErrorType.INVALID_SNAPSHOT, "the request must be a JSON object")
    return value


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError("a number overflows")
    return number


def success(proposal: CompactionProposal) -> dict[str, Any]:
    """Return the answer for a proposal: its wire form and its statistics."""
    # Messages are JSON already, and may be nested deeper than pydantic serialises.
    dumped = proposal.model_dump(mode="json", exclude={"messages"})
    wire = {
        "schema_version": dumped.pop("schema_version"),
        "messages": proposal.messages,
        **dumped,
    }
    return {"success": True, "answer": wire, "metadata": {"compaction": dumped["stats"]}}


def encode(value: Mapping[str, Any]) -> bytes:
    """Return ASCII JSON: lone surrogates, legal in a history, cannot be sent as UTF-8."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")
