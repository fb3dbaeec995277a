"""What an archive is: the protocol every implementation keeps, and the values it hands out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

from agentscope_compaction.archive.records import ArchiveRecord, Outcome
from agentscope_compaction.core.types import CompactionProposal, JSONObject

__all__ = ["Archive", "ArchiveEntry", "ArchiveRef", "AuditedArchive", "SessionUsage"]


class ArchiveRef(str):
    """Name of one archived snapshot: opaque, URL-safe, at most 128 characters.

    A pure function of the session id and the messages, so text that names a reference is the same
    in every run. Any ``str`` is accepted where a reference is expected.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """One archived snapshot, without its messages."""

    ref: ArchiveRef
    """Its reference."""
    session_id: str
    """The session it was saved under."""
    created_at: datetime
    """When it was last saved, in UTC by the clock of the machine that saved it."""
    messages: int
    """Number of messages."""
    chars: int
    """Characters of the messages as compact JSON, non-ASCII as is."""
    meta: JSONObject = field(default_factory=dict, repr=False)
    """What the caller said about it."""


@dataclass(frozen=True, slots=True)
class SessionUsage:
    """Counts and sizes of one session."""

    session_id: str
    """The session."""
    snapshots: int
    """Snapshots archived."""
    chars: int
    """Characters archived, each snapshot counted in full."""
    stored_bytes: int
    """Bytes of the bodies the session holds; bodies shared with other sessions count in each."""


# Aliases, because inside a class with a method ``list`` that name is the method.
Messages = list[JSONObject]
Entries = list[ArchiveEntry]
Records = list[ArchiveRecord]
Usages = list[SessionUsage]


@runtime_checkable
class Archive(Protocol):
    """Keeps whole histories so that whatever is cut from a context can come back.

    Every implementation guarantees: the round trip is exact for any JSON; a returned reference is
    durable and was read back; damage is an error, never a different history; ids are data of any
    length and any characters. All methods raise members of the
    :class:`~agentscope_compaction.errors.ArchiveError` family and nothing of the database beneath.
    """

    async def save(
        self,
        session_id: str,
        messages: Sequence[JSONObject],
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> ArchiveRef:
        """Store one snapshot, durably, and read it back.

        Saving the same messages again in the same session returns the same reference, renews its
        ``created_at`` and, where ``meta`` is given, replaces its meta. The messages must not be
        changed below their blocks until the call returns.

        Args:
            session_id: Any string.
            messages: A list of JSON objects, ``Msg.model_dump(mode="json")``.
            meta: A JSON object about the snapshot, for instance ``{"options": {...}}``.

        Raises:
            ArchiveError: Not JSON, or the archive cannot be written.
            ArchiveIntegrityError: What was read back is not what was written.
        """
        ...

    async def load(self, ref: str) -> Messages:
        """The messages saved under a reference, equal to what was saved, in fresh objects.

        Raises:
            ArchiveNotFoundError: Nothing is archived under this reference.
            ArchiveIntegrityError: Stored bytes are missing or do not match their digests.
        """
        ...

    async def load_result(self, ref: str, call_id: str) -> JSONObject:
        """The ``tool_result`` block of one call, without reading the other blocks.

        Where several results of the snapshot carry the id, the last one is returned.

        Raises:
            ArchiveNotFoundError: Unknown reference, or no such result in the snapshot.
            ArchiveIntegrityError: Stored bytes are missing or do not match their digests.
        """
        ...

    async def record(
        self,
        ref: str,
        proposal: CompactionProposal,
        outcome: Outcome | str | Mapping[str, Any],
    ) -> None:
        """Add what became of a proposal about a snapshot; outcomes accumulate in order.

        Args:
            ref: The snapshot the proposal was made of.
            proposal: Kept without its messages, which follow from snapshot and decisions.
            outcome: An :class:`Outcome`, its kind, or a mapping of its fields.

        Raises:
            ArchiveNotFoundError: Unknown reference.
            ArchiveError: Not an outcome, or the archive cannot be written.
        """
        ...

    async def list(self, session_id: str | None = None) -> Entries:
        """The entries of one session, or of all, newest first, later saves first on a tie.

        A snapshot whose row is damaged is left out, with a warning that names it.
        """
        ...

    async def delete(self, session_id: str) -> int:
        """Delete a session: its snapshots, its records, and the blocks no other session holds.

        Returns:
            The number of snapshots deleted; 0 for an unknown session.
        """
        ...

    async def prune(self, older_than: datetime) -> int:
        """Delete every snapshot last saved before a moment, with its records and unshared blocks.

        Args:
            older_than: A timezone-aware moment.

        Returns:
            The number of snapshots deleted.

        Raises:
            ConfigurationError: ``older_than`` is no ``datetime``, or has no time zone. (It is a
                ``ValueError``.)
        """
        ...

    async def close(self) -> None:
        """Release what the archive opened itself; closing again does nothing."""
        ...

    async def __aenter__(self) -> Self:
        """The archive itself."""
        ...

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        ...


@runtime_checkable
class AuditedArchive(Archive, Protocol):
    """An archive that also answers what was decided and what it costs; both shipped ones do."""

    async def history(self, ref: str) -> Records:
        """Every record of a snapshot, oldest first.

        Raises:
            ArchiveNotFoundError: Unknown reference.
            ArchiveIntegrityError: A record does not match its digest.
        """
        ...

    async def entry(self, ref: str) -> ArchiveEntry:
        """The entry of one snapshot.

        Raises:
            ArchiveNotFoundError: Unknown reference.
            ArchiveIntegrityError: The snapshot's row does not match its digest.
        """
        ...

    async def sessions(self) -> Usages:
        """Counts and sizes of every session, largest first."""
        ...
