"""Prepares a state once: every call as a record, and who holds which identifier.

Work is linear in the size of the state, and at most ``_OUTPUT_LIMIT`` characters of one output
are read. No text of one output can change what is read from another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentscope_compaction.models.embedded.effects import Effect
from agentscope_compaction.models.embedded.history import (
    Call,
    Draft,
    Text,
    conversation,
    draft_calls,
    open_inputs,
    read_call,
)
from agentscope_compaction.models.embedded.text import Query, Reader, rarity_of, weigh_terms

__all__ = ["Index", "prepare"]

_TEXT_LIMIT = 8_000
_OUTPUT_LIMIT = 16_000
_TOTAL_LIMIT = 12_000_000
_TAIL_CALLS = 4
"""The newest calls, whose inputs tell what the agent is doing right now."""
_TAIL_TEXTS = 2
_USER_TEXTS = 2
_QUOTE_CHARS = 24
_LATER_THAN_ALL = 1 << 60


@dataclass(slots=True)
class Index:
    """All calls of one state, and the tables that features and facts look things up in."""

    calls: dict[str, Call] = field(default_factory=dict)
    ordered: list[Call] = field(default_factory=list)
    has_context: bool = False
    """Whether a goal or a last assistant text says what happens next."""
    told: dict[str, int] = field(default_factory=dict)
    """Identifier to the place of the newest conversation text that names it."""
    told_first: dict[str, int] = field(default_factory=dict)
    """Identifier to the place of the oldest conversation text that names it."""
    asked: dict[str, int] = field(default_factory=dict)
    """Identifier to the newest call whose input names it."""
    first_held: dict[str, int] = field(default_factory=dict)
    """Identifier to the oldest call whose output holds it."""
    last_held: dict[str, int] = field(default_factory=dict)
    """Identifier to the newest call whose output holds it."""
    tail: dict[str, int] = field(default_factory=dict)
    """Identifier to its newest place in the tail; a text's place is later than any call's."""
    user_ids: dict[str, int] = field(default_factory=dict)
    """Identifiers and numbers of the goal and the last user messages, to their newest place."""
    user_lines: dict[str, int] = field(default_factory=dict)
    """Lines of user messages that are long enough to be quotes, to their newest place."""
    by_input: dict[str, Call] = field(default_factory=dict)
    """Identity to the newest call with it."""
    by_output: dict[str, Call] = field(default_factory=dict)
    """Digest to the newest successful call with that output."""
    plans: dict[str, int] = field(default_factory=dict)
    """Planning tool to its newest call."""
    reads: dict[str, list[Call]] = field(default_factory=dict)
    """File to the calls that read it, oldest first."""
    writes: dict[str, int] = field(default_factory=dict)
    """File to the newest call that changed it."""
    successes: dict[str, int] = field(default_factory=dict)
    """Tool to its newest success."""
    work: int = 0
    """Characters read, all told."""


def prepare(state: object) -> Index:
    """Read a state once; an odd state gives a smaller index, never an error."""
    index = Index()
    if not isinstance(state, Mapping):
        return index
    drafts = draft_calls(state)
    texts = list(conversation(state, {d.key: d.position for d in drafts}))
    value = state.get("goal")
    goal = value if isinstance(value, str) else ""
    reader, query = _query(state, goal, texts, drafts, index)
    _read_texts(index, reader, texts, goal)
    limit = min(_OUTPUT_LIMIT, max(800, _TOTAL_LIMIT // max(1, len(drafts))))
    for draft in drafts:
        _add(index, read_call(draft, reader, query, limit), len(drafts))
    index.work = reader.work
    return index


def _query(
    state: Mapping[str, object], goal: str, texts: list[Text], drafts: list[Draft], index: Index
) -> tuple[Reader, Query]:
    """What happens next, as weighted terms; texts of the tail enter the index's tail."""
    said = [t.text for t in texts if t.role == "assistant"][-_TAIL_TEXTS:]
    doing = [d.text for d in drafts[-_TAIL_CALLS:]] + open_inputs(state, _TAIL_CALLS)
    rarity = rarity_of([goal, *(t.text for t in texts), *(d.text for d in drafts)], 2_000)
    query = Query(
        weigh_terms(goal, rarity, _TEXT_LIMIT),
        weigh_terms("\n".join([*said, *doing]), rarity, _TEXT_LIMIT),
        weigh_terms(next((t.text for t in texts if t.role == "user"), ""), rarity, _TEXT_LIMIT),
    )
    reader = Reader(query.terms)
    index.has_context = bool(goal.strip() or said)
    for text in (goal, *said, *open_inputs(state, _TAIL_CALLS)):
        index.tail.update(dict.fromkeys(reader.scan(text, _TEXT_LIMIT).ids, _LATER_THAN_ALL))
    return reader, query


def _read_texts(index: Index, reader: Reader, texts: list[Text], goal: str) -> None:
    users = [t for t in texts if t.role == "user"]
    for text in texts:
        scan = reader.scan(text.text, _TEXT_LIMIT)
        index.told.update(dict.fromkeys(scan.ids, text.after))
        for name in scan.ids:
            index.told_first.setdefault(name, text.after)
    for text in [*users[-_USER_TEXTS:], Text("user", goal, _LATER_THAN_ALL)]:
        scan = reader.scan(text.text, _TEXT_LIMIT)
        index.user_ids.update(dict.fromkeys(scan.ids, text.after))
        index.user_ids.update(dict.fromkeys(sorted(scan.numbers), text.after))
    for text in [*users, Text("user", goal, _LATER_THAN_ALL)]:
        for line in text.text[:_TEXT_LIMIT].splitlines():
            if len(line := line.strip(" \t>`*-\"'")) >= _QUOTE_CHARS:
                index.user_lines[line] = text.after


def _add(index: Index, call: Call, total: int) -> None:
    """Enter one call, newest last, so that plain overwriting leaves the newest."""
    place, draft = call.position, call.draft
    index.calls[draft.key] = call
    index.ordered.append(call)
    for name in call.input_scan.ids:
        index.asked[name] = place
        if place >= total - _TAIL_CALLS:
            index.tail[name] = max(place, index.tail.get(name, -1))
    for name in call.scan.ids:
        index.first_held.setdefault(name, place)
        index.last_held[name] = place
    if call.identity:
        index.by_input[call.identity] = call
    if draft.state != "success":
        return
    index.successes[draft.tool] = place
    if call.digest:
        index.by_output[call.digest] = call
    match call.effect:
        case Effect.PLAN:
            index.plans[draft.tool] = place
        case Effect.READ if call.path and call.span:
            index.reads.setdefault(call.path, []).append(call)
        case Effect.WRITE if call.path:
            index.writes[call.path] = place
        case _:
            pass
