"""Older schemas are brought up to date; newer ones and other people's tables are refused."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentscope_compaction.archive import SqlArchive
from agentscope_compaction.archive.schema import MIGRATIONS, is_current, migrate, schema_version
from agentscope_compaction.errors import ArchiveError
from tests.archive.behind import execute

pytestmark = pytest.mark.anyio


async def test_newer_schema_is_refused(url: str) -> None:
    """A schema from the future is refused by every method, on each database."""
    async with SqlArchive(url) as archive:
        await archive.save("s", [])
        await execute(archive, "UPDATE compaction_schema SET version = 99")
        for attempt in (archive.save("s", [{}]), archive.list(), archive.delete("s")):
            with pytest.raises(ArchiveError, match="newer"):
                await attempt


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE compaction_schema (other TEXT)",
        "CREATE TABLE compaction_schema (version TEXT)",
        "CREATE TABLE compaction_snapshot (other TEXT)",
        "CREATE VIEW compaction_object AS SELECT 1",
    ],
)
async def test_wrong_schema_is_refused(tmp_path: Path, sql: str) -> None:
    """Tables of our names that are not ours are an archive error, and are left alone."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as conn:
        conn.execute(sql)
    with pytest.raises(ArchiveError, match=r"cannot save|holds no archive"):
        await SqlArchive(path, timeout=0.1).save("s", [])
    with closing(sqlite3.connect(path)) as conn:
        assert [row[0] for row in conn.execute("SELECT sql FROM sqlite_master")] == [sql]


async def test_migrations_run_once_and_in_order(url: str) -> None:
    """An older schema is brought up to date by the migrations it lacks, and its data stays."""
    later = (*MIGRATIONS, ("ALTER TABLE compaction_session ADD COLUMN note TEXT",))
    async with SqlArchive(url) as archive:
        ref = await archive.save("s", [{"content": ["a"]}])

        async def upgrade(work: Any) -> list[object]:
            async with work.migrating() as conn:
                await migrate(conn, later)
                await migrate(conn, later)
                return [await schema_version(conn), await is_current(conn, later)]

        assert await archive._run("migrate", upgrade) == [2, True]
        with pytest.raises(ArchiveError, match="newer"):
            await archive.load(ref)
        await execute(archive, "UPDATE compaction_schema SET version = 1")
        assert await archive.load(ref) == [{"content": ["a"]}]
