"""Rows of snapshots and records: sealed when written, checked when read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from agentscope_compaction.archive.codec import Body, address, decode, unpack
from agentscope_compaction.archive.protocol import ArchiveEntry, ArchiveRef
from agentscope_compaction.archive.records import ArchiveRecord, Outcome, options_of
from agentscope_compaction.core.types import JSONObject
from agentscope_compaction.errors import ArchiveError, ArchiveIntegrityError, ConfigurationError

__all__ = [
    "entry_of",
    "microseconds",
    "moment",
    "now",
    "record_of",
    "seal_record",
    "seal_snapshot",
    "session_name",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now() -> int:
    """Microseconds since 1970 in UTC, by this machine's clock."""
    return microseconds(datetime.now(UTC))


def microseconds(when: datetime) -> int:
    """A timezone-aware moment as microseconds since 1970.

    Raises:
        ConfigurationError: It is no moment, or has no time zone.
    """
    if not isinstance(when, datetime) or when.utcoffset() is None:
        raise ConfigurationError(
            "older_than needs a moment with a time zone, such as datetime.now(timezone.utc)"
        )
    return (when - _EPOCH) // timedelta(microseconds=1)


def moment(us: int) -> datetime:
    """The moment so many microseconds after 1970, in UTC."""
    return _EPOCH + timedelta(microseconds=us)


def session_name(name: bytes) -> str:
    """A stored session id, for people; bytes that are none are shown as escapes."""
    try:
        return name.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return name.decode("utf-8", "backslashreplace")


def seal_snapshot(name: bytes, row: Mapping[str, Any]) -> bytes:
    """Digest over a snapshot's row and the session it belongs to."""
    numbers = "created_us", "seq", "messages", "chars"
    text = [row["ref"], *(str(int(row[key])) for key in numbers)]
    return _seal(name, *(part.encode() for part in text), row["root"], row["meta"])


def seal_record(row: Mapping[str, Any]) -> bytes:
    """Digest over a record's row."""
    return _seal(
        row["ref"].encode(), str(int(row["recorded_us"])).encode(), row["outcome"], row["proposal"]
    )


def entry_of(name: bytes, key: bytes, row: Mapping[str, Any]) -> ArchiveEntry:
    """A snapshot's row, checked, as an entry.

    Raises:
        ArchiveIntegrityError: The row or its session's does not match its digest.
    """
    try:
        if address(name) != key or seal_snapshot(name, row) != row["seal"]:
            raise ValueError("seal")
        session_id = name.decode("utf-8", "surrogatepass")
        created = moment(row["created_us"])
    except (ValueError, TypeError, AttributeError, OverflowError) as exc:
        raise ArchiveIntegrityError("a stored snapshot's row does not match its digest") from exc
    ref, meta = ArchiveRef(row["ref"]), unpack_inline(row["meta"])
    return ArchiveEntry(ref, session_id, created, row["messages"], row["chars"], meta)


def record_of(row: Mapping[str, Any], proposal: bytes, meta: JSONObject) -> ArchiveRecord:
    """A record's row, checked, with the raw bytes of its proposal.

    Raises:
        ArchiveIntegrityError: The row does not match its digest.
    """
    try:
        if seal_record(row) != row["seal"]:
            raise ValueError("seal")
        outcome = Outcome.of(decode(row["outcome"]))
        recorded_at = moment(row["recorded_us"])
    except (ValueError, TypeError, AttributeError, OverflowError, ArchiveError) as exc:
        raise ArchiveIntegrityError("a stored record's row does not match its digest") from exc
    return ArchiveRecord(row["ref"], recorded_at, outcome, decode(proposal), options_of(meta))


def inline(raw: bytes, body: Body) -> bytes:
    """A body that is kept in a row of its own: address, then the stored bytes."""
    return address(raw) + body.stored


def unpack_inline(stored: bytes) -> Any:
    """The value of an inline body; the row's seal has checked the stored bytes."""
    return decode(unpack(stored[:32], stored[32:], None))


def _seal(*parts: bytes) -> bytes:
    digest = hashlib.sha256(b"row 1")
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.digest()
