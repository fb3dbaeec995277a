"""The public API as a type checker sees it from a user's project."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = [Path(__file__).with_name(f"user_{name}.py") for name in ("program", "agents")]


def test_users_programs_type_check(
    tmp_path: Path, environment: dict[str, str], pytestconfig: pytest.Config
) -> None:
    """Strict mypy accepts the programs; their ``type: ignore`` marks are all needed."""
    for program in PROGRAMS:
        shutil.copy(program, tmp_path)
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\nplugins = pydantic.mypy\n")
    assert pytestconfig.cache is not None
    cache = pytestconfig.cache.mkdir("mypy")
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(cache), *(p.name for p in PROGRAMS)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
