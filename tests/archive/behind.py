"""An archive's database, reached behind the archive's back."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from sqlalchemy.ext.asyncio import create_async_engine

from agentscope_compaction.archive import SqlArchive, codec


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


async def execute(archive: SqlArchive, sql: str) -> None:
    """Run a statement on the archive's database, behind its back."""
    assert archive._location is not None
    engine = create_async_engine(archive._location.url)
    try:
        async with engine.begin() as conn:
            await conn.exec_driver_sql(sql)
    finally:
        await engine.dispose()


def address(block: object) -> bytes:
    """Where the archive keeps this block."""
    return codec.address(codec.encode(block).raw)
