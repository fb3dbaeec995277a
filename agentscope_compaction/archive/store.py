"""Statements of the SQL archive on objects and sessions, inside a caller's transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from agentscope_compaction.archive.codec import Body, address, unpack
from agentscope_compaction.archive.manifest import Entry, Snapshot, entries_of, node_entries
from agentscope_compaction.archive.schema import holds, objects, sessions
from agentscope_compaction.errors import ArchiveIntegrityError

__all__ = [
    "add_objects",
    "batched",
    "expand",
    "missing_objects",
    "read_objects",
    "release",
    "replace_objects",
    "session_of",
    "upsert",
]

_BATCH = 500


def batched(items: Iterable[Any], size: int = _BATCH) -> Iterator[list[Any]]:
    """Lists of at most ``size`` items, so that no statement has too many parameters."""
    ordered = list(items)
    return (ordered[at : at + size] for at in range(0, len(ordered), size))


def upsert(conn: AsyncConnection, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    """An INSERT of the connection's dialect, which can say what to do on a conflict."""
    return sqlite.insert(table) if conn.dialect.name == "sqlite" else postgresql.insert(table)


async def session_of(conn: AsyncConnection, name: bytes, *, create: bool) -> int | None:
    """The row id of a session; None where unknown and not created."""
    key = address(name)
    query = sa.select(sessions.c.id).where(sessions.c.key == key)
    found: int | None = (await conn.execute(query)).scalar()
    if found is None and create:
        row = {"key": key, "name": name}
        await conn.execute(upsert(conn, sessions).values(row).on_conflict_do_nothing())
        found = (await conn.execute(query)).scalar()
    return found


async def missing_objects(
    conn: AsyncConnection, session: int | None, shot: Snapshot
) -> list[bytes]:
    """Addresses of a snapshot's objects that its session does not hold yet.

    Asks from the top: a session that holds a group holds all below it.
    """
    missing: list[bytes] = []
    seen: set[bytes] = set()
    level = entries_of(shot.root)
    while level:
        new = {entry.digest: entry for entry in level if entry.digest not in seen}
        seen.update(new)
        held = await _held(conn, session, new)
        lacking = [entry for digest, entry in new.items() if digest not in held]
        missing.extend(entry.digest for entry in lacking)
        level = [
            child
            for entry in lacking
            if entry.is_node
            for child in node_entries(shot.objects[entry.digest])
        ]
    return missing


async def _held(
    conn: AsyncConnection, session: int | None, digests: Collection[bytes]
) -> set[bytes]:
    found: set[bytes] = set()
    if session is not None:
        query = sa.select(objects.c.digest).join(holds, holds.c.object_id == objects.c.id)
        query = query.where(holds.c.session_id == session)
        for batch in batched(digests):
            rows = await conn.execute(query.where(objects.c.digest.in_(batch)))
            found.update(rows.scalars())
    return found


async def add_objects(conn: AsyncConnection, session: int, bodies: Mapping[bytes, Body]) -> None:
    """Store what is not there, and have the session hold all of it.

    In the order of the addresses, so that two writers never wait for each other in a circle.
    """
    for batch in batched(sorted(bodies)):
        rows = [
            {"digest": d, "checksum": bodies[d].checksum, "body": bodies[d].stored} for d in batch
        ]
        await conn.execute(upsert(conn, objects).on_conflict_do_nothing(), rows)
        wanted = sa.select(sa.literal(session, sa.BigInteger), objects.c.id)
        wanted = wanted.where(objects.c.digest.in_(batch)).order_by(objects.c.digest)
        hold = upsert(conn, holds).from_select(["session_id", "object_id"], wanted)
        await conn.execute(hold.on_conflict_do_nothing())


async def replace_objects(
    conn: AsyncConnection, session: int, bodies: Mapping[bytes, Body]
) -> None:
    """Store bodies over what is there."""
    await add_objects(conn, session, bodies)
    for digest in sorted(bodies):
        body = bodies[digest]
        statement = sa.update(objects).where(objects.c.digest == digest)
        await conn.execute(statement.values(body=body.stored, checksum=body.checksum))


async def read_objects(conn: AsyncConnection, digests: Collection[bytes]) -> dict[bytes, bytes]:
    """Address to raw bytes, every digest checked.

    Raises:
        ArchiveIntegrityError: An object is missing or damaged.
    """
    raw: dict[bytes, bytes] = {}
    query = sa.select(objects.c.digest, objects.c.body, objects.c.checksum)
    for batch in batched(digests):
        rows = (await conn.execute(query.where(objects.c.digest.in_(batch)))).all()
        raw.update(await asyncio.to_thread(_unpacked, rows))
    for digest in digests:
        if digest not in raw:
            raise ArchiveIntegrityError(f"stored object {digest.hex()[:16]} is missing")
    return raw


def _unpacked(rows: Sequence[Any]) -> dict[bytes, bytes]:
    return {row.digest: unpack(row.digest, row.body, row.checksum) for row in rows}


async def expand(
    conn: AsyncConnection, root: bytes, groups: dict[bytes, bytes] | None = None
) -> list[Entry]:
    """The leaves under a root, in order; reads the groups and no block.

    Args:
        conn: A connection in a transaction.
        root: A snapshot's root.
        groups: Raw bytes of groups already read; filled with those that were not.

    Raises:
        ArchiveIntegrityError: A group is missing or damaged.
    """
    known = {} if groups is None else groups
    entries = entries_of(root)
    while any(entry.is_node for entry in entries):
        wanted = {entry.digest for entry in entries if entry.is_node} - known.keys()
        known.update(await read_objects(conn, wanted))
        entries = [
            child
            for entry in entries
            for child in (node_entries(known[entry.digest]) if entry.is_node else (entry,))
        ]
    return entries


async def release(conn: AsyncConnection, session: int, object_ids: Collection[int]) -> None:
    """End a session's hold on objects, and delete those that no session holds any more."""
    for batch in batched(object_ids):
        mine = holds.c.session_id == session
        await conn.execute(sa.delete(holds).where(mine, holds.c.object_id.in_(batch)))
        others = sa.exists().where(holds.c.object_id == objects.c.id)
        await conn.execute(sa.delete(objects).where(objects.c.id.in_(batch), ~others))
