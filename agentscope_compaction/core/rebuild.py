"""Build the suggested history: only outputs change and only whole pairs go; all else is shared.

Text, thinking, hints and every other field stay as they are. A message goes only when removal
left it without blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentscope_compaction.core.pairing import Pair
from agentscope_compaction.core.types import JSONObject

__all__ = ["Edit", "rebuild", "with_text"]


@dataclass(frozen=True, slots=True)
class Edit:
    """What happens to one pair: ``text`` replaces its output, or None removes both blocks."""

    pair: Pair
    text: str | None


def rebuild(messages: Sequence[JSONObject], edits: Sequence[Edit]) -> list[JSONObject]:
    """Return the history with the edits applied; unedited messages are the same objects."""
    new_blocks: dict[int, dict[int, JSONObject | None]] = {}
    for edit in edits:
        if edit.text is None:
            for mi, bi in (edit.pair.call_at, edit.pair.result_at):
                new_blocks.setdefault(mi, {})[bi] = None
        else:
            mi, bi = edit.pair.result_at
            new_blocks.setdefault(mi, {})[bi] = with_text(edit.pair.result, edit.text)
    rebuilt = []
    for index, message in enumerate(messages):
        changes = new_blocks.get(index)
        if changes is None:
            rebuilt.append(message)
            continue
        content = _edited(message["content"], changes)
        if content:
            rebuilt.append({**message, "content": content})
    return rebuilt


def _edited(
    content: Sequence[JSONObject], changes: Mapping[int, JSONObject | None]
) -> list[JSONObject]:
    blocks = (changes.get(index, block) for index, block in enumerate(content))
    return [block for block in blocks if block is not None]


def with_text(result: JSONObject, text: str) -> JSONObject:
    """Return the result with new output text; a list stays a list and keeps its first block."""
    output = result["output"]
    if isinstance(output, str):
        return {**result, "output": text}
    return {**result, "output": [{**output[0], "text": text}]}
