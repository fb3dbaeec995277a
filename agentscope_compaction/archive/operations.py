"""What the SQL archive does on one connection: save, load, record, list."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from agentscope_compaction.archive.codec import Body, address, decode, encode, pack
from agentscope_compaction.archive.database import Work
from agentscope_compaction.archive.manifest import Snapshot, assemble, call_tag
from agentscope_compaction.archive.protocol import (
    ArchiveEntry,
    Entries,
    Messages,
    Records,
    SessionUsage,
    Usages,
)
from agentscope_compaction.archive.rows import (
    entry_of,
    inline,
    now,
    record_of,
    seal_record,
    seal_snapshot,
    session_name,
)
from agentscope_compaction.archive.schema import holds, objects, records, sessions, snapshots
from agentscope_compaction.archive.store import (
    add_objects,
    expand,
    missing_objects,
    read_objects,
    replace_objects,
    session_of,
    upsert,
)
from agentscope_compaction.core.types import JSONObject
from agentscope_compaction.errors import ArchiveIntegrityError, ArchiveNotFoundError

_log = logging.getLogger("agentscope_compaction")
_NO_META = encode({}).raw
_SMALL = 16_384
"""A snapshot of so many bytes is compressed whole rather than asked about first."""
_order = itertools.count(1)
"""Order of this process's saves within one microsecond."""


async def save(work: Work, name: bytes, shot: Snapshot, meta: bytes | None) -> None:
    """Store what is new of a snapshot, commit, and read all of it back.

    Where a block stored long ago turns out damaged, it is stored again: the bytes are at hand.
    """
    await _store(work, name, shot, meta)
    try:
        await _read_back(work, shot)
    except ArchiveIntegrityError:
        _log.warning("archive: stored blocks were damaged; storing them again")
        bodies = await asyncio.to_thread(
            lambda: {digest: pack(raw) for digest, raw in shot.objects.items()}
        )
        async with work.writing() as conn:
            session = await session_of(conn, name, create=True)
            assert session is not None
            await replace_objects(conn, session, bodies)
            await _write_row(conn, session, name, shot, meta)
        await _read_back(work, shot)


async def _store(work: Work, name: bytes, shot: Snapshot, meta: bytes | None) -> None:
    packed: dict[bytes, Body] = {}
    if sum(map(len, shot.objects.values())) <= _SMALL:
        await _pack(shot, [*shot.objects], packed)
    else:  # a look before the lock, so that the lock is short
        async with work.reading() as conn:
            session = await session_of(conn, name, create=False)
            await _pack(shot, await missing_objects(conn, session, shot), packed)
    async with work.writing() as conn:
        session = await session_of(conn, name, create=True)
        assert session is not None
        missing = await missing_objects(conn, session, shot)
        await _pack(shot, missing, packed)
        await add_objects(conn, session, {digest: packed[digest] for digest in missing})
        await _write_row(conn, session, name, shot, meta)


async def _read_back(work: Work, shot: Snapshot) -> None:
    async with work.reading() as conn:
        _, root = await _snapshot(conn, shot.ref)
        if root != shot.root:
            raise ArchiveIntegrityError("what was read back is not what was saved")
        await read_objects(conn, {leaf.digest for leaf in await expand(conn, root)})


async def load(work: Work, ref: str) -> Messages:
    """A snapshot's messages."""
    async with work.reading() as conn:
        found, root = await _snapshot(conn, ref)
        leaves = await expand(conn, root)
        raw = await read_objects(conn, {leaf.digest for leaf in leaves})
    messages = await asyncio.to_thread(assemble, leaves, raw)
    if len(messages) != found.messages:
        raise ArchiveIntegrityError("the stored history has another number of messages")
    return messages


async def load_result(work: Work, ref: str, call_id: object) -> JSONObject:
    """The last result of a call in a snapshot."""
    tag = call_tag(call_id)
    async with work.reading() as conn:
        _, root = await _snapshot(conn, ref)
        for leaf in reversed(await expand(conn, root)):
            if leaf.is_result and leaf.tag == tag:
                raw = await read_objects(conn, {leaf.digest})
                block: JSONObject = await asyncio.to_thread(decode, raw[leaf.digest])
                if call_tag(block.get("id")) == tag:
                    return block
    raise ArchiveNotFoundError("the archived snapshot holds no result of this call")


async def record(work: Work, ref: str, proposal: bytes, outcome: bytes) -> None:
    """Add an outcome to a snapshot."""
    digest = address(proposal)
    body = await asyncio.to_thread(pack, proposal)
    async with work.writing() as conn:
        query = sa.select(snapshots.c.session_id).where(snapshots.c.ref == ref)
        session = (await conn.execute(query)).scalar()
        if session is None:
            raise _unknown()
        await add_objects(conn, session, {digest: body})
        row = {"ref": ref, "recorded_us": now(), "outcome": outcome, "proposal": digest}
        await conn.execute(sa.insert(records).values(**row, seal=seal_record(row)))


