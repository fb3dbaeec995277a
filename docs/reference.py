"""Write ``options.md`` beside this file from the code: ``make docs``.

Names, types, defaults, bounds and meanings are all read from the package, whose docstrings are
their one place; here are only headings and what leads over from one table to the next.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from agentscope_compaction import (
    Action,
    CompactionOptions,
    CompactionRequest,
    Compactor,
    DecisionReason,
    JevDecisionModel,
    OutcomeKind,
    ProposalReason,
    accept_if,
    errors,
)
from agentscope_compaction.agents.settings import Settings
from agentscope_compaction.core.options import BatchFailure, CallRemoval, ReusedIds
from agentscope_compaction.core.view import Stage
from agentscope_compaction.core.words import OUTCOMES, REASONS, SKIPPED
from agentscope_compaction.environment import Variable
from agentscope_compaction.errors import CompactionError
from agentscope_compaction.service import create_app

__all__ = ["PAGE", "reference"]

PAGE = Path(__file__).with_name("options.md")


def reference() -> str:
    """Return the page."""
    parts = [
        "# Options\n\n<!-- Written by `make docs` from the code; do not edit. -->\n",
        _text("""
            Everything that can be set, with its default, and every value that comes back. `None` in
            Python is `null` in JSON and on the command line.
        """),
        _section(
            "Options of a proposal",
            """
            `CompactionOptions`: `options` of a request, `options=` of a `Compactor`, and
            `--option NAME=VALUE` of the command. Live agents start from
            `CompactionOptions.for_agents()` (`--for-agents`); where its value is another, it stands
            in the fourth column. Numbers are strict: no text, no bool, nothing infinite. An unknown
            name or a value out of bounds is refused.
            """,
            _options(),
        ),
        *(
            _members(kind, f"Values of `{name}`")
            for name, kind in (
                ("on_batch_failure", BatchFailure),
                ("call_removal", CallRemoval),
                ("reused_ids", ReusedIds),
            )
        ),
        _section(
            "A request",
            "`CompactionRequest`: what `compact_context`, `propose FILE` and the service take.",
            _fields(CompactionRequest),
        ),
        _section(
            "A compactor",
            "`Compactor(...)`: one for all agents of a process.",
            _arguments(Compactor),
        ),
        _section(
            "Hook and decorator",
            "Keywords of `CompactionMiddleware(compactor, ...)` and `with_compaction(compactor, "
            "...)`.",
            _settings(),
        ),
        _section(
            "The reviewer `accept_if`",
            "`accept_all` has no settings.",
            _arguments(accept_if),
        ),
        _section("The client of Jev", "`JevDecisionModel(...)`.", _arguments(JevDecisionModel)),
        _section(
            "The service",
            "`create_app(...)` and, beside `host` and `port`, `serve(...)` of "
            "`agentscope_compaction.service`; more in [service](service.md).",
            _arguments(create_app),
        ),
        _section(
            "Environment variables",
            f"{_plain_doc(sys.modules[Variable.__module__]).partition(chr(10) * 2)[2]} "
            "httpx also reads its own (`HTTPS_PROXY`, `NO_PROXY`, `SSL_CERT_FILE`).",
            _table(("variable", "meaning"), _member_rows(Variable)),
        ),
        _members(Action, "Actions", "`action` of a decision."),
        _section(
            "Reasons of a decision",
            "`reason` of a decision, in the order in which the first that applies is named.",
            _worded(DecisionReason, REASONS),
        ),
        _section(
            "Outcomes of a proposal", "`reason` of a proposal.", _worded(ProposalReason, OUTCOMES)
        ),
        _members(Stage, "Stages of the view", '`stats["state_stage"]`: how far it was reduced.'),
        _section(
            "Ids left out",
            '`stats["skipped"]` counts ids that are never touched, by kind.',
            _table(("kind", "meaning"), ((_code(k), v) for k, v in SKIPPED.items())),
        ),
        _members(OutcomeKind, "Outcomes in the archive", "`kind` of a record in the archive."),
        _section(
            "Errors",
            "All are `CompactionError`; those of the table's second column are caught by these "
            "names too.",
            _errors(),
        ),
    ]
    return "\n".join(parts)


def _section(title: str, text: str, table: str) -> str:
    return f"## {title}\n\n{_text(text)}\n{table}"


def _text(text: str) -> str:
    plain = " ".join(textwrap.dedent(text).split())
    return textwrap.fill(plain, 100, break_long_words=False, break_on_hyphens=False) + "\n"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )


def _code(value: object) -> str:
    return f"`{value}`"


def _shown(value: object) -> str:
    return _code(value.value if isinstance(value, Enum) else value)


def _options() -> str:
    properties = CompactionOptions.model_json_schema()["properties"]
    defaults, agents = CompactionOptions().model_dump(), CompactionOptions.for_agents().model_dump()
    meanings = _attributes(CompactionOptions)
    return _table(
        ("option", "values", "default", "live agents", "meaning"),
        (
            (
                _code(name),
                _values(properties[name], _enums(CompactionOptions, name)),
                _shown(default),
                "" if agents[name] == default else _shown(agents[name]),
                meanings[name],
            )
            for name, default in defaults.items()
        ),
    )


def _enums(model: Any, name: str) -> list[str]:
    kind = model.model_fields[name].annotation
    members = kind if isinstance(kind, type) and issubclass(kind, Enum) else ()
    return [_code(member.value) for member in members]


_KINDS = {"integer": "whole number", "number": "number", "boolean": "`True` or `False`"}
_BOUNDS = (
    ("minimum", "≥ {:g}"),
    ("exclusiveMinimum", "> {:g}"),
    ("maximum", "≤ {:g}"),
    ("multipleOf", "multiple of {:g}"),
)


def _values(schema: Mapping[str, Any], names: Sequence[str]) -> str:
    """Say which values a JSON schema allows."""
    if names:
        return ", ".join(names)
    if "anyOf" in schema:
        return " or ".join(_values(part, ()) for part in schema["anyOf"])
    if schema["type"] == "null":
        return "`None`"
    bounds = [text.format(schema[key]) for key, text in _BOUNDS if key in schema]
    return f"{_KINDS[schema['type']]} {', '.join(bounds)}".rstrip()


def _fields(model: Any) -> str:
    meanings = _attributes(model)
    rows = []
    for name, field in model.model_fields.items():
        default = (
            "required"
            if field.is_required()
            else _shown(field.get_default(call_default_factory=True))
        )
        if name == "options":
            default = "`CompactionOptions()`"
        rows.append((_code(name), default, meanings[name]))
    return _table(("field", "default", "meaning"), rows)


def _settings() -> str:
    meanings = _attributes(Settings)
    return _table(
        ("keyword", "type", "default", "meaning"),
        (
            (_code(f.name), _code(f.type), _shown(f.default), meanings[f.name])
            for f in dataclasses.fields(Settings)
        ),
    )


def _arguments(target: Callable[..., Any]) -> str:
    """A table of what a function or class takes, from its signature and its docstring."""
    documented = target.__init__ if isinstance(target, type) else target  # type: ignore[misc]
    meanings = _args(_plain_doc(target)) or _args(_plain_doc(documented))
    rows = []
    for parameter in inspect.signature(target).parameters.values():
        default = (
            "required" if parameter.default is parameter.empty else _default(parameter.default)
        )
        rows.append((_code(parameter.name), default, meanings[parameter.name]))
    return _table(("argument", "default", "meaning"), rows)


def _default(value: object) -> str:
    return _code(value.__name__) if inspect.isfunction(value) else _shown(value)


def _errors() -> str:
    rows = []
    for name in errors.__all__:
        kind = getattr(errors, name)
        parents = [base for base in kind.__bases__ if base not in (CompactionError, Exception)]
        meaning = _plain_doc(kind).partition("\n\n")[0]
        rows.append((_code(name), ", ".join(_code(p.__name__) for p in parents), meaning))
    return _table(("error", "also", "meaning"), rows)


def _members(kind: type[Enum], title: str, text: str = "") -> str:
    intro = text or _plain_doc(kind)
    return _section(title, intro, _table(("value", "meaning"), _member_rows(kind)))


def _member_rows(kind: type[Enum]) -> Iterator[tuple[str, str]]:
    meanings = _attributes(kind)
    return ((_code(member.value), meanings[member.name]) for member in kind)


def _worded(kind: type[Enum], words: Mapping[Any, str]) -> str:
    return _table(("value", "meaning"), ((_code(member.value), words[member]) for member in kind))


def _attributes(owner: type) -> dict[str, str]:
    """The docstrings below the attributes of a class."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for statement, following in zip(tree.body, tree.body[1:], strict=False):
        if not isinstance(statement, ast.Assign | ast.AnnAssign):
            continue
        named = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            found[ast.unparse(named)] = _plain(" ".join(str(following.value.value).split()))
    return found


def _args(doc: str) -> dict[str, str]:
    """The ``Args`` of a docstring in Google's form."""
    _, _, rest = doc.partition("Args:\n")
    block = re.split(r"^\S", rest, maxsplit=1, flags=re.MULTILINE)[0]
    entries = re.split(r"^    (\w+): ", block, flags=re.MULTILINE)[1:]
    return {
        name: " ".join(text.split()) for name, text in zip(entries[::2], entries[1::2], strict=True)
    }


def _plain_doc(target: object) -> str:
    return _plain(inspect.getdoc(target) or "")


def _plain(doc: str) -> str:
    """A docstring's marks as Markdown's."""
    return re.sub(r":\w+:`[~.]*([^`]+)`", r"`\1`", doc.replace("``", "`"))


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
    print(f"Wrote {PAGE.name}")
