"""Failure is loud: damage, locks, full and read-only databases, and schemas we do not know."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.ext.asyncio import create_async_engine

from agentscope_compaction.archive import SqlArchive, schema
from agentscope_compaction.core.types import CompactionProposal
from agentscope_compaction.errors import (
    ArchiveError,
    ArchiveIntegrityError,
    ArchiveNotFoundError,
)

pytestmark = pytest.mark.anyio

Build = Callable[..., list[dict[str, Any]]]


@contextmanager
def database(archive: SqlArchive) -> Iterator[sqlite3.Connection]:
    """The archive's file, opened behind its back."""
    assert archive.path is not None
    with closing(sqlite3.connect(archive.path, isolation_level=None)) as conn:
        yield conn


def flipped(data: bytes, at: int) -> bytes:
    """The bytes with one bit changed."""
    changed = bytearray(data)
    changed[at] ^= 0x10
    return bytes(changed)


async def test_flipped_object_bytes_are_noticed(sqlite: SqlArchive, reply: Build) -> None:
    """A changed bit in the first, middle or last byte of any stored body fails the load."""
    ref = await sqlite.save("s", reply(12))
    with database(sqlite) as conn:
        rows = conn.execute("SELECT id, body FROM compaction_object").fetchall()
        assert len(rows) > 26
        for row, body in rows:
            for at in {0, len(body) // 2, len(body) - 1}:
                put = "UPDATE compaction_object SET body = ? WHERE id = ?"
                conn.execute(put, (flipped(body, at), row))
                with pytest.raises(ArchiveIntegrityError):
                    await sqlite.load(ref)
            conn.execute(put, (body, row))
    assert await sqlite.load(ref) == reply(12)


@pytest.mark.parametrize(
    "column", ["session_id", "created_us", "messages", "chars", "root", "meta", "seal"]
)
async def test_changed_snapshot_columns_are_noticed(
    sqlite: SqlArchive, reply: Build, column: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Every column of a snapshot's row is covered by its seal; the list leaves it out and says so.

    The other rows are listed, and ``load`` stays strict.
    """
    ref = await sqlite.save("s", reply(2), meta={"a": "b" * 200})
    other = await sqlite.save("t", [])
    with database(sqlite) as conn:
        (old,) = conn.execute(
            f"SELECT {column} FROM compaction_snapshot WHERE ref = ?", (ref,)
        ).fetchone()
        new = flipped(old, len(old) // 2) if isinstance(old, bytes) else 3 - old
        conn.execute(f"UPDATE compaction_snapshot SET {column} = ? WHERE ref = ?", (new, ref))
    with pytest.raises(ArchiveIntegrityError):
        await sqlite.load(ref)
    assert [entry.ref for entry in await sqlite.list()] == [other]
    assert (await sqlite.survey())[1] == [ref]
    assert ref in caplog.text and other not in caplog.text
    with pytest.raises(ArchiveIntegrityError):
        await sqlite.entry(ref)


async def test_a_damaged_row_is_left_out_on_each_database(url: str, reply: Build) -> None:
    """One damaged row hides no other, on SQLite and on PostgreSQL; by session too."""
    async with SqlArchive(url) as archive:
        refs = [await archive.save("s", reply(n)) for n in range(3)]
        await _raw(archive, f"UPDATE compaction_snapshot SET chars = 7 WHERE ref = '{refs[1]}'")
        for session in (None, "s"):
            assert [entry.ref for entry in await archive.list(session)] == [refs[2], refs[0]]
            assert (await archive.survey(session))[1] == [refs[1]]
        assert (await archive.survey("t"))[1] == []
        with pytest.raises(ArchiveIntegrityError):
            await archive.load(refs[1])


async def test_rows_without_their_session(sqlite: SqlArchive, reply: Build) -> None:
    """A snapshot whose session is gone or unreadable is damaged, not absent; usage still counts."""
    ref = await sqlite.save("s", reply(1))
    with database(sqlite) as conn:
        conn.execute("UPDATE compaction_session SET name = x'ff'")
        assert [usage.session_id for usage in await sqlite.sessions()] == ["\\xff"]
        assert (await sqlite.survey())[1] == [ref]
        conn.execute("PRAGMA foreign_keys = OFF")
        conn.execute("DELETE FROM compaction_session")
    assert await sqlite.list() == []
    assert (await sqlite.survey())[1] == [ref]
    with pytest.raises(ArchiveIntegrityError):
        await sqlite.load(ref)


@pytest.mark.parametrize("column", ["recorded_us", "outcome", "proposal", "seal"])
async def test_changed_records_are_noticed(
    sqlite: SqlArchive, proposal: CompactionProposal, column: str
) -> None:
    """Every column of a record is covered by its seal."""
    ref = await sqlite.save("s", [])
    await sqlite.record(ref, proposal, "accepted")
    with database(sqlite) as conn:
        (old,) = conn.execute(f"SELECT {column} FROM compaction_record").fetchone()
        new = flipped(old, len(old) // 2) if isinstance(old, bytes) else old + 1
        conn.execute(f"UPDATE compaction_record SET {column} = ?", (new,))
    with pytest.raises(ArchiveIntegrityError):
        await sqlite.history(ref)


async def test_missing_objects_and_swapped_bodies(sqlite: SqlArchive, reply: Build) -> None:
    """A body that went missing, or holds another block's bytes, is damage, not another history."""
    ref = await sqlite.save("s", reply(3))
    with database(sqlite) as conn:
        rows = conn.execute("SELECT id, body, checksum FROM compaction_object").fetchall()
        (first, *_), (_, body, checksum) = rows[0], rows[1]
        put = "UPDATE compaction_object SET body = ?, checksum = ? WHERE id = ?"
        conn.execute(put, (body, checksum, first))
        with pytest.raises(ArchiveIntegrityError):
            await sqlite.load(ref)
        conn.execute("DELETE FROM compaction_object WHERE id = ?", (first,))
    with pytest.raises(ArchiveIntegrityError):
        await sqlite.load(ref)


async def test_one_result_survives_damage_elsewhere(sqlite: SqlArchive, reply: Build) -> None:
    """A single result is read without the other blocks, so damage to those does not matter."""
    messages = reply(30)
    ref = await sqlite.save("s", messages)
    wanted = messages[1]["content"][21]
    with database(sqlite) as conn:
        conn.execute(
            "UPDATE compaction_object SET body = x'00' WHERE checksum IS NOT NULL AND digest <> ?",
            (_address(wanted),),
        )
    assert await sqlite.load_result(ref, wanted["id"]) == wanted
    with pytest.raises(ArchiveIntegrityError):
        await sqlite.load_result(ref, "call_0_11")


async def test_saving_again_mends(
    sqlite: SqlArchive, reply: Build, caplog: pytest.LogCaptureFixture
) -> None:
    """A save that relies on a damaged block stores it again, and says so."""
    ref = await sqlite.save("s", reply(20))
    with database(sqlite) as conn:
        conn.execute("UPDATE compaction_object SET body = x'3000'")
    with pytest.raises(ArchiveIntegrityError):
        await sqlite.load(ref)
    grown = await sqlite.save("s", reply(21))
    assert await sqlite.load(grown) == reply(21)
    assert "damaged" in caplog.text
    await sqlite.save("s", reply(20))
    assert await sqlite.load(ref) == reply(20)


async def test_damaged_sessions_can_be_deleted_and_pruned(sqlite: SqlArchive, reply: Build) -> None:
    """Deleting needs nothing to be readable; pruning keeps the blocks of what it cannot read."""
    await sqlite.save("s", reply(40))
    moment = (await sqlite.list())[0].created_at
    kept = await sqlite.save("s", reply(41))
    await sqlite.save("t", reply(40))
    with database(sqlite) as conn:
        conn.execute("UPDATE compaction_snapshot SET created_us = 0 WHERE ref <> ?", (kept,))
        good = conn.execute("SELECT id, body FROM compaction_object").fetchall()
        conn.execute("UPDATE compaction_object SET body = x'3000'")
        assert await sqlite.prune(moment) == 2
        conn.executemany("UPDATE compaction_object SET body = ?2 WHERE id = ?1", good)
    assert await sqlite.load(kept) == reply(41)
    with database(sqlite) as conn:
        conn.execute("UPDATE compaction_object SET body = x'3000'")
        assert await sqlite.delete("s") == 1
        assert conn.execute("SELECT count(*) FROM compaction_object").fetchone() == (0,)


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
    with pytest.raises(ArchiveError):
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


async def test_newer_schema_is_refused(url: str) -> None:
    """A schema from the future is refused by every method, on each database."""
    async with SqlArchive(url) as archive:
        await archive.save("s", [])
        await _raw(archive, "UPDATE compaction_schema SET version = 99")
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
    with pytest.raises(ArchiveError):
        await SqlArchive(path, timeout=0.1).save("s", [])
    with closing(sqlite3.connect(path)) as conn:
        assert [row[0] for row in conn.execute("SELECT sql FROM sqlite_master")] == [sql]


async def test_migrations_run_once_and_in_order(url: str) -> None:
    """An older schema is brought up to date by the migrations it lacks, and its data stays."""
    from agentscope_compaction.archive.schema import is_current, migrate, schema_version

    later = (*schema.MIGRATIONS, ("ALTER TABLE compaction_session ADD COLUMN note TEXT",))
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
        await _raw(archive, "UPDATE compaction_schema SET version = 1")
        assert await archive.load(ref) == [{"content": ["a"]}]


async def _raw(archive: SqlArchive, sql: str) -> None:
    """Run a statement on the archive's database, behind its back."""
    assert archive._location is not None
    engine = create_async_engine(archive._location.url)
    try:
        async with engine.begin() as conn:
            await conn.exec_driver_sql(sql)
    finally:
        await engine.dispose()


def _address(block: object) -> bytes:
    from agentscope_compaction.archive.codec import address, encode

    return address(encode(block).raw)
