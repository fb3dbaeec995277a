"""The command as a process and in this process, and a history to give it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentscope_compaction.testing import HistoryBuilder

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def run(environment: dict[str, str], tmp_path: Path) -> Run:
    """Run the command in a process of its own, in an empty folder."""

    def start(
        *args: str, stdin: bytes = b"", **variables: str
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "agentscope_compaction", *args],
            input=stdin,
            capture_output=True,
            timeout=60,
            check=False,
            cwd=tmp_path,
            env={**environment, **variables},
        )

    return start


@pytest.fixture(autouse=True)
def without_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Commands that run in this process find no key and no ``.env`` either."""
    for name in ("DECISION_MODEL_API_KEY", "TYPESAFE_API_KEY", "DECISION_MODEL_BACKEND"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def messages() -> list[dict[str, Any]]:
    """Twelve readings in one reply, the last two alike, and one call without a result."""
    builder = HistoryBuilder().user("Read the chapters").reply()
    for number in range(11):
        builder.call("Read", {"path": f"chapter{number}.md"}, f"Chapter {number}. " * 90)
    builder.call("Read", {"path": "chapter10.md"}, "Chapter 10. " * 90)
    builder.start("Read", {"path": "never.md"}, "open")
    return builder.user("Summarise chapter 3").messages


@pytest.fixture
def history(tmp_path: Path, messages: list[dict[str, Any]]) -> Path:
    """The messages as a file."""
    path = tmp_path / "history.json"
    path.write_text(json.dumps(messages), encoding="utf-8")
    return path
