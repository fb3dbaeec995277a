"""The command as a whole: help, version, starting, streams, and the demo."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from agentscope.message import Msg

from agentscope_compaction.cli import main
from agentscope_compaction.cli.demo import demo_request
from agentscope_compaction.cli.streams import inert

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


def test_help_lists_what_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    """Help names the commands whose modules exist, and only these."""
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "propose" in out and "demo" in out and "nix" not in out


def test_no_arguments_is_help_and_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command, help goes to standard error, with code 2."""
    assert main([]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and "propose" in printed.err


def test_module_and_version(run: Run) -> None:
    """``python -m agentscope_compaction`` is the same command."""
    ended = run("--version")
    assert ended.returncode == 0 and ended.stdout.startswith(b"agentscope-compaction ")


def test_start_imports_nothing_heavy(environment: dict[str, str]) -> None:
    """Help needs neither AgentScope nor rich, SQLAlchemy, httpx' client or tiktoken."""
    program = (
        "import sys; from agentscope_compaction.cli import main;"
        "code = main(['propose', '--help']);"
        "heavy = {'agentscope', 'rich', 'sqlalchemy', 'tiktoken', 'fastapi'} & set(sys.modules);"
        "sys.exit(code or ' '.join(heavy) or None)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


def test_piped_output_is_plain(run: Run) -> None:
    """In a pipe there is no escape sequence, and the demo tells its whole story."""
    ended = run("demo")
    out = ended.stdout.decode()
    assert ended.returncode == 0 and ended.stderr == b"" and "\x1b" not in out
    for heading in ("The session", "Kept, and why", "Let go, and why", "The way back"):
        assert f"\n{heading}" in out
    assert (
        "DECISION_MODEL_API_KEY=<your key> python -m agentscope_compaction demo --model jev" in out
    )


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_width_is_respected(run: Run, columns: int) -> None:
    """No line is wider than the terminal says it is."""
    for line in run("demo", COLUMNS=str(columns)).stdout.decode().splitlines():
        assert len(line) <= columns


@pytest.mark.parametrize("columns", ["0", "000", "-5", "wide", ""])
def test_a_width_that_is_none_is_ignored(run: Run, columns: str) -> None:
    """Everything is printed, as in a pipe that says nothing."""
    done = run("demo", COLUMNS=columns)
    assert done.returncode == 0 and done.stderr == b""
    assert "Nothing is lost" in done.stdout.decode()


def test_completion_knows_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Completion is the root's business alone, and covers all commands alike."""
    assert main(["--help"]) == 0
    assert "--install-completion" in capsys.readouterr().out
    for command in ("propose", "demo", "archive", "serve", "calibrate"):
        assert main([command, "--help"]) == 0
        assert "completion" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("pro", "propose"),
        ("demo --sa", "--save"),
        ("archive re", "restore"),
        ("serve --to", "--token-env"),
        ("calibrate --res", "--resume"),
    ],
)
def test_completion_completes(run: Run, typed: str, offered: str) -> None:
    """The shell gets the commands and options that fit what was typed."""
    words = f"agentscope-compaction {typed}"
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    ended = run(_AGENTSCOPE_COMPACTION_COMPLETE="complete_bash", **asked)
    assert ended.returncode == 0 and ended.stdout.decode().split() == [offered]


def on_a_terminal(environment: dict[str, str], *args: str) -> bytes:
    """Run the command with a terminal as its standard output, and return what it showed."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "agentscope_compaction", *args]
    environment = {**environment, "TERM": "xterm-256color"}
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, env=environment)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65_536):
            shown += chunk
    except OSError:  # Linux says so when the other end is closed
        pass
    os.close(ours)
    assert process.stderr is not None
    process.stderr.close()
    assert process.wait(60) == 0
    return shown


def test_colour_only_where_it_is_wanted(environment: dict[str, str]) -> None:
    """A terminal gets colour, unless ``NO_COLOR`` is set."""
    assert b"\x1b[33m" in on_a_terminal(environment, "demo")
    assert b"\x1b[33m" not in on_a_terminal({**environment, "NO_COLOR": "1"}, "demo")


def test_narrow_encodings_do_not_end_it(run: Run, history: Path) -> None:
    """A stream that knows only ASCII gets escapes instead of a traceback."""
    ended = run("propose", str(history), "--goal", "é", PYTHONIOENCODING="ascii")
    assert ended.returncode == 0 and ended.stdout.isascii()


def test_demo_shows_every_fate(run: Run) -> None:
    """The shipped session has kept, cut, removed and duplicate calls, and keeps its evidence."""
    request = demo_request()
    ended = run("propose", "-", "--json", stdin=json.dumps(request).encode())
    decisions = json.loads(ended.stdout)["decisions"]
    assert {d["action"] for d in decisions} == {"keep", "drop_result", "drop_call"}
    assert "duplicate" in {d["reason"] for d in decisions} and 40 <= len(decisions) <= 60
    evidence = next(
        block["id"]
        for message in request["messages"]
        for block in message["content"]
        if block["type"] == "tool_call" and "double_charges.sql" in block["input"]
    )
    assert {d["call_id"]: d["action"] for d in decisions}[evidence] == "keep"


def test_demo_session_is_in_agentscopes_form() -> None:
    """Every message of the shipped session is a dump of AgentScope's own message."""
    for message in demo_request()["messages"]:
        assert Msg.model_validate(message).model_dump(mode="json") == message


def test_demo_saves_its_request(run: Run, tmp_path: Path) -> None:
    """``demo --save`` writes a request that ``propose`` takes, once."""
    assert run("demo", "--save", "mine.json").returncode == 0
    assert json.loads((tmp_path / "mine.json").read_text()) == demo_request()
    assert run("propose", "mine.json").returncode == 0
    assert run("demo", "--save", "mine.json").returncode == 2


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 中", "plain é 中"),
        ("a\x1b[2Jb\r\n", "a\\x1b[2Jb\\r\\n"),
        ("\u202e\u2028\ud83d", "\\u202e\\u2028\\ud83d"),
        ("x" * 3_000, "x" * 1_999 + "…"),
    ],
)
def test_inert(text: str, shown: str) -> None:
    """Printable text stays, all else is escaped, and nothing is endless."""
    assert inert(text) == shown
