"""Exact repetitions: same tool, same canonical input, same output text; the newest copy stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from agentscope_compaction.core.jsontext import canonical_input
from agentscope_compaction.core.pairing import Pair
from agentscope_compaction.core.stubs import is_compacted
from agentscope_compaction.core.types import DecisionReason

__all__ = ["find_duplicates"]


def find_duplicates(pairs: Sequence[Pair], rules: Mapping[str, DecisionReason]) -> dict[str, Pair]:
    """Map each candidate whose output a later pair repeats to that newest pair.

    The holder may be protected, but must be a successful text result that is still whole. Equal
    arguments before and after an edit give different outputs, so equality of both is required.
    """
    times = Counter(pair.text for pair in pairs)  # most texts are unique and need no second look
    newest: dict[tuple[str, str, str], Pair] = {}
    holders: dict[str, Pair] = {}
    for pair in reversed(pairs):
        text = pair.text
        if text is None or times[text] < 2 or pair.result.get("state") != "success":
            continue
        if is_compacted(pair.result, text):
            continue
        key = (pair.tool_name, text, canonical_input(pair.call["input"]))
        holder = newest.setdefault(key, pair)
        if holder is not pair and pair.id not in rules:
            holders[pair.id] = holder
    return holders
