"""The archive on SQL: a SQLite file, or PostgreSQL when agents run on many machines."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from weakref import WeakKeyDictionary

from agentscope_compaction.archive.codec import encode
from agentscope_compaction.archive.manifest import freeze, session_bytes, take_apart
from agentscope_compaction.archive.protocol import (
    ArchiveEntry,
    ArchiveRef,
    Entries,
    Messages,
    Records,
    Usages,
)
from agentscope_compaction.archive.records import Outcome, encoded_meta, encoded_proposal
from agentscope_compaction.archive.rows import microseconds
from agentscope_compaction.archive.urls import locate
from agentscope_compaction.core.types import CompactionProposal, JSONObject
from agentscope_compaction.errors import ArchiveError, ArchiveNotFoundError, ConfigurationError

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from agentscope_compaction.archive.database import Database, Work

__all__ = ["SqlArchive"]

T = TypeVar("T")
_log = logging.getLogger("agentscope_compaction")
_REF = re.compile(r"[A-Za-z0-9_-]{1,128}")


class SqlArchive:
    """Histories in a SQLite file or a PostgreSQL database; keeps the promises of ``Archive``.

    Opened on first use; the schema is created or migrated then, safely beside other processes, and
    a newer schema is refused. No connection outlives an operation, so one instance serves several
    event loops, threads and forked processes; pass a pooled ``engine`` to save connecting.

    Cost: ``save`` encodes the history once in a thread, writes what is new, and reads all of it
    back; ``load_result`` reads the tree of addresses and one block.

    Args:
        url: None for ``$AGENTSCOPE_COMPACTION_ARCHIVE`` or else a file in the user's data
            directory; a path for that SQLite file, its folders created; or
            ``sqlite+aiosqlite:///FILE`` or ``postgresql+asyncpg://USER:PASSWORD@HOST/DATABASE``.
        engine: Use this engine instead; never disposed, its settings never changed, and used only
            on the event loops it works with.
        timeout: Seconds to wait for a locked database, or for a server to answer.

    Raises:
        ConfigurationError: The URL names no database this archive can use, both ``url`` and
            ``engine`` were given, or the extra ``postgres`` is missing (also ``ImportError``).
    """

    def __init__(
        self,
        url: str | Path | None = None,
        *,
        engine: AsyncEngine | None = None,
        timeout: float = 30.0,
    ) -> None:
        if url is not None and engine is not None:
            raise ConfigurationError("give an archive a url or an engine, not both")
        if engine is not None and engine.dialect.name not in ("sqlite", "postgresql"):
            raise ConfigurationError(f"no archive speaks {engine.dialect.name!r}")
        self._location = None if engine is not None else locate(url)
        self._engine = engine
        self._timeout = timeout
        self._lock = threading.Lock()
        self._opened: WeakKeyDictionary[asyncio.AbstractEventLoop, Database] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"SqlArchive({str(self._location) if self._location else 'engine'!r})"

    @property
    def path(self) -> Path | None:
        """The SQLite file; None for a server, a SQLite URI or a caller's engine."""
        return self._location.path if self._location else None

    async def save(
        self,
        session_id: str,
        messages: Sequence[JSONObject],
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> ArchiveRef:
        """See :meth:`Archive.save`."""
        from agentscope_compaction.archive import operations

        frozen = freeze(messages)
        shot = await asyncio.to_thread(take_apart, session_id, frozen)
        about = None if meta is None else await asyncio.to_thread(encoded_meta, meta)
        name = session_bytes(session_id)
        await self._run("save", lambda work: operations.save(work, name, shot, about))
        return shot.ref

    async def load(self, ref: str) -> Messages:
        """See :meth:`Archive.load`."""
        from agentscope_compaction.archive import operations

        known = _checked(ref)
        return await self._run("load", lambda work: operations.load(work, known))

    async def load_result(self, ref: str, call_id: str) -> JSONObject:
        """See :meth:`Archive.load_result`."""
        from agentscope_compaction.archive import operations

        known = _checked(ref)
        return await self._run(
            "load a result", lambda work: operations.load_result(work, known, call_id)
        )

    async def record(
        self,
        ref: str,
        proposal: CompactionProposal,
        outcome: Outcome | str | Mapping[str, Any],
    ) -> None:
        """See :meth:`Archive.record`."""
        from agentscope_compaction.archive import operations

        known, raw = _checked(ref), encode(Outcome.of(outcome).as_json()).raw
        kept = await asyncio.to_thread(encoded_proposal, proposal)
        await self._run("record an outcome", lambda work: operations.record(work, known, kept, raw))

    async def history(self, ref: str) -> Records:
        """See :meth:`AuditedArchive.history`."""
        from agentscope_compaction.archive import operations

        known = _checked(ref)
        return await self._run("read the history", lambda work: operations.history(work, known))

    async def list(self, session_id: str | None = None) -> Entries:
        """See :meth:`Archive.list`; :meth:`survey` names what it leaves out."""
        found, damaged = await self.survey(session_id)
        for ref in damaged:
            _log.warning("archive: the row of snapshot %r is damaged; it is not listed", ref)
        return found

    async def survey(self, session_id: str | None = None) -> tuple[Entries, Sequence[str]]:
        """What :meth:`list` returns, and the references of snapshots whose row is damaged.

        Blocks are not read: damage in them shows when a snapshot is loaded.
        """
        from agentscope_compaction.archive import operations

        name = None if session_id is None else session_bytes(session_id)
        return await self._run("list", lambda work: operations.entries(work, name))

    async def entry(self, ref: str) -> ArchiveEntry:
        """See :meth:`AuditedArchive.entry`."""
        from agentscope_compaction.archive import operations

        known = _checked(ref)
        return await self._run("read an entry", lambda work: operations.entry(work, known))

    async def sessions(self) -> Usages:
        """See :meth:`AuditedArchive.sessions`."""
        from agentscope_compaction.archive import operations

        return await self._run("count", operations.usages)

    async def delete(self, session_id: str) -> int:
        """See :meth:`Archive.delete`."""
        from agentscope_compaction.archive import collect

        name = session_bytes(session_id)
        return await self._run("delete", lambda work: collect.delete(work, name))

    async def prune(self, older_than: datetime) -> int:
        """See :meth:`Archive.prune`."""
        from agentscope_compaction.archive import collect

        before = microseconds(older_than)
        return await self._run("prune", lambda work: collect.prune(work, before))

    async def close(self) -> None:
        """Release what was opened; a later use opens it again."""
        with self._lock:
            opened = [*self._opened.values()]
            self._opened.clear()
        for database in opened:
            await database.close()

    async def __aenter__(self) -> Self:
        """The archive itself; still opened on first use."""
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        await self.close()

    async def _run(self, doing: str, work: Callable[[Work], Awaitable[T]]) -> T:
        loop = asyncio.get_running_loop()
        with self._lock:
            database = self._opened.get(loop)
        if database is None:  # an engine each: SQLAlchemy's own locks belong to one loop
            database = await asyncio.to_thread(self._open)
            with self._lock:
                database = self._opened.setdefault(loop, database)
        return await database.run(doing, work)

    def _open(self) -> Database:
        from sqlalchemy.ext.asyncio import create_async_engine
        from sqlalchemy.pool import NullPool

        from agentscope_compaction.archive.database import PATIENCE, Database

        if self._engine is not None:
            return Database(self._engine, owned=False, timeout=self._timeout)
        assert self._location is not None
        if self._location.path is not None:
            _make_file(self._location.path)
        limits = {"timeout": self._timeout, "command_timeout": self._timeout}
        if self._location.url.drivername.startswith("sqlite"):
            limits = {"timeout": min(self._timeout, PATIENCE)}
        engine = create_async_engine(
            self._location.url, poolclass=NullPool, hide_parameters=True, connect_args=limits
        )
        return Database(engine, owned=True, timeout=self._timeout)


def _checked(ref: str) -> str:
    """A reference that could be one of ours; anything else is data that names nothing."""
    if not isinstance(ref, str) or _REF.fullmatch(ref) is None:
        raise ArchiveNotFoundError("nothing is archived under this reference")
    return str(ref)


def _make_file(path: Path) -> None:
    """Create a new archive's file readable by its owner only: histories hold secrets."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as exc:
        raise ArchiveError(f"archive: cannot create its file: {exc.strerror}") from exc
