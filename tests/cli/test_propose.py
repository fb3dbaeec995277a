"""``propose``: what it prints, writes and refuses."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agentscope_compaction import CompactionProposal, compact_context
from agentscope_compaction.cli import main
from agentscope_compaction.cli.propose import propose_app

GOAL = ("--goal", "Summarise chapter 3")
READ = ("--tool", "Read")
AGENTS = ("--for-agents", "--option", "preserve_recent_calls=0")


def test_json_is_the_wire_form_and_nothing_else(
    history: Path, messages: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    """``--json`` prints what ``compact_context`` returns, and nothing beside it."""
    assert main(["propose", str(history), *GOAL, *READ, "--json"]) == 0
    printed = capsys.readouterr()
    wire = json.loads(printed.out)
    request = {"messages": messages, "goal": GOAL[1], "eligible_tool_names": ["Read"]}
    expected = asyncio.run(compact_context(request)).model_dump(mode="json")
    wire["stats"].pop("elapsed_ms"), expected["stats"].pop("elapsed_ms")
    assert wire == expected and list(wire) == list(expected)
    assert CompactionProposal.model_validate(wire)
    assert printed.err == "" and printed.out.isascii() and printed.out.count("\n") == 1


def test_table_tells_every_call_and_the_totals(
    history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table has a line per call, the reasons, the totals, the skipped id and the stand-in."""
    assert main(["propose", str(history), *GOAL, *READ, *AGENTS]) == 0
    out = capsys.readouterr().out
    for number in range(1, 13):
        assert f" t{number} " in out
    assert "duplicate" in out and "a later call holds the same output" in out
    assert "chapter3.md" in out and "1 id, never touched: call without a result" in out
    assert "Characters" in out and " -> " in out
    assert "lexical stand-in" in out and "not calibrated" in out.replace("\n", " ")
    assert "DECISION_MODEL_API_KEY=<your key>" in out and "\x1b" not in out


def test_request_object_needs_no_options(
    messages: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A request object brings goal, tools and options; the command line overrides and extends."""
    request = {
        "messages": messages,
        "goal": "from the file",
        "eligible_tool_names": ["Grep"],
        "options": {"preserve_recent_messages": 0, "min_saved_chars": 10**6},
    }
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request), encoding="utf-8")
    assert main(["propose", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reason"] == "no_candidates"
    assert main(["propose", str(path), *READ, "--option", "dedupe=true", "--json"]) == 0
    wire = json.loads(capsys.readouterr().out)
    assert wire["reason"] == "below_minimum" and wire["stats"]["candidates"] == 12


def test_standard_input(messages: list[dict[str, Any]]) -> None:
    """``-`` reads standard input, with a byte order mark too."""
    data = b"\xef\xbb\xbf" + json.dumps(messages).encode()
    result = CliRunner().invoke(propose_app, ["-", *GOAL, *READ, "--json"], input=data)
    assert result.exit_code == 0
    assert len(json.loads(result.stdout)["decisions"]) == 12


def test_apply_writes_the_new_history_whole(
    history: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--apply`` writes the proposal's messages, leaves the input and no other file behind."""
    before = history.read_bytes()
    out = tmp_path / "new.json"
    assert main(["propose", str(history), *GOAL, *READ, *AGENTS, "--apply", str(out)]) == 0
    assert "Wrote the new history" in capsys.readouterr().out
    assert main(["propose", str(history), *GOAL, *READ, *AGENTS, "--json"]) == 0
    assert json.loads(out.read_text()) == json.loads(capsys.readouterr().out)["messages"]
    assert history.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["history.json", "new.json"]


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_apply_never_replaces_the_input(
    history: Path, tmp_path: Path, force: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """The input holds the originals: not by its name, by a link, nor by force is it replaced."""
    link = tmp_path / "link.json"
    link.symlink_to(history)
    before = history.read_bytes()
    for out in (history, link):
        assert main(["propose", str(history), *GOAL, "--apply", str(out), *force]) == 2
        assert "is the input" in capsys.readouterr().err
    assert history.read_bytes() == before


def test_apply_asks_for_force_and_keeps_the_mode(history: Path, tmp_path: Path) -> None:
    """Another existing file is replaced only with ``--force``, and keeps its permissions."""
    out = tmp_path / "new.json"
    out.write_text("mine")
    out.chmod(0o640)
    assert main(["propose", str(history), *GOAL, "--apply", str(out)]) == 2
    assert out.read_text() == "mine"
    assert main(["propose", str(history), *GOAL, "--apply", str(out), "--force"]) == 0
    assert isinstance(json.loads(out.read_text()), list) and out.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("out", ["nowhere/new.json", "."])
def test_apply_refuses_what_cannot_be_written(history: Path, out: str) -> None:
    """A missing folder and a folder as OUT are refused before anything is asked."""
    assert main(["propose", str(history), *GOAL, "--apply", out]) == 2


@pytest.mark.parametrize("link", [False, True])
def test_history_and_report_are_two_files(
    link: bool, history: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One file cannot hold both: the report would replace the new history."""
    out = tmp_path / "out"
    if link:
        (tmp_path / "report").symlink_to(out)
    report = tmp_path / ("report" if link else "out")
    files = ("--apply", str(out), "--html", str(report), "--force")
    assert main(["propose", str(history), *GOAL, *files]) == 2
    assert "same file" in capsys.readouterr().err
    assert not out.exists()


def test_says_which_tools_there_are(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without ``--tool`` nothing is compacted, and the tools of the history are named."""
    options = ("--option", "preserve_recent_messages=0")
    assert main(["propose", str(history), *GOAL, *options]) == 0
    assert "Tools here: Read (12)" in capsys.readouterr().out


def test_says_when_everything_is_recent(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A history of few long messages is all recent by default; the way out is named."""
    assert main(["propose", str(history), *GOAL, *READ]) == 0
    assert "--for-agents" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (["nix=1"], "unknown 'nix'; one of: keep_threshold, "),
        (["keep_threshold"], "is not NAME=VALUE"),
        (["keep_threshold=2"], "keep_threshold: "),
        (["keep_threshold=NaN"], "keep_threshold: "),
        (["dedupe=1"], "dedupe: "),
        (["call_removal=sometimes"], "call_removal: "),
        (["max_questions_per_request=3"], "max_questions_per_request: "),
        (["dedupe=true", "truncate_head_chars=-1"], "truncate_head_chars: "),
    ],
)
def test_bad_options_are_usage_errors(
    history: Path, pairs: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An option that is unknown or out of bounds ends with 2 and one line that says which."""
    options = [word for pair in pairs for word in ("--option", pair)]
    assert main(["propose", str(history), *GOAL, *options]) == 2
    printed = capsys.readouterr()
    assert said in printed.err and printed.err.count("\n") == 1 and printed.out == ""


@pytest.mark.parametrize("value", ['"never"', "never"])
def test_option_values_are_json_or_words(
    history: Path, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A word needs no quotes of its own on the command line."""
    options = ("--option", f"call_removal={value}", "--option", "keep_threshold=null")
    assert main(["propose", str(history), *GOAL, *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema_version"] == 1
