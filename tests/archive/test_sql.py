"""Where an SQL archive lives, and the loops, threads, engines and processes it works with."""

import asyncio
import os
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from agentscope_compaction.archive import InMemoryArchive, SqlArchive, archive_from_url
from agentscope_compaction.errors import ArchiveError, ConfigurationError
from tests.archive.conftest import Build

ROOT = Path(__file__).parents[2]


def test_importing_is_cheap() -> None:
    """Importing the package's archive imports neither SQLAlchemy nor AgentScope."""
    code = (
        "import sys, agentscope_compaction.archive\n"
        "print([m for m in ('sqlalchemy', 'agentscope', 'asyncpg') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stderr


def test_several_event_loops(tmp_path: Path, reply: Build) -> None:
    """One archive serves loop after loop, and closes on yet another."""
    archive = SqlArchive(tmp_path / "a.db")
    ref = asyncio.run(archive.save("s", reply(2)))
    assert asyncio.run(archive.load(ref)) == reply(2)
    asyncio.run(archive.close())
    asyncio.run(archive.close())


def test_several_threads_with_a_loop_each(tmp_path: Path, reply: Build) -> None:
    """Loops in several threads use one archive at once."""
    archive = SqlArchive(tmp_path / "a.db")
    refs: dict[int, str] = {}

    def work(n: int) -> None:
        refs[n] = asyncio.run(archive.save("s", reply(n)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in range(6):
        assert asyncio.run(archive.load(refs[n])) == reply(n)


@pytest.mark.anyio
async def test_postgres_in_several_loops(url: str, reply: Build) -> None:
    """A server's archive is not bound to the loop that opened it."""
    archive = SqlArchive(url)
    ref = await archive.save("s", reply(2))
    loaded = await anyio.to_thread.run_sync(lambda: asyncio.run(archive.load(ref)))
    assert loaded == reply(2)
    assert await archive.load(ref) == reply(2)


@pytest.mark.anyio
async def test_the_callers_engine_is_left_open(url: str, reply: Build) -> None:
    """A caller's engine is used, pooled as it is, and neither disposed nor changed."""
    archive = SqlArchive(url)
    assert archive._location is not None
    engine = create_async_engine(archive._location.url, pool_size=2)
    await archive.list()
    try:
        async with SqlArchive(engine=engine) as shared:
            refs = [await shared.save("s", reply(n)) for n in range(4)]
            async with anyio.create_task_group() as group:
                for n in range(4):
                    group.start_soon(shared.save, "t", reply(n))
        assert "secret" not in repr(shared)
        async with engine.connect() as conn:
            rows = await conn.exec_driver_sql("SELECT count(*) FROM compaction_snapshot")
            assert rows.scalar() == 8
            if engine.dialect.name == "sqlite":
                assert (await conn.exec_driver_sql("PRAGMA foreign_keys")).scalar() == 0
        assert await shared.load(refs[3]) == reply(3)
    finally:
        await engine.dispose()


@pytest.mark.anyio
async def test_a_cancelled_save_leaves_the_archive_usable(url: str, reply: Build) -> None:
    """Cancelling at any moment holds no lock and damages nothing."""
    async with SqlArchive(url) as archive:
        await archive.save("s", reply(1))
        for n in range(12):
            with anyio.move_on_after(0.002 * n):
                await archive.save("s", reply(2 + n))
            with suppress(TimeoutError):
                await asyncio.wait_for(archive.save("t", reply(2 + n)), 0.001 + 0.002 * n)
        for entry in await archive.list():
            await archive.load(entry.ref)
        assert await archive.load(await archive.save("s", reply(40))) == reply(40)


@pytest.mark.anyio
async def test_saving_does_not_block_the_loop(sqlite: SqlArchive) -> None:
    """While a large history is saved and loaded, the loop keeps turning."""
    await sqlite.list()
    text = os.urandom(3_000_000).hex()
    messages = [{"content": [{"type": "text", "text": text[n:]}]} for n in range(8)]
    pauses: list[float] = []

    async def tick() -> None:
        while True:
            began = time.perf_counter()
            await anyio.sleep(0.001)
            pauses.append(time.perf_counter() - began)

    began = time.perf_counter()
    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        loaded = await sqlite.load(await sqlite.save("s", messages))
        group.cancel_scope.cancel()
    took = time.perf_counter() - began
    assert loaded == messages
    assert max(pauses) < took / 4
    assert len(pauses) > 20


@pytest.mark.anyio
async def test_sqlite_is_durable_and_private(sqlite: SqlArchive) -> None:
    """The file is in WAL mode, readable by its owner only, and commits are synchronous."""
    await sqlite.save("s", [])
    assert sqlite.path is not None
    if os.name == "posix":
        assert stat.S_IMODE(sqlite.path.stat().st_mode) == 0o600

    async def settings(work: Any) -> list[object]:
        async with work.writing() as conn:
            names = ("journal_mode", "synchronous")
            return [(await conn.exec_driver_sql(f"PRAGMA {name}")).scalar() for name in names]

    assert await sqlite._run("look", settings) == ["wal", 2]


@pytest.mark.anyio
async def test_postgres_commits_are_durable(url: str) -> None:
    """A server that is set up to commit asynchronously still commits our writes durably."""

    async def settings(work: Any) -> list[object]:
        if work.conn.dialect.name == "sqlite":
            pytest.skip("a setting of PostgreSQL")
        found = []
        for setting in ("off", "remote_apply"):
            await work.conn.exec_driver_sql(f"SET synchronous_commit = {setting}")
            async with work.writing() as conn:
                for name in ("synchronous_commit", "lock_timeout"):
                    found.append((await conn.exec_driver_sql(f"SHOW {name}")).scalar())
        return found

    archive = SqlArchive(url)
    assert await archive._run("look", settings) == ["on", "1s", "remote_apply", "1s"]


@pytest.mark.anyio
async def test_folders_are_created(tmp_path: Path) -> None:
    """A path's folders come into being with the first use, not before."""
    archive = SqlArchive(tmp_path / "a" / "b" / "c d%20é.db")
    assert not (tmp_path / "a").exists()
    await archive.save("s", [])
    assert [p.name for p in (tmp_path / "a" / "b").iterdir()] == ["c d%20é.db"]


@pytest.mark.anyio
async def test_ids_never_become_paths(tmp_path: Path) -> None:
    """Whatever a session is called, there is one file."""
    archive = SqlArchive(tmp_path / "box" / "a.db")
    for name in ("../../escape", "..\\x", "a/b", "CON", ""):
        await archive.save(name, [{"id": name}])
    assert [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*")] == ["box", "box/a.db"]


def test_the_default_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a URL the environment names the archive, else the user's data directory holds it."""
    monkeypatch.delenv("AGENTSCOPE_COMPACTION_ARCHIVE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = SqlArchive().path
    assert path is not None
    assert "agentscope-compaction" in str(path)
    assert not path.exists()
    monkeypatch.setenv("AGENTSCOPE_COMPACTION_ARCHIVE", str(tmp_path / "mine.db"))
    assert SqlArchive().path == tmp_path / "mine.db"


def test_urls_are_understood(tmp_path: Path) -> None:
    """Paths, SQLite URLs and PostgreSQL URLs name the archives they look like."""
    file = tmp_path / "a.db"
    for url in (file, str(file), f"sqlite:///{file}", f"sqlite+aiosqlite:///{file}"):
        assert SqlArchive(url).path == file
        assert isinstance(archive_from_url(url), SqlArchive)
    assert isinstance(archive_from_url("memory:"), InMemoryArchive)
    for scheme in ("postgres", "postgresql", "postgresql+asyncpg"):
        shown = repr(archive_from_url(f"{scheme}://me:hunter2@db.example/x?sslmode=require"))
        assert "postgresql+asyncpg://me:***@db.example/x?ssl=require" in shown


@pytest.mark.parametrize(
    "url",
    [
        "",
        " ",
        "mysql://me:hunter2@h/x",
        "://hunter2",
        "http://me:hunter2@h",
        "postgresql+psycopg://me:hunter2@h/x",
        "postgresql://me:hunter2@h:port/x",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite+aiosqlite:///file:x?mode=memory&uri=true",
        ":memory:",
        "a\0b",
        5,
    ],
)
def test_unusable_urls_are_refused_at_once(url: Any) -> None:
    """A URL that names no archive is a configuration error that repeats no password."""
    with pytest.raises(ConfigurationError) as caught:
        archive_from_url(url)
    assert "hunter2" not in repr(caught.value)
    assert caught.value.__cause__ is None


def test_a_url_and_an_engine_are_one_too_many() -> None:
    """An archive has one place."""
    engine = create_async_engine("sqlite+aiosqlite://")
    with pytest.raises(ConfigurationError):
        SqlArchive("a.db", engine=engine)


def test_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without asyncpg a PostgreSQL URL is refused with the extra's name, also as ImportError."""
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(ConfigurationError, match=r"agentscope-compaction\[postgres\]") as caught:
        SqlArchive("postgresql://h/x")
    assert isinstance(caught.value, ImportError)


@pytest.mark.anyio
async def test_an_unreachable_server_is_an_archive_error() -> None:
    """Nobody listening: an archive error with its cause, without the password."""
    archive = SqlArchive("postgresql://me:hunter2@127.0.0.1:1/x", timeout=5)
    with pytest.raises(ArchiveError) as caught:
        await archive.save("s", [])
    assert caught.value.__cause__ is not None
    assert "hunter2" not in f"{caught.value!r} {caught.value.__cause__!r} {archive!r}"
