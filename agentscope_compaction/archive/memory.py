"""The archive in memory, for tests: same bytes, same references, same errors, gone at the end."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from agentscope_compaction.archive.codec import decode, encode
from agentscope_compaction.archive.manifest import (
    Entry,
    Snapshot,
    assemble,
    call_tag,
    entries_of,
    freeze,
    node_entries,
    session_bytes,
    take_apart,
)
from agentscope_compaction.archive.protocol import (
    ArchiveEntry,
    ArchiveRef,
    Entries,
    Messages,
    Records,
    SessionUsage,
    Usages,
)
from agentscope_compaction.archive.records import (
    ArchiveRecord,
    Outcome,
    encoded_meta,
    encoded_proposal,
    options_of,
)
from agentscope_compaction.archive.rows import microseconds, moment, now
from agentscope_compaction.core.types import CompactionProposal, JSONObject
from agentscope_compaction.errors import ArchiveNotFoundError

__all__ = ["InMemoryArchive"]


@dataclass(slots=True)
class _Kept:
    """One snapshot: its order, its objects, and what was recorded about it."""

    session_id: str
    shot: Snapshot
    meta: bytes
    created_us: int
    order: int
    records: list[tuple[int, bytes, bytes]] = field(default_factory=list)


class InMemoryArchive:
    """Keeps every promise of ``Archive`` but durability; safe to use from several threads.

    Each snapshot keeps its own objects, so deleting one can never touch another.
    """

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._order = itertools.count()
        self._lock = threading.Lock()

    async def save(
        self,
        session_id: str,
        messages: Sequence[JSONObject],
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> ArchiveRef:
        """See :meth:`Archive.save`."""
        shot = take_apart(session_id, freeze(messages))
        about = None if meta is None else encoded_meta(meta)
        with self._lock:
            old = self._kept.get(shot.ref)
            if about is None:
                about = old.meta if old else encode({}).raw
            kept = _Kept(session_id, shot, about, now(), next(self._order))
            kept.records = old.records if old else []
            self._kept[shot.ref] = kept
        return shot.ref

    async def load(self, ref: str) -> Messages:
        """See :meth:`Archive.load`."""
        shot = self._found(ref).shot
        return assemble(_leaves(shot), shot.objects)

    async def load_result(self, ref: str, call_id: str) -> JSONObject:
        """See :meth:`Archive.load_result`."""
        shot, tag = self._found(ref).shot, call_tag(call_id)
        for leaf in reversed(_leaves(shot)):
            if leaf.is_result and leaf.tag == tag:
                block: JSONObject = decode(shot.objects[leaf.digest])
                return block
        raise ArchiveNotFoundError("the archived snapshot holds no result of this call")

    async def record(
        self,
        ref: str,
        proposal: CompactionProposal,
        outcome: Outcome | str | Mapping[str, Any],
    ) -> None:
        """See :meth:`Archive.record`."""
        said = encode(Outcome.of(outcome).as_json()).raw
        row = (now(), said, encoded_proposal(proposal))
        with self._lock:
            self._found(ref).records.append(row)

    async def history(self, ref: str) -> Records:
        """See :meth:`AuditedArchive.history`."""
        kept = self._found(ref)
        options = options_of(decode(kept.meta))
        return [
            ArchiveRecord(ref, moment(when), Outcome.of(decode(said)), decode(proposal), options)
            for when, said, proposal in kept.records
        ]

    async def list(self, session_id: str | None = None) -> Entries:
        """See :meth:`Archive.list`."""
        if session_id is not None:
            session_bytes(session_id)
        kept = [k for k in self._snapshot() if session_id is None or k.session_id == session_id]
        kept.sort(key=lambda k: (k.created_us, k.order), reverse=True)
        return [_entry(k) for k in kept]

    async def survey(self, session_id: str | None = None) -> tuple[Entries, Sequence[str]]:
        """See :meth:`SqlArchive.survey`; nothing here can be damaged."""
        return await self.list(session_id), []

    async def entry(self, ref: str) -> ArchiveEntry:
        """See :meth:`AuditedArchive.entry`."""
        return _entry(self._found(ref))

    async def sessions(self) -> Usages:
        """See :meth:`AuditedArchive.sessions`."""
        groups: dict[str, list[_Kept]] = {}
        for kept in self._snapshot():
            groups.setdefault(kept.session_id, []).append(kept)
        usages = [
            SessionUsage(session_id, len(group), sum(k.shot.chars for k in group), _size(group))
            for session_id, group in groups.items()
        ]
        return sorted(usages, key=lambda usage: (-usage.stored_bytes, usage.session_id))

    async def delete(self, session_id: str) -> int:
        """See :meth:`Archive.delete`."""
        session_bytes(session_id)
        return self._drop(lambda kept: kept.session_id == session_id)

    async def prune(self, older_than: datetime) -> int:
        """See :meth:`Archive.prune`."""
        before = microseconds(older_than)
        return self._drop(lambda kept: kept.created_us < before)

    async def close(self) -> None:
        """Do nothing; what was saved stays readable."""

    async def __aenter__(self) -> Self:
        """The archive itself."""
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Do nothing."""

    def _snapshot(self) -> Sequence[_Kept]:
        with self._lock:
            return [*self._kept.values()]

    def _found(self, ref: str) -> _Kept:
        kept = self._kept.get(ref) if isinstance(ref, str) else None
        if kept is None:
            raise ArchiveNotFoundError("nothing is archived under this reference")
        return kept

    def _drop(self, gone: Callable[[_Kept], bool]) -> int:
        with self._lock:
            refs = [ref for ref, kept in self._kept.items() if gone(kept)]
            for ref in refs:
                del self._kept[ref]
        return len(refs)


def _entry(kept: _Kept) -> ArchiveEntry:
    shot = kept.shot
    return ArchiveEntry(
        ref=shot.ref,
        session_id=kept.session_id,
        created_at=moment(kept.created_us),
        messages=shot.messages,
        chars=shot.chars,
        meta=decode(kept.meta),
    )


def _leaves(shot: Snapshot) -> Sequence[Entry]:
    """The leaves of a snapshot, in order."""
    entries = entries_of(shot.root)
    while any(entry.is_node for entry in entries):
        entries = [
            child
            for entry in entries
            for child in (node_entries(shot.objects[entry.digest]) if entry.is_node else (entry,))
        ]
    return entries


def _size(group: Sequence[_Kept]) -> int:
    objects = {digest: raw for kept in group for digest, raw in kept.shot.objects.items()}
    return sum(map(len, objects.values()))
