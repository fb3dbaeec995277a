"""The README tells the truth: its code runs, its options are those of the code."""

from __future__ import annotations

import re
import subprocess
import sys
from enum import Enum
from pathlib import Path

import pytest

from agentscope_compaction import CompactionOptions

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
WORDS = re.findall(r"^\$ make (\w+)", README, re.MULTILINE)


def run_python(program: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program as a user would, with warnings as errors."""
    return subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:__main__", str(program)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=program.parent,
        env=environment,
    )


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_python_blocks_run(number: int, tmp_path: Path, environment: dict[str, str]) -> None:
    """Every Python block of the README runs by itself."""
    program = tmp_path / "block.py"
    program.write_text(BLOCKS[number], encoding="utf-8")
    ended = run_python(program, environment)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(example: Path, environment: dict[str, str]) -> None:
    """Every example runs to its end, offline, and prints something."""
    ended = run_python(example, environment)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip()


def test_options_table_matches_the_code() -> None:
    """The table lists every option in order, with its default."""
    table = README.split("<!-- options table", 1)[1].split("\n\n", 1)[0]
    rows = re.findall(r"^\| `(\w+)` \| `([^`]+)` \| \S.* \|$", table, re.MULTILINE)
    defaults = CompactionOptions().model_dump()
    assert rows == [(name, shown(value)) for name, value in defaults.items()]


def shown(value: object) -> str:
    """A default as the table writes it."""
    return str(value.value) if isinstance(value, Enum) else str(value)


def test_linked_files_exist() -> None:
    """Every relative link of the README leads somewhere."""
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", README)
    missing = [link for link in links if not (ROOT / link).exists() and link != "LICENSE"]
    assert links and not missing


@pytest.mark.skipif(not (ROOT / "Makefile").exists(), reason="no Makefile beside the tests")
def test_the_two_commands_exist() -> None:
    """The commands of the README are words of the Makefile, each with a help line."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert WORDS[:2] == ["demo", "test"]
    for word in WORDS:
        assert re.search(rf"^{word}:.*## \S", makefile, re.MULTILINE)


def test_no_machine_is_named() -> None:
    """Project files name no folder of a machine and no package registry."""
    names = re.compile(r"/(?:home|root|Users|work)/\w|index-url|\.pypi\.|registry\.")
    for name in ("README.md", "CHANGELOG.md", "Makefile", "pyproject.toml"):
        path = ROOT / name
        if path.exists():
            assert not names.search(path.read_text(encoding="utf-8")), name
