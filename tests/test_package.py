"""The package as it is shipped: version, entry point, typing marker, public names."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path

import pytest

import agentscope_compaction
from agentscope_compaction.cli import main

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_version_is_in_the_changelog() -> None:
    """The newest release of the changelog is the version of the project."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## \[(\d[^\]]*)\] - \d{4}-\d\d-\d\d$", changelog, re.MULTILINE)
    assert releases[0] == PROJECT["version"]
    assert "## [Unreleased]" in changelog


def test_installed_metadata_agree() -> None:
    """The installed distribution is this version, and its command is the one of this package."""
    try:
        installed = distribution("agentscope-compaction")
    except PackageNotFoundError:
        pytest.skip("run from the source tree, not installed")
    assert installed.version == PROJECT["version"]
    (command,) = installed.entry_points.select(group="console_scripts")
    assert command.name == "agentscope-compaction"
    assert command.load() is main


def test_shipped_files_are_there() -> None:
    """The typing marker and the demo's history are part of the package."""
    package = files("agentscope_compaction")
    assert package.joinpath("py.typed").is_file()
    assert package.joinpath("data/demo_history.json").is_file()


def test_public_names_exist_and_are_sorted() -> None:
    """``__all__`` is sorted and every name of it can be imported."""
    names = agentscope_compaction.__all__
    assert names == sorted(names)
    assert all(hasattr(agentscope_compaction, name) for name in names)
