"""What a call does, by its tool's name and input alone: reads, writes, plans, asks or runs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Effect", "Span", "effect_of", "file_of", "span_of"]


class Effect(StrEnum):
    """The kind of a call; ``RUN`` is a command or tool of which nothing better is known."""

    READ = "read"
    WRITE = "write"
    PLAN = "plan"
    ASK = "ask"
    RUN = "run"


_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_PLANS = frozenset({"todo", "todos", "plan", "tasklist"})
_ASKS = frozenset({"ask", "clarification", "clarify", "confirm", "confirmation", "approval"})
_RUNS = frozenset({"bash", "shell", "command", "terminal", "exec", "execute", "python", "run"})
_WRITES = frozenset(
    "add append apply book cancel checkout commit create delete deploy edit exchange insert "
    "install merge modify move order patch pay post publish push put refund register remove rename "
    "replace reply return save schedule send set start stop submit transfer update upload "
    "write".split()
)
_READS = frozenset(
    "browse calculate cat check describe diff download fetch find get glob grep head info inspect "
    "list log logs lookup ls open query read retrieve search show stat status tail test think "
    "tree view web".split()
)
_READ_COMMANDS = frozenset(
    "awk cat cut date df diff du echo env file find fd git grep head jq kubectl ls nl ps pwd rg "
    "sed sort stat tail tree uniq wc which whoami".split()
)
_CHANGES = re.compile(
    r"(?:^|[\s;&|(])(?:rm|mv|cp|mkdir|touch|chmod|chown|tee|kill|ln|patch|dd)\s"
    r"|\bsed\s+(?:-\w+\s+)*-i|\bgit\s+(?:add|commit|push|pull|merge|rebase|reset|checkout|stash|tag|rm|mv)\b"
    r"|\bkubectl\s+(?:apply|create|delete|patch|scale|edit|rollout|exec|set)\b"
    r"|\b(?:install|upgrade|publish|deploy)\b|-X\s*(?:POST|PUT|PATCH|DELETE)|(?<![0-9&<])>>?\s*[\w./~\"'$]"
)
_PATH_KEYS = ("file_path", "path", "filepath", "filename", "file", "notebook_path")


@dataclass(frozen=True, slots=True)
class Span:
    """The lines of a file that a call reads, first to last."""

    first: float
    last: float

    def covers(self, other: Span) -> bool:
        """Whether every line of ``other`` is a line of this span."""
        return self.first <= other.first and self.last >= other.last


def effect_of(tool: str, fields: Mapping[str, object] | None) -> Effect:
    """Judge a call; doubt is ``RUN``, which no rule treats as free of effects."""
    words = [w.lower() for w in _WORDS.findall(tool[:200])]
    command = (fields or {}).get("command") or (fields or {}).get("cmd")
    if _PLANS & set(words):
        return Effect.PLAN
    if _ASKS & set(words):
        return Effect.ASK
    if isinstance(command, str) and len(command) < 30 and command.isidentifier():
        words = command.split("_") + words  # editors with verbs: view, create, str_replace
    if isinstance(command, str) and _RUNS & set(words):
        return _effect_of_command(command[:4_000])
    for word in words:
        if word in _WRITES:
            return Effect.WRITE
        if word in _READS:
            return Effect.READ
    return Effect.RUN


def _effect_of_command(command: str) -> Effect:
    if _CHANGES.search(command):
        return Effect.WRITE
    body = re.sub(r"^\s*cd\s+\S+\s*(?:&&|;)\s*", "", command)
    first = re.match(r"\s*([\w.-]+)", body)
    return Effect.READ if first and first.group(1) in _READ_COMMANDS else Effect.RUN


def file_of(fields: Mapping[str, object] | None) -> str | None:
    """The file a call names in an input field of its own; None where there is none."""
    for key in _PATH_KEYS:
        value = (fields or {}).get(key)
        if isinstance(value, str) and value:
            return value
    return None


def span_of(fields: Mapping[str, object]) -> Span | None:
    """The lines a read asks for (all, where it names none); None where they cannot be told."""
    window = fields.get("view_range")
    if isinstance(window, list) and len(window) == 2:
        first, last = _whole(window[0]), _whole(window[1])
    else:
        first = _whole(fields.get("offset", fields.get("start_line", 0)))
        last = _whole(fields.get("end_line", -1))
    count = _whole(fields.get("limit", -1))
    if first is None or last is None or count is None:
        return None
    end = math.inf if last < 0 else float(last)
    return Span(float(first), end if count < 0 else float(first) + count)


def _whole(value: object) -> int | None:
    """An int as it is, null as "not given"; None for all that is no line number."""
    if value is None:
        return -1
    plain = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**12
    return value if plain and isinstance(value, int) else None
