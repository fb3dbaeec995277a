"""Reads a state's parts defensively: texts in order, calls as records, what is odd left out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentscope_compaction.models.embedded.effects import Effect, Span, effect_of, file_of, span_of
from agentscope_compaction.models.embedded.text import (
    Query,
    Reader,
    Scan,
    input_fields,
    input_text,
    known_fields,
    overlap,
)

__all__ = ["Call", "Draft", "Text", "conversation", "draft_calls", "open_inputs", "read_call"]

INPUT_LIMIT = 6_000
_SHORTENED = "…"
_LARGEST_SIZE = 10**9
"""More characters than any output has; a state may say anything."""


@dataclass(frozen=True, slots=True)
class Text:
    """One text of the conversation; ``after`` is the position of the last call before it."""

    role: str
    text: str
    after: int


@dataclass(frozen=True, slots=True)
class Draft:
    """One call as the state gives it, its input parsed."""

    key: str
    position: int
    tool: str
    state: str
    raw: str
    fields: dict[str, object] | None
    """The input; None where it is shortened or not a JSON object."""
    known: dict[str, object]
    """The input, or what a shortened one still shows."""
    text: str
    """The strings of the input, one per line."""
    output: str | None
    """None where the state does not show it."""
    chars: int


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the history, read once."""

    draft: Draft
    effect: Effect
    identity: str | None
    """Tool and canonical input; None where these are not fully known."""
    path: str | None
    span: Span | None
    digest: str | None
    scan: Scan
    input_scan: Scan
    goal_overlap: float
    tail_overlap: float
    task_overlap: float

    @property
    def position(self) -> int:
        """Place among all calls of the state, oldest first."""
        return self.draft.position

    @property
    def output(self) -> str:
        """The output text, '' where unknown."""
        return self.draft.output or ""


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _size(output: object, stated: object) -> int:
    """Characters of an output: its own, else what the state says, as far as that can be."""
    if isinstance(output, str):
        return len(output)
    return min(max(stated, 0), _LARGEST_SIZE) if isinstance(stated, int) else 0


def draft_calls(state: Mapping[str, object]) -> list[Draft]:
    """Every call of the state, oldest first."""
    calls = state.get("calls")
    drafts: list[Draft] = []
    for key, record in calls.items() if isinstance(calls, Mapping) else ():
        if not isinstance(key, str) or not isinstance(record, Mapping):
            continue
        raw = _string(record.get("input"))
        fields = None if _SHORTENED in raw else input_fields(raw)
        output = record.get("output")
        drafts.append(
            Draft(
                key=key,
                position=len(drafts),
                tool=_string(record.get("tool")),
                state=_string(record.get("state")),
                raw=raw,
                fields=fields,
                known=known_fields(raw) if fields is None else fields,
                text=input_text(fields, raw),
                output=output if isinstance(output, str) else None,
                chars=_size(output, record.get("output_chars")),
            )
        )
    return drafts


def conversation(state: Mapping[str, object], position: Mapping[str, int]) -> Iterator[Text]:
    """The texts in order, each with its place among the calls."""
    entries = state.get("conversation")
    after = -1
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, Mapping):
            continue
        calls = entry.get("calls")
        for key in calls if isinstance(calls, list) else ():
            if isinstance(key, str):
                after = max(after, position.get(key, -1))
        if text := _string(entry.get("text")):
            yield Text(_string(entry.get("role")), text, after)


def open_inputs(state: Mapping[str, object], newest: int) -> list[str]:
    """The inputs of the newest calls that have no result yet."""
    calls = state.get("open_calls")
    return [
        input_text(input_fields(raw), raw)
        for call in (calls[-newest:] if isinstance(calls, list) else ())
        if isinstance(call, Mapping) and (raw := _string(call.get("input")))
    ]


def read_call(draft: Draft, reader: Reader, query: Query, limit: int) -> Call:
    """Scan one call's input and output."""
    effect = effect_of(draft.tool, draft.known)
    path = file_of(draft.known)
    scan = reader.scan(draft.output or "", limit)
    return Call(
        draft=draft,
        effect=effect,
        identity=_identity(draft),
        path=path,
        span=span_of(draft.fields) if draft.fields is not None and path else None,
        digest=_digest(draft.output) if draft.output else None,
        scan=scan,
        input_scan=reader.scan(draft.text, INPUT_LIMIT),
        goal_overlap=overlap(query.goal, scan),
        tail_overlap=overlap(query.tail, scan),
        task_overlap=overlap(query.task, scan),
    )


def _identity(draft: Draft) -> str | None:
    if draft.fields is None:
        return None
    return _digest(draft.tool + "\0" + json.dumps(draft.fields, sort_keys=True))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
