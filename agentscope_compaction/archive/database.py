"""Connections and transactions of the SQL archive: durable, retried, and never a raw error.

No connection lives between two operations: each opens its own and closes it. So an archive serves
any number of event loops, one after the other or at once, and survives a fork. A caller who wants
pooling passes an engine.

Writers and collectors exclude each other; writers do not exclude writers. On PostgreSQL every
transaction that stores takes ``ROW EXCLUSIVE`` on the table of objects *before* it looks what is
there, and every one that deletes takes ``SHARE ROW EXCLUSIVE``, which waits for the former and
keeps new ones out. So no block disappears between the look and the commit of a save. On SQLite
``BEGIN IMMEDIATE`` admits one writer at a time.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from agentscope_compaction.archive.schema import is_current, migrate
from agentscope_compaction.errors import ArchiveError, ArchiveIntegrityError

__all__ = ["PATIENCE", "Database", "Work"]

T = TypeVar("T")
_MIGRATION_LOCK = 0x61_73_63_6F_6D_70_61_63
"""Advisory lock of migrations on PostgreSQL; any constant does, so long as it stays."""
PATIENCE = 1.0
"""Seconds one attempt waits for a lock; we try again until the archive's own timeout."""
_PATIENCE_MS = int(1000 * PATIENCE)
_PG_DURABLE = f"""
SELECT set_config('lock_timeout', '{_PATIENCE_MS}', true),
       set_config('synchronous_commit', 'on', true)
       WHERE current_setting('synchronous_commit') = 'off'
UNION ALL SELECT set_config('lock_timeout', '{_PATIENCE_MS}', true), ''
"""
"""For one transaction: give up on a lock soon, and commit durably whatever the server's default."""
_PG_RETRY = {"40001", "40P01", "23505", "55P03"}
"""Serialization failure, deadlock, two first writers of one row, and a lock not granted in time."""
_SQLITE_SAYS = {
    sqlite3.SQLITE_BUSY: "it stayed locked by another process",
    sqlite3.SQLITE_LOCKED: "it stayed locked by another connection",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_FULL: "the disk or database is full",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened",
    sqlite3.SQLITE_IOERR: "the disk failed",
    sqlite3.SQLITE_PERM: "access is denied",
    sqlite3.SQLITE_CORRUPT: "the file is damaged",
    sqlite3.SQLITE_NOTADB: "the file is not a SQLite database",
}


class Work:
    """One connection, and the transactions an operation runs on it."""

    def __init__(self, conn: AsyncConnection, stop: asyncio.Event) -> None:
        self.conn = conn
        self._stop = stop
        self._sqlite = conn.dialect.name == "sqlite"

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that sees one state of the database throughout."""
        begin = "BEGIN" if self._sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        async with self._transaction(begin):
            yield self.conn

    @asynccontextmanager
    async def writing(self, *, collecting: bool = False) -> AsyncIterator[AsyncConnection]:
        """A transaction that stores or, ``collecting``, one that also deletes objects."""
        if self._sqlite:
            await self.conn.exec_driver_sql("PRAGMA synchronous = FULL")
        async with self._transaction("BEGIN IMMEDIATE" if self._sqlite else "BEGIN"):
            if not self._sqlite:
                await self.conn.exec_driver_sql(_PG_DURABLE)
                mode = "SHARE ROW EXCLUSIVE" if collecting else "ROW EXCLUSIVE"
                await self.conn.exec_driver_sql(f"LOCK TABLE compaction_object IN {mode} MODE")
            yield self.conn

    @asynccontextmanager
    async def migrating(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that no other migration overlaps."""
        async with self._transaction("BEGIN IMMEDIATE" if self._sqlite else "BEGIN"):
            if not self._sqlite:
                await self.conn.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
            yield self.conn

    @asynccontextmanager
    async def _transaction(self, begin: str) -> AsyncIterator[None]:
        if self._stop.is_set():
            raise asyncio.CancelledError
        await self.conn.exec_driver_sql(begin)
        try:
            yield
            await self.conn.exec_driver_sql("COMMIT")
        except BaseException:
            await self._roll_back()
            raise

    async def _roll_back(self) -> None:
        try:
            await self.conn.exec_driver_sql("ROLLBACK")
        except Exception:  # the first error counts; SQLite may have rolled back by itself
            await self.conn.invalidate()


