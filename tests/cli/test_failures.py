"""Bad input of every kind: one line, the right code, never a traceback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentscope_compaction import DecisionHTTPError, DecisionTimeoutError
from agentscope_compaction.cli import main
from agentscope_compaction.cli.failures import describe_failure
from agentscope_compaction.testing import HistoryBuilder

GOAL = ("--goal", "go on")
HOSTILE = "[red]Re\x1b[31mad\u202e\ud83d[/red]\n\x07"


def deep(levels: int) -> bytes:
    """A message with metadata nested so deep."""
    head = b'[{"role": "user", "name": "u", "content": [], "metadata": '
    return head + b"[" * levels + b"]" * levels + b"}]"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"{", "is not JSON"),
        (b"nonsense", "is not JSON"),
        (b'[{"role": NaN}]', "NaN"),
        (b'[{"role": "user", "content": [], "x": 1e999}]', "too large"),
        (b"[" + b"9" * 5_000 + b"]", "is not JSON"),
        (b'"\xff"', "is not UTF-8"),
        (b"3", "expected a list of messages"),
        (b"{}", "expected a list of messages"),
        (b'{"context": []}', "under its key 'context'"),
        (b"[3]", "messages.0"),
        (b'[{"role": "robot", "content": []}]', "role must be"),
        (b'{"messages": [], "goal": " "}', "goal"),
        (b'{"messages": [], "other": 1}', "other"),
        (b'{"messages": [], "options": {"nix": 1}}', "nix"),
        (b'{"messages": [], "options": 3}', "options"),
        (b'{"messages": [], "eligible_tool_names": 3}', "eligible_tool_names"),
        (deep(100_000), "nested too deeply"),
        (deep(900), ""),
    ],
)
def test_bad_files_end_with_one_line(
    tmp_path: Path, data: bytes, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever a file holds, the command ends with 1 and one line, on standard error alone."""
    path = tmp_path / "bad.json"
    path.write_bytes(data)
    goal = () if b'"goal"' in data else GOAL
    assert main(["propose", str(path), *goal, "--json"]) == 1
    printed = capsys.readouterr()
    assert said in printed.err and printed.err.count("\n") == 1 and printed.out == ""
    assert "unexpected" not in printed.err


