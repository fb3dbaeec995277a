"""The options reference is what the code says, and leaves out nothing."""

from __future__ import annotations

import re
from pathlib import Path

import agentscope_compaction
from agentscope_compaction import CompactionOptions, errors
from agentscope_compaction.agents.settings import Settings
from agentscope_compaction.environment import Variable
from docs.reference import PAGE, reference

PACKAGE = Path(agentscope_compaction.__file__).parent
OURS = re.compile(r"\b(?:DECISION_MODEL|TYPESAFE|AGENTSCOPE_COMPACTION)_[A-Z_]+\b")


def test_the_page_is_up_to_date() -> None:
    """``make docs`` would write the page that is there."""
    assert PAGE.read_text(encoding="utf-8") == reference(), "run: make docs"


def test_the_page_leaves_nothing_out() -> None:
    """Every option, keyword, variable and error has a row."""
    rows = set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    wanted = {*CompactionOptions.model_fields, *Settings.__dataclass_fields__, *errors.__all__}
    assert rows >= wanted | {variable.value for variable in Variable}


def test_every_variable_is_known() -> None:
    """The variables that the package's source speaks of are the documented ones."""
    sources = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    sources.pop(PACKAGE / "environment.py")
    spoken_of = {name for text in sources.values() for name in OURS.findall(text)}
    names = {variable.value for variable in Variable}
    assert {name for name in spoken_of if not name.endswith("_")} <= names
    read = "\n".join(sources.values())
    unread = {name for name in names if name not in read and f"Variable.{name}" not in read}
    assert not unread
