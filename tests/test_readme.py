"""The README tells the truth: its code runs, its options are those of the code."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from enum import Enum
from pathlib import Path

import pytest

from agentscope_compaction import CompactionOptions
from agentscope_compaction.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README_zh.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "README_zh.md", *sorted((ROOT / "docs").rglob("*.md"))]
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_linked_files_exist(page: Path) -> None:
    """Every relative link of README and docs leads somewhere, headings included."""
    text = page.read_text(encoding="utf-8")
    for name, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", text):
        target = page.parent / name if name else page
        assert target.exists() or name == "LICENSE", name
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), anchor


@pytest.mark.parametrize("page", PAGES[2:], ids=lambda page: page.name)
def test_python_of_the_docs_is_python(page: Path) -> None:
    """Every Python block of the docs compiles, and what it imports is there."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        tree = compile(block, page.name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        imports: list[ast.stmt] = [
            node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        exec(compile(ast.Module(imports, []), page.name, "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_take_what_the_docs_give_them(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every option on a command line of README and docs is one that the command has."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in re.findall(r"^(?:\$ )?agentscope-compaction (.+)$", text, re.MULTILINE):
        words = line.partition("#")[0].split()
        path = words[:2] if words[0] == "archive" else words[:1]
        assert main([*path, "--help"]) == 0
        known = capsys.readouterr().out
        assert all(word in known for word in words if word.startswith("--")), line


def anchors(text: str) -> set[str]:
    """The names a Markdown page's headings are linked by."""
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-") for head in heads}


def shape(text: str) -> dict[str, list[str]]:
    """What two translations of one page have in common."""
    tables = re.findall(r"^\|.*\|$", text, re.MULTILINE)
    first = [re.match(r"\| ((?:[^|\\]|\\\|)*?) ?\|", row) for row in tables]
    return {
        "headings": re.findall(r"^(#+) ", text, re.MULTILINE),
        "code": re.findall(r"^```python\n.*?^```$", text, re.MULTILINE | re.DOTALL),
        "blocks": re.findall(r"^```(\w+)", text, re.MULTILINE),
        "columns": [str(len(re.findall(r"(?<!\\)\|", row))) for row in tables],
        "rows": [found[1] for found in first if found and re.fullmatch(r"`[^`]+`", found[1])],
        "points": re.findall(r"^- ", text, re.MULTILINE),
        "files": re.findall(r"\]\(((?!README)[\w/.-]+)\)", text),
    }


def test_the_chinese_readme_keeps_step() -> None:
    """Both READMEs have the same headings, code, tables, points and links, in the same order."""
    english, chinese = shape(README), shape(CHINESE)
    for part, found in english.items():
        assert found == chinese[part], part
    defaults = re.compile(r"^\| `\w+` \| `[^`]+` \|", re.MULTILINE)
    assert defaults.findall(README) == defaults.findall(CHINESE)


def test_every_command_and_option_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    """The README names every command, and every option of ``propose``."""
    assert main(["--help"]) == 0
    commands = re.findall(r"^  (\w+)  ", capsys.readouterr().out.partition("Commands:")[2], re.M)
    assert commands and all(f"`{name}" in README or f" {name} " in README for name in commands)
    assert main(["propose", "--help"]) == 0
    options = set(re.findall(r"^  (--[a-z-]+)", capsys.readouterr().out, re.MULTILINE))
    assert {name for name in options if f"| `{name}" not in README} == {"--help"}


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
    others = [ROOT / name for name in ("CHANGELOG.md", "Makefile", "pyproject.toml")]
    for path in [*PAGES, *others]:
        if path.exists():
            assert not names.search(path.read_text(encoding="utf-8")), path.name
