"""``calibrate`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentscope_compaction import Compactor
from agentscope_compaction.cli import main


def test_a_profile_is_written(
    histories: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table and the suggestion are printed, few data are warned about, the file is usable."""
    out = tmp_path / "profile.json"
    assert main(["calibrate", *histories, "--model", "embedded", "--out", str(out)]) == 0
    shown = capsys.readouterr()
    assert "keep_result_threshold" in shown.out
    assert "Warning: only 3 histories" in shown.out
    assert shown.err == ""
    written = json.loads(out.read_text("utf-8"))
    assert written["histories"] == 3
    assert Compactor(profile=out).options.keep_result_threshold == written["thresholds"]["result"]


def test_json_is_all_there_is(
    histories: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--json`` prints one object; a folder stands for the files in it."""
    assert main(["calibrate", str(tmp_path), "--model", "embedded", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["profile"]["loss"] <= 0.05
    assert figures["cuts"] == 9
    assert figures["curve"][0]["saved"] == 0
    assert figures["warnings"]


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["--cuts", "0"], 2, "--cuts"),
        (["--cuts", "a,b"], 2, "--cuts"),
        (["--loss", "2"], 2, "--loss"),
        (["--tool", "Nothing"], 1, "no call was judged"),
        (["--out", "nowhere/profile.json"], 2, "does not exist"),
        (["nothing.json"], 1, "nothing.json"),
    ],
)
def test_what_is_wrong_is_one_line(
    histories: list[str],
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    line: str,
) -> None:
    """Usage errors end in 2, others in 1, each with one line on standard error."""
    assert main(["calibrate", *histories, "--model", "embedded", *arguments]) == code
    shown = capsys.readouterr()
    assert line in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""


@pytest.mark.parametrize("given", ["file", "folder", "link"])
def test_a_profile_never_replaces_what_is_read(
    given: str, histories: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No history is overwritten, however it was named, and no file of paid answers."""
    before = Path(histories[1]).read_bytes()
    out = Path(histories[1])
    if given == "link":
        out = tmp_path / "profile"
        out.symlink_to(histories[1])
    names = [str(tmp_path)] if given == "folder" else histories
    assert main(["calibrate", *names, "--model", "embedded", "--out", str(out)]) == 2
    assert "is the input" in capsys.readouterr().err
    assert Path(histories[1]).read_bytes() == before
    same = ["--out", "answers", "--resume", "answers"]
    assert main(["calibrate", *histories, "--model", "embedded", *same]) == 2
    assert "--resume writes" in capsys.readouterr().err
    assert not (tmp_path / "answers").exists()


def test_a_remote_model_is_not_asked_unasked(
    histories: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nobody can confirm, the cost is said and nothing is asked."""
    monkeypatch.setenv("DECISION_MODEL_API_KEY", "example")
    assert main(["calibrate", *histories, "--model", "jev", "--price", "2"]) == 2
    shown = capsys.readouterr().err
    assert "$2 per million" in shown
    assert "--yes" in shown


def test_a_history_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A document of another shape is named with what is wrong."""
    path = tmp_path / "other.json"
    for text in ('{"a": 1}', '[{"role": "robot", "content": []}]', "[]"):
        path.write_text(text, "utf-8")
        assert main(["calibrate", str(path), "--model", "embedded"]) == 1
    assert capsys.readouterr().err.count("\n") == 3
