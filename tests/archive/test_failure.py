"""Failure is loud: files that are no archive, locks, full and read-only databases."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.ext.asyncio import create_async_engine

from agentscope_compaction.archive import SqlArchive
from agentscope_compaction.core.types import CompactionProposal
from agentscope_compaction.errors import ArchiveError, ArchiveIntegrityError, ArchiveNotFoundError
from tests.archive.behind import database
from tests.archive.conftest import Build

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("part", [0.0, 0.02, 0.3, 0.6, 0.95])
async def test_truncated_files(sqlite: SqlArchive, reply: Build, part: float) -> None:
    """A file cut short is an archive error or still whole; never another history."""
    ref = await sqlite.save("s", reply(60, size=400))
    path = sqlite.path
    assert path is not None
    with path.open("r+b") as file:
        file.truncate(int(path.stat().st_size * part))
    with pytest.raises((ArchiveIntegrityError, ArchiveNotFoundError)):
        await sqlite.load(ref)


async def test_not_a_database(tmp_path: Path) -> None:
    """A file that is something else is damage, and a folder cannot be opened."""
    path = tmp_path / "text.db"
    path.write_text("this is not a database " * 100)
    with pytest.raises(ArchiveIntegrityError, match="not a SQLite"):
        await SqlArchive(path).save("s", [])
    with pytest.raises(ArchiveError, match="cannot be opened") as caught:
        await SqlArchive(tmp_path).list()
    assert caught.value.__cause__ is not None
    with pytest.raises(ArchiveError, match="create its file"):
        await SqlArchive(path / "below.db").list()


async def test_read_only(sqlite: SqlArchive, reply: Build, proposal: CompactionProposal) -> None:
    """A read-only archive is read, and refuses to write."""
    ref = await sqlite.save("s", reply(2))
    async with SqlArchive(f"sqlite:///file:{sqlite.path}?mode=ro&uri=true") as archive:
        assert await archive.load(ref) == reply(2)
        for attempt in (
            archive.save("s", reply(3)),
            archive.record(ref, proposal, "accepted"),
            archive.delete("s"),
        ):
            with pytest.raises(ArchiveError, match="read-only") as caught:
                await attempt
            assert isinstance(caught.value.__cause__, Exception)
    assert len(await sqlite.list()) == 1


async def test_read_only_and_empty(tmp_path: Path) -> None:
    """A read-only file without our schema is refused, not taken for an empty archive."""
    path = tmp_path / "empty.db"
    path.touch()
    with pytest.raises(ArchiveError, match="read-only"):
        await SqlArchive(f"sqlite:///file:{path}?mode=ro&uri=true").list()


async def test_full(sqlite: SqlArchive, reply: Build) -> None:
    """A full database fails the save and leaves what was there."""
    ref = await sqlite.save("s", reply(2))
    engine = create_async_engine(f"sqlite+aiosqlite:///{sqlite.path}")

    @event.listens_for(engine.sync_engine, "connect")
    def limit(connection: Any, _: object) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA max_page_count = 20")
        cursor.close()

    try:
        full = SqlArchive(engine=engine)
        with pytest.raises(ArchiveError, match="full"):
            await full.save("s", reply(400, size=500))
        assert await full.load(ref) == reply(2)
        assert await full.list("s") == await sqlite.list()
    finally:
        await engine.dispose()


async def test_locked(sqlite: SqlArchive, reply: Build) -> None:
    """A database that stays locked fails the save after the timeout; readers go on."""
    ref = await sqlite.save("s", reply(1))
    with database(sqlite) as conn:
        conn.execute("BEGIN IMMEDIATE")
        with pytest.raises(ArchiveError, match="locked"):
            await sqlite.save("s", reply(2))
        assert await sqlite.load(ref) == reply(1)
        conn.execute("ROLLBACK")
    assert await sqlite.load(await sqlite.save("s", reply(2))) == reply(2)
