"""Every example runs to its end, in a process of its own, without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parent.parent
_EXAMPLES = sorted((_ROOT / "examples").glob("*.py"))
_NEEDS = {"agent_service": "apscheduler"}
"""Modules of optional dependencies, by example."""


@pytest.mark.parametrize("example", _EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs(example: Path, tmp_path: Path) -> None:
    """It ends well and says something."""
    if example.stem in _NEEDS:
        pytest.importorskip(_NEEDS[example.stem])
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(example)],
        cwd=tmp_path,
        env={**os.environ, **home, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
