"""Deleting from the SQL archive: sessions, old snapshots, and what nobody holds any more."""

from __future__ import annotations

import logging
from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from agentscope_compaction.archive.database import Work
from agentscope_compaction.archive.schema import holds, objects, records, sessions, snapshots
from agentscope_compaction.archive.store import batched, expand, release, session_of
from agentscope_compaction.errors import ArchiveIntegrityError

__all__ = ["delete", "prune"]

_log = logging.getLogger("agentscope_compaction")


async def delete(work: Work, name: bytes) -> int:
    """Delete a session; needs nothing of it to be readable."""
    async with work.writing(collecting=True) as conn:
        session = await session_of(conn, name, create=False)
        if session is None:
            return 0
        query = sa.select(snapshots.c.ref).where(snapshots.c.session_id == session)
        refs = (await conn.execute(query)).scalars().all()
        await _drop_snapshots(conn, refs)
        await _drop_session(conn, session)
        return len(refs)


async def prune(work: Work, before_us: int) -> int:
    """Delete every snapshot saved before a moment."""
    async with work.writing(collecting=True) as conn:
        query = sa.select(snapshots.c.ref, snapshots.c.session_id)
        rows = (await conn.execute(query.where(snapshots.c.created_us < before_us))).all()
        await _drop_snapshots(conn, [row.ref for row in rows])
        for session in {row.session_id for row in rows}:
            await _shrink_session(conn, session)
        return len(rows)


async def _drop_snapshots(conn: AsyncConnection, refs: Collection[str]) -> None:
    for batch in batched(refs):
        await conn.execute(sa.delete(records).where(records.c.ref.in_(batch)))
        await conn.execute(sa.delete(snapshots).where(snapshots.c.ref.in_(batch)))


async def _drop_session(conn: AsyncConnection, session: int) -> None:
    query = sa.select(holds.c.object_id).where(holds.c.session_id == session)
    await release(conn, session, (await conn.execute(query)).scalars().all())
    await conn.execute(sa.delete(sessions).where(sessions.c.id == session))


async def _shrink_session(conn: AsyncConnection, session: int) -> None:
    """Release what no remaining snapshot or record of a session needs."""
    query = sa.select(snapshots.c.root).where(snapshots.c.session_id == session)
    roots = (await conn.execute(query)).scalars().all()
    if not roots:
        await _drop_session(conn, session)
        return
    try:
        needed = await _needed(conn, session, roots)
    except ArchiveIntegrityError:
        _log.warning("archive: a damaged session keeps all of its blocks")
        return
    held = sa.select(objects.c.id, objects.c.digest)
    held = held.join(holds, holds.c.object_id == objects.c.id)
    rows = (await conn.execute(held.where(holds.c.session_id == session))).all()
    await release(conn, session, [row.id for row in rows if row.digest not in needed])


async def _needed(conn: AsyncConnection, session: int, roots: Collection[bytes]) -> set[bytes]:
    groups: dict[bytes, bytes] = {}
    needed: set[bytes] = set()
    for root in roots:
        needed.update(leaf.digest for leaf in await expand(conn, root, groups))
    query = sa.select(records.c.proposal).join(snapshots, snapshots.c.ref == records.c.ref)
    found = await conn.execute(query.where(snapshots.c.session_id == session))
    return needed | groups.keys() | set(found.scalars())
