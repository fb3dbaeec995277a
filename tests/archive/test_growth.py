"""Small: a history that grows is stored once, whatever grows and wherever it changes."""

import sqlite3
from contextlib import closing

import pytest

from agentscope_compaction.archive import SqlArchive
from agentscope_compaction.archive.manifest import take_apart
from tests.archive.conftest import Build

pytestmark = pytest.mark.anyio


async def test_a_growing_reply_stores_each_block_once(sqlite: SqlArchive, reply: Build) -> None:
    """Archived after every call, each call and each result is one stored object."""
    for calls in range(60):
        await sqlite.save("s", reply(calls))
    assert sqlite.path is not None
    with closing(sqlite3.connect(sqlite.path)) as conn:
        bodies = conn.execute("SELECT body, checksum FROM compaction_object").fetchall()
    results = [body for body, checksum in bodies if checksum is not None and len(body) < 200]
    assert len(results) >= 59
    shots = [take_apart("s", reply(calls)) for calls in range(60)]
    assert len(bodies) == len({digest for shot in shots for digest in shot.objects})
    (usage,) = await sqlite.sessions()
    assert usage.stored_bytes < usage.chars / 10


def test_growth_adds_a_path_not_a_copy(reply: Build) -> None:
    """One more call in a long reply adds its two blocks, an envelope, and a few groups."""
    seen: set[bytes] = set(take_apart("s", reply(1500)).objects)
    added: list[int] = []
    sizes: list[int] = []
    for calls in range(1501, 1541):
        shot = take_apart("s", reply(calls))
        new = set(shot.objects) - seen
        seen |= new
        added.append(len(new))
        groups = [raw for digest, raw in shot.objects.items() if digest in new and raw[:1] == b"N"]
        sizes.append(sum(map(len, groups)) + len(shot.root))
    assert max(added) <= 14
    assert sum(sizes) / len(sizes) < 3000


def test_a_call_cut_from_the_middle_shares_the_rest(reply: Build) -> None:
    """After a block went, what comes behind it is still the same groups."""
    messages = reply(1000)
    before = set(take_apart("s", messages).objects)
    del messages[1]["content"][600:602]
    after = set(take_apart("s", messages).objects)
    assert len(after - before) <= 14


def test_split_messages_share_too(reply: Build) -> None:
    """A history of many short messages that grows by one adds a few objects."""
    messages = [{"id": f"m{n}", "content": [{"type": "text", "text": str(n)}]} for n in range(900)]
    before = set(take_apart("s", messages).objects)
    messages.append({"id": "new", "content": [{"type": "text", "text": "new"}]})
    assert len(set(take_apart("s", messages).objects) - before) <= 10


async def test_deleting_everything_leaves_nothing(sqlite: SqlArchive, reply: Build) -> None:
    """After the last session is deleted no row of it is left."""
    for calls in range(0, 60, 7):
        await sqlite.save(f"s{calls % 2}", reply(calls))
    await sqlite.delete("s0")
    await sqlite.delete("s1")
    assert sqlite.path is not None
    with closing(sqlite3.connect(sqlite.path)) as conn:
        for table in ("session", "object", "hold", "snapshot", "record"):
            assert conn.execute(f"SELECT count(*) FROM compaction_{table}").fetchone() == (0,)