@pytest.mark.parametrize("name", ["missing.json", ".", "a\nb", "a\0b"])
def test_unreadable_files(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is missing, a folder or impossible is one line."""
    assert main(["propose", name, *GOAL]) == 1
    printed = capsys.readouterr().err
    assert "cannot read" in printed and printed.count("\n") == 1


@pytest.mark.parametrize(
    "args", [["nix"], ["propose"], ["propose", "x", "--nix"], ["propose", "x", "--model", "nix"]]
)
def test_usage_errors(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong command line ends with 2 and one line that says where help is."""
    assert main(args) == 2
    printed = capsys.readouterr()
    assert "--help" in printed.err and printed.err.count("\n") == 1 and printed.out == ""


NOWHERE = "nowhere/file"


@pytest.mark.parametrize(
    ("code", "args", "way"),
    [
        (1, ["propose", "missing.json", *GOAL], "missing.json"),
        (2, ["propose", "missing.json", *GOAL, "--apply", NOWHERE], "'--apply': the folder"),
        (2, ["demo", "--save", NOWHERE], "'--save': the folder"),
        (2, ["demo", "--save", "history.json"], "name another file"),
        (1, ["demo", "--model", "jev"], "set DECISION_MODEL_API_KEY"),
        (1, ["serve", "--token-env", "NO_SUCH_TOKEN"], "put the token there"),
        (1, ["serve", "--model", "jev"], "set DECISION_MODEL_API_KEY"),
        (2, ["serve", "--port", "99999"], "--help"),
        (1, ["calibrate", "missing.json"], "missing.json"),
        (2, ["calibrate", "history.json", "--out", NOWHERE], "'--out': the folder"),
        (1, ["archive", "list", "--archive", "missing.db"], "--archive takes"),
        (2, ["archive", "restore", "ar_x", "--out", NOWHERE], "'--out': the folder"),
        (2, ["archive", "prune", "--older-than", "soon"], "30d"),
    ],
)
def test_every_command_fails_alike(
    code: int, args: list[str], way: str, history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of every command a failure is one line, which begins alike and says what can be done."""
    assert main(args) == code
    printed = capsys.readouterr()
    assert printed.err.startswith("agentscope-compaction: ") and printed.err.count("\n") == 1
    assert way in printed.err and printed.out == ""
    assert (code == 2) == (f"agentscope-compaction {args[0]}" in printed.err)


def test_a_taken_port_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A port that another program has is said with the way out."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["serve", "--port", str(taken.getsockname()[1])]) == 1
    said = capsys.readouterr().err
    assert "cannot listen" in said and "--port" in said and said.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "way"),
    [
        (DecisionTimeoutError("late"), "total_timeout_seconds"),
        (DecisionHTTPError("gone"), "DECISION_MODEL_BASE_URL"),
        (DecisionHTTPError("no", status=401), "DECISION_MODEL_API_KEY"),
        (DecisionHTTPError("busy", status=429), "max_concurrency"),
        (DecisionHTTPError("bug", status=500), "bug"),
    ],
)
def test_a_silent_model_has_a_way_out(error: Exception, way: str) -> None:
    """What a decision service refuses is told with the setting to look at."""
    failure = describe_failure(error)
    assert failure.code == 1 and way in failure.text


def test_a_missing_goal_is_a_usage_error(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A list of messages says nothing of a goal, and neither do blanks."""
    for goal in ((), ("--goal", ""), ("--goal", " \u3000")):
        assert main(["propose", str(history), *goal]) == 2
        assert "--goal" in capsys.readouterr().err


def test_a_remote_model_without_a_key(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--model jev`` without a key fails with the name of the variable."""
    assert main(["propose", str(history), *GOAL, "--model", "jev"]) == 1
    assert "DECISION_MODEL_API_KEY" in capsys.readouterr().err


def test_deep_nesting_that_json_carries_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Deeply nested messages come out as they went in."""
    path = tmp_path / "deep.json"
    path.write_bytes(deep(180))
    assert main(["propose", str(path), *GOAL, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["messages"] == json.loads(deep(180))


@pytest.fixture
def hostile(tmp_path: Path) -> tuple[Path, list[dict[str, Any]]]:
    """Names, ids and inputs full of markup, escapes, overrides and lone surrogates."""
    builder = HistoryBuilder().user("hi \ud83d").reply()
    for number in range(3):
        builder.call(HOSTILE, {"path": f"{HOSTILE}{number}"}, "x" * 900, f"{HOSTILE}{number}")
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps(builder.user("go").messages), encoding="ascii")
    return path, builder.messages


def test_hostile_names_are_shown_inertly(
    hostile: tuple[Path, list[dict[str, Any]]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing of a history reaches the terminal as a control, an override or markup."""
    assert main(["propose", str(hostile[0]), *GOAL, "--for-agents"]) == 0
    out = capsys.readouterr().out
    assert "[red]Re\\x1b[31mad\\u202e\\ud83d" in out
    assert all(character.isprintable() or character == "\n" for character in out)


def test_lone_surrogates_survive_as_json(
    hostile: tuple[Path, list[dict[str, Any]]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--json`` and ``--apply`` carry lone surrogates as escapes."""
    out = tmp_path / "new.json"
    assert main(["propose", str(hostile[0]), *GOAL, "--json", "--apply", str(out)]) == 0
    assert json.loads(capsys.readouterr().out)["messages"] == hostile[1]
    assert json.loads(out.read_bytes()) == hostile[1]


@pytest.mark.parametrize("args", [["demo"], ["propose", "history.json", *GOAL, "--json"]])
def test_a_closed_pipe_is_no_error_message(
    args: list[str], history: Path, environment: dict[str, str]
) -> None:
    """When nobody reads on, the command ends quietly."""
    process = subprocess.Popen(
        [sys.executable, "-m", "agentscope_compaction", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=history.parent,
        env=environment,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 1 and said == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("file", "code"), [("history.json", 0), ("-", 1), ("missing.json", 1)])
def test_closed_streams_are_no_error_of_their_own(
    closed: str, file: str, code: int, history: Path, environment: dict[str, str]
) -> None:
    """A process started without a stream ends as with one; what belongs there goes nowhere."""
    command = f'"{sys.executable}" -m agentscope_compaction propose {file} --goal "go on" {closed}'
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
        cwd=history.parent,
        env=environment,
    )
    assert done.returncode == code
    errors = done.stderr.decode()
    assert errors.count("\n") == (1 if code and "2>" not in closed else 0)
    assert "unexpected" not in errors
    assert bool(done.stdout) == (code == 0 and closed in ("<&-", "2>&-"))


def test_a_full_disk_is_one_line(history: Path, environment: dict[str, str]) -> None:
    """Output that cannot be written is one line and code 1, also when it fails at the end."""
    command = [sys.executable, "-m", "agentscope_compaction", "propose", str(history), *GOAL]
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, env=environment, check=False, timeout=60
        )
    assert ended.returncode == 1
    assert ended.stderr.count(b"\n") == 1 and b"No space left" in ended.stderr


def test_html_writes_a_report(history: Path, tmp_path: Path) -> None:
    """``--html`` writes one page that names every call, and replaces nothing unasked."""
    report = tmp_path / "report.html"
    assert main(["propose", str(history), *GOAL, "--html", str(report)]) == 0
    page = report.read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>") or page.startswith("<!doctype html>")
    assert main(["propose", str(history), *GOAL, "--html", str(report)]) == 2
