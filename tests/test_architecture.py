"""The arrows of the house point down only, the core is pure, and importing is cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import agentscope_compaction

ROOT = Path(agentscope_compaction.__file__).parent
PACKAGE = "agentscope_compaction"

LAYERS = (
    {"errors", "environment"},
    {"core"},
    {"redaction", "named_secrets", "told_secrets", "private_keys", "secret_formats"}
    | {"secret_words", "tokens"},
    {"models", "archive", "outgoing", "memory"},
    {"compact"},
    {"compactor", "agents"},
)
"""Lowest first. A part may import its own layer and those below; what is not named here is an
outermost part (command, service, exports), which nothing above imports."""
OUTERMOST = len(LAYERS)
IMPURE = {
    *("asyncio", "anyio", "time", "datetime", "random", "secrets", "uuid", "logging", "os", "io"),
    *("sys", "pathlib", "tempfile", "socket", "threading", "subprocess", "shutil", "warnings"),
}


def files(part: str = "") -> list[Path]:
    """Python files of the package, or of one part of it."""
    return sorted((ROOT / part).rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Every module a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def part_of(module: str) -> str | None:
    """The part of the package a module belongs to; None for others and for the root itself."""
    head, _, rest = module.partition(".")
    return rest.partition(".")[0] or None if head == PACKAGE else None


def is_a_part(name: str) -> bool:
    """Whether this names a module or folder of the package, rather than something in its root."""
    return (ROOT / name).is_dir() or (ROOT / f"{name}.py").exists()


def rank(part: str) -> int:
    """The layer of a part."""
    return next((n for n, layer in enumerate(LAYERS) if part in layer), OUTERMOST)


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_arrows_point_down(path: Path) -> None:
    """No file imports a part above its own, and nothing shipped for use imports the fakes."""
    here = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if here in ("__init__", "testing"):
        return
    for module in imports(path):
        part = part_of(module)
        if module == PACKAGE:
            assert rank(here) == OUTERMOST, f"{here} imports the package root"
        elif part and part != here and is_a_part(part):
            assert part != "testing", f"{here} imports the fakes for tests"
            assert rank(part) <= rank(here), f"{here} imports {part}"


@pytest.mark.parametrize("path", files("core"), ids=lambda p: p.name)
def test_the_core_is_pure(path: Path) -> None:
    """The core has no clock, randomness, logging, input or output, and awaits nothing."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not {name.partition(".")[0] for name in imports(path)} & IMPURE
    for node in ast.walk(tree):
        assert not isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("open", "print", "input", "eval", "exec")
        assert not isinstance(node, ast.Global | ast.Nonlocal)
    assert {part_of(m) for m in imports(path)} <= {None, "core", "errors"}


def test_the_core_needs_no_host() -> None:
    """The core imports the standard library and pydantic, nothing of AgentScope."""
    found = {module.partition(".")[0] for path in files("core") for module in imports(path)}
    assert found <= {*sys.stdlib_module_names, PACKAGE, "pydantic"}


def test_arrows_of_the_core() -> None:
    """Inside the core, values import no behaviour, and only the end imports the plan."""
    names = {path.stem for path in files("core")}
    arrows = {
        path.stem: {m.split(".")[2] for m in imports(path) if m.startswith(f"{PACKAGE}.core.")}
        & names
        for path in files("core")
    }
    assert arrows["types"] == {"options", "jsontext"} and arrows["options"] == set()
    assert {name for name, used in arrows.items() if "plan" in used} == {"conclude"}
    assert not [name for name, used in arrows.items() if "conclude" in used]


def test_no_module_needs_itself() -> None:
    """Over the whole package, imports at the top of modules form no cycle."""
    modules = {module_of(path): path for path in files()}
    arrows = {name: set(imports_at_once(path)) & set(modules) for name, path in modules.items()}
    while arrows:
        free = [name for name, used in arrows.items() if not used & set(arrows) - {name}]
        assert free, f"a cycle among {sorted(arrows)}"
        for name in free:
            del arrows[name]


def module_of(path: Path) -> str:
    """The dotted name of a file; a folder's ``__init__`` has the folder's name."""
    parts = [PACKAGE, *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_at_once(path: Path) -> Iterator[str]:
    """Modules that importing this file imports; not those of functions or type checking."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_importing_is_cheap() -> None:
    """``import agentscope_compaction`` pulls in neither the host nor a client nor a database."""
    heavy = ("agentscope", "openai", "sqlalchemy", "httpx", "typer", "rich", "tiktoken", "fastapi")
    code = f"import sys, {PACKAGE}; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_public_names_exist() -> None:
    """Everything in ``__all__`` can be taken from the root, each name once."""
    names = agentscope_compaction.__all__
    assert len(set(names)) == len(names)
    assert all(getattr(agentscope_compaction, name) is not None for name in names)
