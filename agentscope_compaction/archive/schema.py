"""Tables of the SQL archive, and the numbered migrations that make them.

Ids of sessions, messages and calls are data: they are stored as bytes (PostgreSQL text holds
neither NUL nor surrogates) and found by their SHA-256. Every row that names content carries a
*seal*, a digest over its other columns.

A migration, once released, is never edited; a change is a new migration at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from agentscope_compaction.errors import ArchiveError

__all__ = ["MIGRATIONS", "holds", "migrate", "objects", "records", "sessions", "snapshots"]

_metadata = sa.MetaData()

sessions = sa.Table(
    "compaction_session",
    _metadata,
    sa.Column("id", sa.BigInteger, primary_key=True),
    sa.Column("key", sa.LargeBinary),
    sa.Column("name", sa.LargeBinary),
)
objects = sa.Table(
    "compaction_object",
    _metadata,
    sa.Column("id", sa.BigInteger, primary_key=True),
    sa.Column("digest", sa.LargeBinary),
    sa.Column("checksum", sa.LargeBinary),
    sa.Column("body", sa.LargeBinary),
)
holds = sa.Table(
    "compaction_hold",
    _metadata,
    sa.Column("session_id", sa.BigInteger, primary_key=True),
    sa.Column("object_id", sa.BigInteger, primary_key=True),
)
snapshots = sa.Table(
    "compaction_snapshot",
    _metadata,
    sa.Column("ref", sa.Text, primary_key=True),
    sa.Column("session_id", sa.BigInteger),
    sa.Column("created_us", sa.BigInteger),
    sa.Column("seq", sa.BigInteger),
    sa.Column("messages", sa.BigInteger),
    sa.Column("chars", sa.BigInteger),
    sa.Column("root", sa.LargeBinary),
    sa.Column("meta", sa.LargeBinary),
    sa.Column("seal", sa.LargeBinary),
)
records = sa.Table(
    "compaction_record",
    _metadata,
    sa.Column("id", sa.BigInteger, primary_key=True),
    sa.Column("ref", sa.Text),
    sa.Column("recorded_us", sa.BigInteger),
    sa.Column("outcome", sa.LargeBinary),
    sa.Column("proposal", sa.LargeBinary),
    sa.Column("seal", sa.LargeBinary),
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE compaction_session (id {id}, key {bytes} NOT NULL UNIQUE,"
        " name {bytes} NOT NULL)",
        "CREATE TABLE compaction_object (id {id}, digest {bytes} NOT NULL UNIQUE,"
        " checksum {bytes}, body {bytes} NOT NULL)",
        "CREATE TABLE compaction_hold ("
        "session_id BIGINT NOT NULL REFERENCES compaction_session (id),"
        " object_id BIGINT NOT NULL REFERENCES compaction_object (id),"
        " PRIMARY KEY (session_id, object_id)){bare}",
        "CREATE INDEX compaction_hold_object ON compaction_hold (object_id)",
        "CREATE TABLE compaction_snapshot (ref TEXT PRIMARY KEY,"
        " session_id BIGINT NOT NULL REFERENCES compaction_session (id),"
        " created_us BIGINT NOT NULL, seq BIGINT NOT NULL, messages BIGINT NOT NULL,"
        " chars BIGINT NOT NULL, root {bytes} NOT NULL, meta {bytes} NOT NULL,"
        " seal {bytes} NOT NULL)",
        "CREATE INDEX compaction_snapshot_time ON compaction_snapshot (created_us, seq)",
        "CREATE INDEX compaction_snapshot_session ON compaction_snapshot (session_id, created_us)",
        "CREATE TABLE compaction_record (id {id},"
        " ref TEXT NOT NULL REFERENCES compaction_snapshot (ref), recorded_us BIGINT NOT NULL,"
        " outcome {bytes} NOT NULL, proposal {bytes} NOT NULL, seal {bytes} NOT NULL)",
        "CREATE INDEX compaction_record_ref ON compaction_record (ref, id)",
    ),
)
"""Statements of each schema version, from 1; names in braces differ between the databases."""

_TYPES = {
    "sqlite": {"id": "INTEGER PRIMARY KEY", "bytes": "BLOB", "bare": " WITHOUT ROWID"},
    "postgresql": {
        "id": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "bytes": "BYTEA",
        "bare": "",
    },
}
_EXISTS = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'compaction_schema'",
    # not to_regclass alone: it may answer from a cache that only opening a table refreshes
    "postgresql": "SELECT relname FROM pg_catalog.pg_class"
    " WHERE relname = 'compaction_schema' AND pg_catalog.pg_table_is_visible(oid)",
}


async def schema_version(conn: AsyncConnection) -> int:
    """The version of the schema in the database; 0 where there is none.

    Raises:
        ArchiveError: The table of versions holds something else.
    """
    try:
        return await _existing_version(conn)
    except DBAPIError:  # asked second, because every operation asks
        found = await conn.exec_driver_sql(_EXISTS[conn.dialect.name])
        if found.scalar() is None:
            return 0
        return await _existing_version(conn)  # made by another process between both looks


async def _existing_version(conn: AsyncConnection) -> int:
    rows = (await conn.exec_driver_sql("SELECT version FROM compaction_schema")).all()
    if len(rows) != 1 or not isinstance(rows[0][0], int) or rows[0][0] < 1:
        raise ArchiveError("the database holds no archive of this package: no schema version")
    return rows[0][0]


async def is_current(
    conn: AsyncConnection, migrations: Sequence[Sequence[str]] = MIGRATIONS
) -> bool:
    """Whether the database has the schema of this code.

    Raises:
        ArchiveError: Its schema is newer, so this code could damage what it does not know.
    """
    version = await schema_version(conn)
    if version > len(migrations):
        raise ArchiveError(
            f"the archive has schema version {version}, newer than the {len(migrations)} this"
            " version of agentscope-compaction knows; upgrade the package"
        )
    return version == len(migrations)


async def migrate(conn: AsyncConnection, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """Bring the schema up to date, inside a transaction that excludes every other migrator."""
    found = await conn.exec_driver_sql(_EXISTS[conn.dialect.name])
    version = 0 if found.scalar() is None else await _existing_version(conn)
    if version >= len(migrations):  # another process was faster
        return
    types = _TYPES[conn.dialect.name]
    for statements in migrations[version:]:
        for statement in statements:
            await conn.exec_driver_sql(statement.format(**types))
    if version == 0:
        await conn.exec_driver_sql("CREATE TABLE compaction_schema (version INTEGER NOT NULL)")
        await conn.exec_driver_sql(f"INSERT INTO compaction_schema VALUES ({len(migrations)})")
    else:
        await conn.exec_driver_sql(f"UPDATE compaction_schema SET version = {len(migrations)}")