class Database:
    """An engine and how to work with it.

    Args:
        engine: The engine.
        owned: Whether we opened it, so that its settings are ours.
        timeout: Seconds to wait for a lock before the operation fails.
    """

    def __init__(self, engine: AsyncEngine, *, owned: bool, timeout: float) -> None:
        self._engine = engine
        self._owned = owned
        self._timeout = timeout

    async def run(self, doing: str, work: Callable[[Work], Awaitable[T]]) -> T:
        """Run an operation on a fresh connection, again while the database is busy.

        The operation may run several times, so it must be one that can.

        Raises:
            ArchiveError: With the cause; ``doing`` says what failed.
        """
        return await _in_peace(lambda stop: self._until_done(doing, work, stop))

    async def close(self) -> None:
        """Dispose an engine we opened."""
        if self._owned:
            await self._engine.dispose()

    async def _until_done(
        self, doing: str, work: Callable[[Work], Awaitable[T]], stop: asyncio.Event
    ) -> T:
        deadline = time.monotonic() + self._timeout
        while not stop.is_set():
            try:
                return await self._once(work, stop)
            except ArchiveError:
                raise
            except Exception as exc:
                if not _is_busy(exc) or time.monotonic() >= deadline:
                    raise _translated(doing, exc) from exc
            await asyncio.sleep(random.uniform(0.001, 0.02))
        raise asyncio.CancelledError

    async def _once(self, work: Callable[[Work], Awaitable[T]], stop: asyncio.Event) -> T:
        async with self._engine.connect() as conn:
            await conn.execution_options(isolation_level="AUTOCOMMIT")
            task = Work(conn, stop)
            if not await is_current(conn):
                if conn.dialect.name == "sqlite" and self._owned:
                    await conn.exec_driver_sql("PRAGMA journal_mode = WAL")
                async with task.migrating():
                    await migrate(conn)
            return await work(task)


async def _in_peace(work: Callable[[asyncio.Event], Coroutine[Any, Any, T]]) -> T:
    """Run work that is asked to stop, never interrupted, when the caller is cancelled.

    A driver interrupted in a statement leaves futures that nobody awaits, and one that is
    interrupted again while it rolls back (anyio repeats a cancellation until its scope is left)
    waits for ever. So the work is a task of its own, it looks at ``stop`` before each transaction,
    and we wait for its end.
    """
    stop = asyncio.Event()
    task = asyncio.ensure_future(work(stop))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # looked at, so that it is not reported as lost
        raise


def _driver_error(exc: BaseException) -> BaseException:
    return exc.orig if isinstance(exc, DBAPIError) and exc.orig is not None else exc


def _sqlite_code(exc: BaseException) -> int | None:
    code = getattr(_driver_error(exc), "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None


def _is_busy(exc: Exception) -> bool:
    if _sqlite_code(exc) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return True
    return getattr(_driver_error(exc), "sqlstate", None) in _PG_RETRY


def _translated(doing: str, exc: Exception) -> ArchiveError:
    """Our error for the database's: what was being done and why not, never data or credentials."""
    code = _sqlite_code(exc)
    state = getattr(_driver_error(exc), "sqlstate", None)
    why = _SQLITE_SAYS.get(code) if code is not None else None
    if why is None:
        why = f"{type(_driver_error(exc)).__name__}" + (f" ({state})" if state else "")
    damaged = code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    damaged = damaged or (isinstance(state, str) and state.startswith("XX00"))
    return (ArchiveIntegrityError if damaged else ArchiveError)(f"archive: cannot {doing}: {why}")
