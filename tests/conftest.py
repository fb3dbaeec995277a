"""Shared fixtures: async tests run on asyncio, the loop AgentScope itself runs on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import agentscope_compaction


@pytest.fixture
def anyio_backend() -> str:
    """The one event loop the package supports."""
    return "asyncio"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a user without any setting, for a process that finds this package."""
    own = ("DECISION_MODEL_", "TYPESAFE_", "OPENAI_", "AGENTSCOPE_", "COLUMNS", "NO_COLOR")
    kept = {k: v for k, v in os.environ.items() if not k.startswith((*own, "FORCE_COLOR"))}
    source = str(Path(agentscope_compaction.__file__).parents[1])
    return {**kept, "PYTHONPATH": source, "HOME": str(tmp_path)}
