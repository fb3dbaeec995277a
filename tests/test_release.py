"""What is released: the files of wheel and sdist, and what they say of themselves.

Looks at the distributions in the folder ``AGENTSCOPE_COMPACTION_DIST``; without it they are built
here, where Hatchling is installed.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import agentscope_compaction

ROOT = Path(__file__).parents[1]
PACKAGE = "agentscope_compaction"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
GENERATED = ("__pycache__", ".pyc", ".pytest_cache", ".egg-info")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one wheel and one sdist."""
    made = os.environ.get("AGENTSCOPE_COMPACTION_DIST")
    if made:
        return Path(made)
    if not (ROOT / PACKAGE).is_dir() or importlib.util.find_spec("hatchling") is None:
        pytest.skip("no distributions, and no source or no Hatchling to build them")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> zipfile.ZipFile:
    """The wheel, opened."""
    (path,) = dist.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def sdist(dist: Path) -> set[str]:
    """Names in the sdist, without the folder that they all are in."""
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    """What the wheel says of itself."""
    return Parser().parsestr(wheel.read(f"{_info(wheel)}/METADATA").decode("utf-8"))


def _info(wheel: zipfile.ZipFile) -> str:
    return f"{PACKAGE}-{PROJECT['version']}.dist-info"


def test_the_wheel_holds_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    """Every file of the package is in the wheel, and beside it only the wheel's own notes."""
    names = set(wheel.namelist())
    assert {name.partition("/")[0] for name in names} == {PACKAGE, _info(wheel)}
    source = Path(agentscope_compaction.__file__).parent
    files = {f"{PACKAGE}/{path.relative_to(source).as_posix()}" for path in source.rglob("*.*")}
    wanted = {name for name in files if not any(mark in name for mark in GENERATED)}
    assert {name for name in names if name.startswith(f"{PACKAGE}/")} == wanted
    assert not [name for name in names if any(mark in name for mark in GENERATED)]


@pytest.mark.parametrize(
    "name",
    ["py.typed", "data/demo_history.json", "report/assets/report.css", "report/assets/report.js"],
)
def test_the_wheel_holds_data(wheel: zipfile.ZipFile, name: str) -> None:
    """What is no Python is there too."""
    assert f"{PACKAGE}/{name}" in wheel.namelist()


def test_the_licence_goes_along(wheel: zipfile.ZipFile, sdist: set[str]) -> None:
    """Both distributions hold the licence."""
    text = wheel.read(f"{_info(wheel)}/licenses/LICENSE").decode("utf-8")
    assert "Apache License" in text and "LICENSE" in sdist


@pytest.mark.parametrize(
    "name",
    [
        *("pyproject.toml", "README.md", "README_zh.md", "CHANGELOG.md", "LICENSE", "Makefile"),
        *(f"{PACKAGE}/py.typed", f"{PACKAGE}/report/assets/report.js", "tests/test_release.py"),
        *("examples/stateless.py", "benchmarks/quality.py", "docs/options.md", "docs/reference.py"),
    ],
)
def test_the_sdist_can_be_tested(sdist: set[str], name: str) -> None:
    """The sdist holds what a packager needs to build, read and test."""
    assert name in sdist


def test_the_sdist_holds_nothing_made(sdist: set[str]) -> None:
    """Nothing that a run leaves behind is in it."""
    assert not [name for name in sdist if any(mark in name for mark in (*GENERATED, ".venv"))]


def test_metadata_are_those_of_the_project(metadata: Message) -> None:
    """Name, version, licence, Python and extras are what the project says."""
    assert metadata["Name"] == "agentscope-compaction" == PROJECT["name"]
    assert metadata["Version"] == PROJECT["version"]
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata.get_all("Provides-Extra") == sorted(PROJECT["optional-dependencies"])
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    assert "Two commands" in str(metadata.get_payload())


def test_every_supported_python_is_a_classifier(metadata: Message) -> None:
    """Classifiers name the oldest Python and no licence: the expression is that."""
    classifiers = metadata.get_all("Classifier", [])
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert f"Programming Language :: Python :: {oldest}" in classifiers
    assert not [name for name in classifiers if name.startswith("License")]


def test_plain_installs_need_no_extra(metadata: Message) -> None:
    """What only an extra needs is required by that extra alone."""
    required = metadata.get_all("Requires-Dist", [])
    plain = [line for line in required if "extra ==" not in line]
    assert len(plain) == len(PROJECT["dependencies"])
    assert not [line for line in plain if line.startswith(("fastapi", "uvicorn", "asyncpg"))]


def test_addresses_are_public(metadata: Message) -> None:
    """Addresses, where there are any, are https and no machine's own."""
    for line in metadata.get_all("Project-URL", []):
        address = urlsplit(line.partition(", ")[2])
        assert address.scheme == "https" and "." in (address.hostname or "")


def test_the_command_is_there(wheel: zipfile.ZipFile) -> None:
    """Installing the wheel installs the command."""
    points = wheel.read(f"{_info(wheel)}/entry_points.txt").decode("utf-8")
    assert "agentscope-compaction = agentscope_compaction.cli:main" in points


def test_the_version_is_known_at_run_time() -> None:
    """``__version__`` is the installed version; a bare source tree says that it is one."""
    assert agentscope_compaction.__version__ in (PROJECT["version"], "0+source")
