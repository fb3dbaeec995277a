"""Histories that later use some of what they read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentscope_compaction.testing import HistoryBuilder


def long_history(seed: int) -> list[dict[str, Any]]:
    """Forty readings with an id each; every third id is used at the end."""
    builder = HistoryBuilder().user("Read the tickets, then close the bad ones").reply()
    for number in range(40):
        text = (
            f"ticket TK{seed}{number:03d}X is {'bad' if number % 3 else 'fine'}. " + "word " * 150
        )
        builder.call("Read", {"page": number}, text)
    builder.user("Close them").reply()
    for number in range(0, 40, 3):
        builder.call("Close", {"ticket": f"TK{seed}{number:03d}X"}, "ok")
    return builder.say("Done").messages


@pytest.fixture
def histories(tmp_path: Path) -> list[str]:
    """Three such histories as files."""
    names = []
    for seed in (11, 12, 13):
        path = tmp_path / f"history{seed}.json"
        path.write_text(json.dumps(long_history(seed)), "utf-8")
        names.append(str(path))
    return names


@pytest.fixture(autouse=True)
def without_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No key and no ``.env`` of this machine is found."""
    for name in ("DECISION_MODEL_API_KEY", "TYPESAFE_API_KEY", "DECISION_MODEL_BACKEND"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
