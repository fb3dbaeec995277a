"""Pair tool calls with their results, by id, across the whole history.

One AgentScope reply is one message, results arrive in completion order, and a result may stand in
another message than its call, so neither adjacency nor message borders mean anything. Whatever is
not one call followed by one result is left out and counted by kind; it is never a barrier for
others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agentscope_compaction.core.jsontext import object_of
from agentscope_compaction.core.options import ReusedIds
from agentscope_compaction.core.types import JSONObject

__all__ = ["Pair", "Pairing", "Spot", "find_pairs", "result_text"]

Spot = tuple[int, int]
"""Message index and block index."""


class Pair(NamedTuple):
    """One recognised call with its result."""

    id: str
    call_id: str
    tool_name: str
    call: JSONObject
    result: JSONObject
    call_at: Spot
    result_at: Spot
    text: str | None
    """The output's text; None when it is not text only."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """What a history holds: pairs in call order, unanswered calls, and what was skipped."""

    pairs: tuple[Pair, ...]
    calls: tuple[Spot, ...]
    """Every ``tool_call`` block, paired or not, in history order."""
    open_calls: tuple[Spot, ...]
    """Calls without a result."""
    skipped: Mapping[str, int]


def result_text(block: JSONObject) -> str | None:
    """Return a result's text, blocks joined by newline; None unless it is text and nothing else."""
    output = block.get("output")
    if isinstance(output, str):
        return output
    if not isinstance(output, list) or not output:
        return None
    texts = []
    for item in output:
        text = item.get("text") if isinstance(item, dict) and item.get("type") == "text" else None
        if not isinstance(text, str):
            return None
        texts.append(text)
    return "\n".join(texts)


def find_pairs(messages: Sequence[JSONObject], reused_ids: ReusedIds = ReusedIds.KEEP) -> Pairing:
    """Recognise every clean pair of the history, in order of the calls."""
    calls: list[Spot] = []
    skipped: Counter[str] = Counter()
    called: dict[str, list[Spot]] = {}
    answered: dict[str, list[Spot]] = {}
    for spot, kind, call_id in _tool_blocks(messages):
        if kind == "tool_call":
            calls.append(spot)
        if not call_id:
            skipped["no_result" if kind == "tool_call" else "no_call"] += 1
            continue
        (called if kind == "tool_call" else answered).setdefault(call_id, []).append(spot)

    found, open_calls = list[tuple[Spot, Spot, str]](), list[Spot]()
    for call_id in called | answered:
        uses, results = called.get(call_id, ()), answered.get(call_id, ())
        fault = _fault(uses, results, reused_ids)
        if fault == "no_result":
            open_calls += uses
        if fault:
            skipped[fault] += 1
            continue
        sound = [
            (call_at, result_at, call_id)
            for call_at, result_at in zip(uses, results, strict=True)
            if object_of(_at(messages, call_at).get("input")) is not None
        ]
        if len(sound) < len(uses):
            skipped["bad_input"] += 1
        found += sound
    found.sort()
    pairs = tuple(_pair(messages, f"t{n}", *spots) for n, spots in enumerate(found, start=1))
    return Pairing(pairs, tuple(calls), tuple(sorted(open_calls)), dict(skipped))


def _tool_blocks(messages: Sequence[JSONObject]) -> Iterator[tuple[Spot, str, str]]:
    for mi, message in enumerate(messages):
        for bi, block in enumerate(message["content"]):
            kind = block.get("type")
            if kind == "tool_call" or kind == "tool_result":
                call_id = block.get("id")
                yield (mi, bi), kind, call_id if isinstance(call_id, str) else ""


def _fault(calls: Sequence[Spot], results: Sequence[Spot], reused_ids: ReusedIds) -> str | None:
    """Name why these uses of one id are not pairs; None when they are."""
    if len(calls) > 1 or len(results) > 1:
        if reused_ids is ReusedIds.PAIR and _alternate(calls, results):
            return None
        return "duplicate_id"
    if not results:
        return "no_result"
    if not calls:
        return "no_call"
    return "reversed" if results[0] < calls[0] else None


def _alternate(calls: Sequence[Spot], results: Sequence[Spot]) -> bool:
    """Call, result, call, result, ...: each result before the next call."""
    if len(calls) != len(results):
        return False
    order = [spot for both in zip(calls, results, strict=True) for spot in both]
    return order == sorted(order)


def _at(messages: Sequence[JSONObject], spot: Spot) -> JSONObject:
    block: JSONObject = messages[spot[0]]["content"][spot[1]]
    return block


def _pair(
    messages: Sequence[JSONObject], pair_id: str, call_at: Spot, result_at: Spot, call_id: str
) -> Pair:
    call, result = _at(messages, call_at), _at(messages, result_at)
    name = call.get("name")
    return Pair(
        id=pair_id,
        call_id=call_id,
        tool_name=name if isinstance(name, str) else "",
        call=call,
        result=result,
        call_at=call_at,
        result_at=result_at,
        text=result_text(result),
    )
