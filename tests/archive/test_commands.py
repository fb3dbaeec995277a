"""The archive's commands: exit codes, one-line errors, and what they print."""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from agentscope_compaction.archive import Outcome, OutcomeKind, SqlArchive
from agentscope_compaction.cli import main
from agentscope_compaction.core.types import CompactionProposal
from tests.archive.conftest import Build

Saved = tuple[str, str]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def saved(tmp_path: Path, reply: Build, proposal: CompactionProposal) -> Saved:
    """An archive with two sessions, and a reference into it."""
    path = tmp_path / "archive.db"

    async def fill() -> str:
        async with SqlArchive(path) as archive:
            await archive.save("evil \x1b[31m\n\ud83d", [])
            ref = await archive.save("s", reply(3), meta={"options": {"keep_threshold": 0.5}})
            await archive.record(ref, proposal, "proposed")
            said = Outcome(OutcomeKind.PARTLY, ("t1",), "reviewer", "rest is needed")
            await archive.record(ref, proposal, said)
            await archive.record(ref, proposal, {"kind": "recalled", "calls": ["call_0_0"]})
            return ref

    return str(path), asyncio.run(fill())


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Exit code, standard output and standard error of an archive command."""

    def start(*args: str) -> tuple[int, str, str]:
        code = main(["archive", *args])
        return (code, *capsys.readouterr())

    return start


def test_list(run: Run, saved: Saved) -> None:
    """The list shows every snapshot on one line each, whatever its ids hold."""
    url, ref = saved
    code, out, err = run("list", "--archive", url)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) == 3
    assert lines[1].startswith(ref)
    assert "\x1b" not in out
    code, out, _ = run("list", "--archive", url, "--json", "--session", "s")
    assert [row["ref"] for row in json.loads(out)] == [ref]
    code, out, _ = run("list", "--archive", url, "--json", "--sessions")
    assert {row["snapshots"] for row in json.loads(out)} == {1}


def test_show(run: Run, saved: Saved) -> None:
    """A snapshot shows what was cut, why, who decided it and what was recalled."""
    url, ref = saved
    code, out, _ = run("show", ref, "--archive", url)
    assert code == 0
    for part in ("drop_result", "result_not_needed", "by reviewer: rest is needed", "recalled 1"):
        assert part in out
    assert out.count("result_not_needed") == 1
    code, out, _ = run("show", ref, "--archive", url, "--json")
    shown = json.loads(out)
    assert [record["kind"] for record in shown["records"]] == ["proposed", "partly", "recalled"]
    assert shown["recalls"] == {"call_0_0": 1}
    assert shown["meta"] == {"options": {"keep_threshold": 0.5}}


def test_restore(run: Run, saved: Saved, tmp_path: Path, reply: Build) -> None:
    """A history is printed, or written whole to a file that did not exist."""
    url, ref = saved
    code, out, _ = run("restore", ref, "--archive", url)
    assert (code, json.loads(out)) == (0, reply(3))
    code, out, _ = run("restore", ref, "--archive", url, "--call", "call_0_1")
    assert json.loads(out) == reply(3)[1]["content"][3]
    target = tmp_path / "out.json"
    assert run("restore", ref, "--archive", url, "--out", str(target))[0] == 0
    assert json.loads(target.read_text()) == reply(3)
    assert run("restore", ref, "--archive", url, "--out", str(target))[0] == 2
    assert run("restore", ref, "--archive", url, "--out", str(target), "--force")[0] == 0
    assert run("restore", ref, "--archive", url, "--out", str(tmp_path / "no" / "x"))[0] == 2


def test_delete_and_prune(run: Run, saved: Saved) -> None:
    """Deleting and pruning say how many snapshots went."""
    url, _ = saved
    assert run("delete", "s", "--archive", url) == (0, "deleted 1 snapshot\n", "")
    assert run("prune", "--older-than", "1d", "--archive", url)[1] == "deleted 0 snapshots\n"
    code, out, _ = run("prune", "--older-than", "2999-01-01", "--archive", url, "--json")
    assert (code, json.loads(out)) == (0, {"deleted": 1})
    assert run("list", "--archive", url) == (0, "nothing archived\n", "")


@pytest.mark.parametrize(
    ("code", "args"),
    [
        (1, ["show", "ar_nothing"]),
        (1, ["restore", "nothing"]),
        (2, ["prune", "--older-than", "yesterday"]),
        (2, ["prune", "--older-than", "999999w"]),
        (2, ["prune"]),
        (2, ["show"]),
        (2, ["list", "--nonsense"]),
    ],
)
def test_exit_codes(run: Run, saved: Saved, code: int, args: list[str]) -> None:
    """1 is a failure, 2 is wrong use; either is one line that begins as every command's does."""
    got, out, err = run(*args, "--archive", saved[0])
    assert (got, out) == (code, "")
    assert err.startswith("agentscope-compaction: ") and err.count("\n") == 1
    assert (code == 2) == ("--help" in err)


def test_wrong_places(run: Run, tmp_path: Path) -> None:
    """A path without an archive is a failure and stays absent; a URL of no kind is wrong use."""
    missing = tmp_path / "missing.db"
    code, _, err = run("list", "--archive", str(missing))
    assert code == 1 and f"no archive at {missing}" in err and err.count("\n") == 1
    assert not missing.exists()
    code, _, err = run("list", "--archive", "mysql://me:hunter2@h/x")
    assert code == 2
    assert "hunter2" not in err
    damaged = tmp_path / "damaged.db"
    damaged.write_text("not a database " * 99)
    code, _, err = run("list", "--archive", str(damaged))
    assert (code, err.count("\n")) == (1, 1)


def test_a_wrong_environment_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive that the environment names wrongly is a failure that names the variable."""
    monkeypatch.setenv("AGENTSCOPE_COMPACTION_ARCHIVE", "mysql://me:hunter2@h/x")
    code, out, err = run("list")
    assert (code, out) == (1, "") and "AGENTSCOPE_COMPACTION_ARCHIVE" in err
    assert "hunter2" not in err


@pytest.mark.parametrize("form", [(), ("--json",), ("--sessions",)])
def test_a_damaged_row_is_named(run: Run, saved: Saved, form: tuple[str, ...]) -> None:
    """The others are listed on standard output; one line of standard error names the damaged."""
    url, ref = saved
    with closing(sqlite3.connect(url)) as conn, conn:
        conn.execute("UPDATE compaction_snapshot SET chars = 1 WHERE ref = ?", (ref,))
    code, out, err = run("list", "--archive", url, *form)
    assert code == 1
    assert "evil" in out and ref not in out
    assert ref in err and err.count("\n") == 1
    assert run("restore", ref, "--archive", url)[0] == 1
