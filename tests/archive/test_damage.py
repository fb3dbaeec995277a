"""Damage is noticed wherever it is, hides nothing else, and can be mended or deleted."""

import pytest

from agentscope_compaction.archive import SqlArchive
from agentscope_compaction.core.types import CompactionProposal
from agentscope_compaction.errors import ArchiveIntegrityError
from tests.archive.behind import address, database, execute, flipped
from tests.archive.conftest import Build

pytestmark = pytest.mark.anyio


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
        await execute(archive, f"UPDATE compaction_snapshot SET chars = 7 WHERE ref = '{refs[1]}'")
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
            (address(wanted),),
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
