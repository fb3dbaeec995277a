"""Fixtures of the archive's tests: the archives themselves, and histories to put in."""

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from agentscope_compaction.archive import InMemoryArchive, SqlArchive
from agentscope_compaction.core.types import (
    Action,
    CallDecision,
    CompactionProposal,
    DecisionReason,
    ProposalReason,
)

History = list[dict[str, Any]]
Build = Callable[..., History]
"""From a number of calls to a history with so many."""
AnyArchive = SqlArchive | InMemoryArchive

POSTGRES = os.environ.get("AGENTSCOPE_COMPACTION_TEST_POSTGRES", "")
TABLES = ("record", "snapshot", "hold", "object", "session", "schema")


async def _empty_postgres() -> str:
    if not POSTGRES:
        pytest.skip("AGENTSCOPE_COMPACTION_TEST_POSTGRES names no database")
    import asyncpg  # type: ignore[import-untyped, unused-ignore]

    conn = await asyncpg.connect(POSTGRES.replace("+asyncpg", ""))
    try:
        names = ", ".join(f"compaction_{table}" for table in TABLES)
        await conn.execute(f"DROP TABLE IF EXISTS {names} CASCADE")
    finally:
        await conn.close()
    return POSTGRES


@pytest.fixture(params=["sqlite", "postgres"])
async def url(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> str:
    """An empty database of each kind."""
    if request.param == "postgres":
        return await _empty_postgres()
    return str(tmp_path / "archive.db")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def archive(
    request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str
) -> AsyncIterator[AnyArchive]:
    """An empty archive of each kind."""
    match request.param:
        case "memory":
            opened: AnyArchive = InMemoryArchive()
        case "sqlite":
            opened = SqlArchive(tmp_path / "archive.db")
        case _:
            opened = SqlArchive(await _empty_postgres())
    async with opened:
        yield opened


@pytest.fixture
async def sqlite(tmp_path: Path, anyio_backend: str) -> AsyncIterator[SqlArchive]:
    """An empty SQLite archive that gives up on a lock soon."""
    async with SqlArchive(tmp_path / "archive.db", timeout=0.2) as opened:
        yield opened


@pytest.fixture
def reply() -> Build:
    """A user's question and one long reply of so many calls."""

    def build(calls: int, *, seed: int = 0, size: int = 40) -> History:
        blocks: list[dict[str, Any]] = []
        for n in range(calls):
            call_id = f"call_{seed}_{n}"
            blocks += [
                {"type": "tool_call", "id": call_id, "name": "Read", "input": f'{{"n": {n}}}'},
                {
                    "type": "tool_result",
                    "id": call_id,
                    "name": "Read",
                    "output": f"line {seed} {n} " * size,
                    "state": "success",
                },
            ]
        question = {"type": "text", "text": f"look into it {seed}"}
        return [
            {"id": "u1", "role": "user", "name": "user", "content": [question]},
            {"id": "a1", "role": "assistant", "name": "coder", "content": blocks, "n": calls},
        ]

    return build


@pytest.fixture
def proposal() -> CompactionProposal:
    """A proposal that cuts one call."""
    decision = CallDecision(
        id="t1",
        call_id="call_0_0",
        tool_name="Read",
        action=Action.DROP_RESULT,
        reason=DecisionReason.RESULT_NOT_NEEDED,
        keep_call=0.7,
        keep_result=0.1,
        chars_before=400,
        chars_after=90,
    )
    return CompactionProposal(
        messages=[{"role": "user", "content": []}],
        changed=True,
        reason=ProposalReason.COMPACTED,
        decisions=[decision],
        stats={"candidates": 1},
        proposal_id="p1",
        snapshot_digest="d1",
    )