async def history(work: Work, ref: str) -> Records:
    """A snapshot's records, oldest first."""
    async with work.reading() as conn:
        found, _ = await _snapshot(conn, ref)
        query = sa.select(records).where(records.c.ref == ref).order_by(records.c.id)
        rows = (await conn.execute(query)).mappings().all()
        raw = await read_objects(conn, {row["proposal"] for row in rows})
    return [record_of(dict(row), raw[row["proposal"]], found.meta) for row in rows]


async def entry(work: Work, ref: str) -> ArchiveEntry:
    """A snapshot's entry."""
    async with work.reading() as conn:
        return (await _snapshot(conn, ref))[0]


async def entries(work: Work, name: bytes | None) -> tuple[Entries, list[str]]:
    """Entries of one session or all, newest first, and the references of damaged rows."""
    query = _rows().order_by(snapshots.c.created_us.desc(), snapshots.c.seq.desc(), snapshots.c.ref)
    if name is not None:
        query = query.where(sessions.c.key == address(name))
    async with work.reading() as conn:
        rows = (await conn.execute(query)).mappings().all()
    return await asyncio.to_thread(_sound, rows)


def _sound(rows: Iterable[Mapping[Any, Any]]) -> tuple[Entries, list[str]]:
    """Entries of the rows that match their digests, and the references of those that do not."""
    good: Entries = []
    damaged: list[str] = []
    for row in rows:
        try:
            good.append(entry_of(row["name"], row["key"], dict(row)))
        except ArchiveIntegrityError:
            damaged.append(str(row["ref"]))
    return good, damaged


async def usages(work: Work) -> Usages:
    """Counts and sizes by session."""
    size = sa.func.coalesce(sa.func.sum(sa.func.length(objects.c.body)), 0)
    held = (
        sa.select(size)
        .join(holds, holds.c.object_id == objects.c.id)
        .where(holds.c.session_id == sessions.c.id)
        .scalar_subquery()
    )
    counted = (
        sa.select(
            sessions.c.name,
            sa.func.count(snapshots.c.ref),
            sa.func.coalesce(sa.func.sum(snapshots.c.chars), 0),
            held.label("stored"),
        )
        .outerjoin(snapshots, snapshots.c.session_id == sessions.c.id)
        .group_by(sessions.c.id, sessions.c.name)
        .order_by(sa.desc("stored"), sessions.c.name)
    )
    async with work.reading() as conn:
        rows = (await conn.execute(counted)).all()
    return [
        SessionUsage(session_name(name), count, int(chars), int(stored))
        for name, count, chars, stored in rows
    ]


async def _pack(shot: Snapshot, digests: list[bytes], packed: dict[bytes, Body]) -> None:
    """Compress, off the event loop, what is not yet compressed."""
    new = [digest for digest in digests if digest not in packed]
    if new:
        bodies = await asyncio.to_thread(lambda: [pack(shot.objects[digest]) for digest in new])
        packed.update(zip(new, bodies, strict=True))


async def _write_row(
    conn: AsyncConnection, session: int, name: bytes, shot: Snapshot, meta: bytes | None
) -> None:
    """Insert a snapshot's row, or renew it: a new time, and new meta where given."""
    same = sa.select(snapshots.c.meta).where(snapshots.c.ref == shot.ref)
    kept = (await conn.execute(same)).scalar() if meta is None else None
    raw = _NO_META if meta is None else meta
    row: dict[str, Any] = {
        "ref": str(shot.ref),
        "created_us": now(),
        "seq": next(_order),
        "messages": shot.messages,
        "chars": shot.chars,
        "root": shot.root,
        "meta": kept if kept is not None else inline(raw, pack(raw)),
    }
    row |= {"session_id": session, "seal": seal_snapshot(name, row)}
    renewed = {key: value for key, value in row.items() if key != "ref"}
    statement = upsert(conn, snapshots).values(row)
    await conn.execute(statement.on_conflict_do_update(index_elements=["ref"], set_=renewed))


def _rows() -> sa.Select[Any]:
    # Outer: a row whose session is gone is damaged, not absent.
    joined = snapshots.outerjoin(sessions, sessions.c.id == snapshots.c.session_id)
    return sa.select(snapshots, sessions.c.name, sessions.c.key).select_from(joined)


async def _snapshot(conn: AsyncConnection, ref: str) -> tuple[ArchiveEntry, bytes]:
    """A snapshot's checked entry and root."""
    found = await conn.execute(_rows().where(snapshots.c.ref == ref))
    row = found.mappings().one_or_none()
    if row is None:
        raise _unknown()
    return entry_of(row["name"], row["key"], dict(row)), row["root"]


def _unknown() -> ArchiveNotFoundError:
    return ArchiveNotFoundError("nothing is archived under this reference")
