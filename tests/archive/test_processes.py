"""Several processes at once, processes that die, and deletions beside saves."""

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import util
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentscope_compaction.archive import SqlArchive
from agentscope_compaction.errors import ArchiveNotFoundError

pytestmark = pytest.mark.anyio

WRITER = Path(__file__).with_name("writer.py")
PROCESSES, SAVES = 4, 200
ROUNDS = 20

_spec = util.spec_from_file_location("archive_writer", WRITER)
assert _spec is not None and _spec.loader is not None
_writer: Any = util.module_from_spec(_spec)
_spec.loader.exec_module(_writer)


@contextmanager
def writer(url: str, worker: int, saves: int, sessions: str = "few") -> Iterator[Any]:
    """A writing process that waits to be started; killed at the end if it still runs."""
    command = [sys.executable, str(WRITER), url, str(worker), str(saves), sessions]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=WRITER.parents[2]
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def start(process: Any) -> None:
    """Let a writer begin."""
    process.stdin.write("go\n")
    process.stdin.flush()


def returned(lines: Any) -> list[tuple[int, str]]:
    """Number and reference of every save that returned; a torn last line does not count."""
    whole = [line.split() for line in lines if line.endswith("\n")]
    return [(int(n), ref) for n, ref in whole]


async def test_four_processes_save_at_once(url: str) -> None:
    """Four processes of two hundred saves each, opening at once, lose nothing."""
    with ExitStack() as stack:
        writers = [stack.enter_context(writer(url, w, SAVES)) for w in range(PROCESSES)]
        for process in writers:
            start(process)
        outputs = [await anyio.to_thread.run_sync(p.stdout.readlines) for p in writers]
        assert [p.wait() for p in writers] == [0] * PROCESSES
    async with SqlArchive(url) as archive:
        entries = await archive.list()
        assert len(entries) == PROCESSES * SAVES
        assert sorted({e.session_id for e in entries}) == [f"shared {n}" for n in range(5)]
        for worker, lines in enumerate(outputs):
            saved = returned(lines)
            assert len(saved) == SAVES
            for n, ref in saved[:: SAVES // 20]:
                assert await archive.load(ref) == _writer.history(worker, n)
        assert {e.ref for e in entries} == {ref for out in outputs for _, ref in returned(out)}


async def test_killed_writers_leave_every_returned_reference_intact(url: str) -> None:
    """Kill -9 at random points: what was returned before is there, whole, every time."""
    rng = random.Random(4)
    async with SqlArchive(url) as archive:
        for round_ in range(ROUNDS):
            with writer(url, round_, 10_000, "own") as process:
                start(process)
                lines = [process.stdout.readline() for _ in range(rng.randint(1, 8))]
                await anyio.sleep(rng.random() * 0.03)
                process.kill()
                lines += process.stdout.readlines()
            saved = returned(lines)
            assert saved
            for n, ref in saved:
                assert await archive.load(ref) == _writer.history(round_, n)
            assert len(await archive.list(f"own {round_}")) >= len(saved)


async def test_deleting_beside_saving_takes_no_block_in_use(url: str) -> None:
    """While sessions with the same blocks are deleted, every other save stays whole."""
    async with SqlArchive(url) as other:
        kept: list[tuple[int, str]] = []
        with writer(url, 7, 60, "own") as process:
            start(process)

            async def collect() -> None:
                kept.extend(returned(await anyio.to_thread.run_sync(process.stdout.readlines)))

            async with anyio.create_task_group() as group:
                group.start_soon(collect)
                for n in range(30):
                    await other.save(f"gone {n}", _writer.history(8, n))
                    assert await other.delete(f"gone {n}") == 1
            assert process.wait() == 0
        assert len(kept) == 60
        for n, ref in kept:
            assert await other.load(ref) == _writer.history(7, n)


async def test_saving_and_deleting_one_session_at_once(url: str) -> None:
    """A session saved and deleted at the same time ends whole or gone, never in between."""
    async with SqlArchive(url) as archive:

        async def save() -> None:
            for n in range(15):
                try:
                    await archive.save("s", _writer.history(1, n))
                except ArchiveNotFoundError:
                    continue  # deleted between commit and read-back: no reference was returned

        async def delete() -> None:
            for _ in range(15):
                await archive.delete("s")

        async with anyio.create_task_group() as group:
            group.start_soon(save)
            group.start_soon(delete)
        for entry in await archive.list():
            assert len(await archive.load(entry.ref)) == 1
        await archive.delete("s")
        assert await archive.sessions() == []
