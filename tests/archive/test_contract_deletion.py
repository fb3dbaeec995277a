"""Deleting and pruning on any archive: what goes, what stays whole, and what is used."""

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from agentscope_compaction.core.types import CompactionProposal
from agentscope_compaction.errors import ArchiveNotFoundError, ConfigurationError
from tests.archive.conftest import AnyArchive, Build

pytestmark = pytest.mark.anyio


async def test_delete_leaves_other_sessions_whole(
    archive: AnyArchive, reply: Build, proposal: CompactionProposal
) -> None:
    """Deleting a session takes its snapshots and records, and no block another session holds."""
    gone = [await archive.save("a", reply(n)) for n in (1, 5, 30)]
    kept = await archive.save("b", reply(30))
    for ref in (gone[0], kept):
        await archive.record(ref, proposal, "accepted")
    assert await archive.delete("a") == 3
    assert await archive.delete("a") == 0
    for ref in gone:
        with pytest.raises(ArchiveNotFoundError):
            await archive.load(ref)
    assert await archive.load(kept) == reply(30)
    assert len(await archive.history(kept)) == 1
    assert [e.ref for e in await archive.list()] == [kept]
    assert await archive.save("a", reply(5)) == gone[1]
    assert await archive.load(gone[1]) == reply(5)
    assert await archive.history(gone[1]) == []


async def test_prune_deletes_what_is_older(
    archive: AnyArchive, reply: Build, proposal: CompactionProposal
) -> None:
    """Snapshots saved before the moment go, later ones and those saved again stay whole."""
    old = [await archive.save("a", reply(n)) for n in (10, 20)]
    only_old = await archive.save("b", reply(3, seed=1))
    renewed = await archive.save("c", reply(4, seed=2))
    await archive.record(renewed, proposal, "accepted")
    moment = (await archive.list())[0].created_at + timedelta(microseconds=1)
    new = await archive.save("a", reply(30))
    await archive.save("c", reply(4, seed=2))
    assert await archive.prune(moment.astimezone(timezone(timedelta(hours=5)))) == 3
    assert await archive.prune(moment) == 0
    for ref in (*old, only_old):
        with pytest.raises(ArchiveNotFoundError):
            await archive.load(ref)
    assert await archive.load(new) == reply(30)
    assert await archive.load(renewed) == reply(4, seed=2)
    assert len(await archive.history(renewed)) == 1
    assert {usage.session_id for usage in await archive.sessions()} == {"a", "c"}


@pytest.mark.parametrize("when", [datetime(2030, 1, 1), "2030-01-01", 3, None])
async def test_prune_needs_a_moment(archive: AnyArchive, when: Any) -> None:
    """A time without a zone names no moment and is refused, and so is anything but a time."""
    await archive.save("a", [])
    with pytest.raises(ConfigurationError, match="time zone"):
        await archive.prune(when)
    assert len(await archive.list()) == 1


async def test_usage_by_session(archive: AnyArchive, reply: Build) -> None:
    """Counts and sizes are told by session, and a snapshot that grew costs what it grew by."""
    await archive.save("a", reply(10))
    (before,) = await archive.sessions()
    await archive.save("a", reply(11))
    await archive.save("b", [])
    after = {usage.session_id: usage for usage in await archive.sessions()}
    assert after["a"].snapshots == 2
    assert after["a"].chars == sum(e.chars for e in await archive.list("a"))
    assert before.stored_bytes < after["a"].stored_bytes < 1.5 * before.stored_bytes
    assert after["b"].snapshots == 1
