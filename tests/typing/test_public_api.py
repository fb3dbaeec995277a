"""The public API as a type checker sees it from a user's project."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("user_program.py")


def test_a_users_program_type_checks(
    tmp_path: Path, environment: dict[str, str], pytestconfig: pytest.Config
) -> None:
    """Strict mypy accepts the program; its ``type: ignore`` marks are all needed."""
    shutil.copy(PROGRAM, tmp_path)
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\nplugins = pydantic.mypy\n")
    assert pytestconfig.cache is not None
    cache = pytestconfig.cache.mkdir("mypy")
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(cache), PROGRAM.name],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
