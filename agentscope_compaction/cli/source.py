"""From FILE and the options of the command line to one request of ``compact_context``."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import typer
from pydantic import ValidationError

from agentscope_compaction.cli.failures import CommandError
from agentscope_compaction.core.options import CompactionOptions

__all__ = ["build_request", "parse_options", "read_document"]

STANDARD_INPUT = "-"


def read_document(name: str) -> Any:
    """Read the JSON value in a file, or on standard input for ``-``.

    Raises:
        CommandError: It cannot be read, or is not JSON (NaN and infinities are not).
    """
    shown = "standard input" if name == STANDARD_INPUT else name
    try:
        data = sys.stdin.buffer.read() if name == STANDARD_INPUT else Path(name).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise CommandError(f"cannot read {shown}: {reason}") from None
    if not data.strip():
        raise CommandError(f"{shown} is empty")
    try:
        return json.loads(data, parse_constant=_refuse, parse_float=_finite)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise CommandError(f"{shown} is not JSON: {error.msg} at {where}") from None
    except UnicodeDecodeError as error:
        raise CommandError(f"{shown} is not UTF-8 text: byte {error.start}") from None
    except RecursionError:
        raise CommandError(f"{shown} is nested too deeply") from None
    except ValueError as error:
        raise CommandError(f"{shown} is not JSON: {error}") from None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("a number in it is too large")
    return value


def parse_options(pairs: Sequence[str]) -> dict[str, Any]:
    """Read ``name=value`` pairs; a value is JSON, or else a plain string.

    Raises:
        typer.BadParameter: Not a pair, an unknown name, or a value out of bounds.
    """
    values: dict[str, Any] = {}
    known = CompactionOptions.model_fields
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.strip()
        if not equals:
            raise typer.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint="'--option'")
        if name not in known:
            names = ", ".join(known)
            raise typer.BadParameter(f"unknown {name!r}; one of: {names}", param_hint="'--option'")
        try:
            values[name] = json.loads(text)
        except (ValueError, RecursionError):
            values[name] = text
    try:
        CompactionOptions.model_validate(values)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        name = str(fault["loc"][0]) if fault["loc"] else "options"
        raise typer.BadParameter(f"{name}: {fault['msg']}", param_hint="'--option'") from None
    return values


def build_request(
    document: Any,
    *,
    goal: str | None,
    tools: Sequence[str],
    options: dict[str, Any],
    for_agents: bool,
) -> dict[str, Any]:
    """Combine a list of messages or a request object with what the command line says.

    ``goal`` replaces the document's, ``tools`` are added to its, and each of ``options`` replaces
    the option of that name; ``for_agents`` changes the defaults below all of them.

    Raises:
        CommandError: The document is neither.
        typer.BadParameter: Nothing says what the goal is, or the command line says nothing.
    """
    request = _as_request(document)
    if goal is not None and not goal.strip():
        raise typer.BadParameter("must not be blank", param_hint="'--goal'")
    if goal is not None:
        request["goal"] = goal
    if "goal" not in request:
        raise typer.BadParameter("say what the agent does next", param_hint="'--goal'")
    if tools:
        known = request.get("eligible_tool_names", [])
        request["eligible_tool_names"] = [*known, *tools] if isinstance(known, list) else known
    given = request.get("options", {})
    if isinstance(given, dict):
        base = CompactionOptions.for_agents().model_dump(mode="json") if for_agents else {}
        request["options"] = {**base, **given, **options}
    return request


def _as_request(document: Any) -> dict[str, Any]:
    if isinstance(document, list):
        return {"messages": document}
    if isinstance(document, dict) and "messages" in document:
        return dict(document)
    if isinstance(document, dict) and isinstance(document.get("context"), list):
        raise CommandError(
            "this looks like the state of an agent: give the list under its key 'context'"
        )
    raise CommandError("expected a list of messages, or an object with the key 'messages'")
