"""How large a context is, cheaply: what was counted once is not counted again.

A context grows at its end. Counting anew costs time in its whole length, so the count of every
message is kept with the number of its blocks, and only what was added is counted. Only ids and
numbers are held, beside a weak reference to the agent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from agentscope.agent import Agent
    from agentscope.message import Msg

__all__ = ["Gauge"]

_DATA_BYTES = 8_000
"""AgentScope's flat 2,000 tokens per data block, in bytes (``model/_base.py``)."""


@dataclass(slots=True)
class _Seen:
    """One message as last counted."""

    message: int
    blocks: int
    size: int


@dataclass(slots=True)
class _Count:
    seen: list[_Seen] = field(default_factory=list)
    size: int = 0
    shape: tuple[list[int], list[int]] | None = None
    """Identities and numbers of blocks of all messages: equal means nothing to do."""


class Gauge:
    """Counts contexts of many agents by AgentScope's rule, incrementally."""

    def __init__(self) -> None:
        self._counts: WeakKeyDictionary[Agent, _Count] = WeakKeyDictionary()

    def tokens(self, agent: Agent) -> int:
        """Return the estimated tokens of the agent's context and summary."""
        count = self._counts.setdefault(agent, _Count())
        _update(count, agent.state.context)
        return math.ceil((count.size + _size_of(agent.state.summary)) / 4)


def _update(count: _Count, context: Sequence[Msg]) -> None:
    """Bring a count up to date: messages are known by identity and number of blocks."""
    seen = count.seen
    shape = (list(map(id, context)), [len(message.content) for message in context])
    if shape == count.shape:
        return
    count.shape = shape
    for index, message in enumerate(context):
        blocks = len(message.content)
        if index < len(seen) and seen[index].message == id(message):
            entry = seen[index]
            if entry.blocks == blocks:
                continue
            start = entry.blocks if entry.blocks < blocks else 0
        else:
            _forget_from(count, index)
            entry, start = _Seen(id(message), 0, 0), 0
            seen.append(entry)
        added = sum(_size_of(block) for block in message.content[start:])
        grown = entry.size + added if start else added
        count.size += grown - entry.size
        entry.size, entry.blocks = grown, blocks
    _forget_from(count, len(context))


def _forget_from(count: _Count, index: int) -> None:
    for entry in count.seen[index:]:
        count.size -= entry.size
    del count.seen[index:]


def _size_of(value: Any) -> int:
    """UTF-8 bytes of the strings a model is sent."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, list):
        return sum(_size_of(item) for item in value)
    if getattr(value, "type", None) == "data":
        return _DATA_BYTES
    parts = (getattr(value, key, None) for key in ("text", "thinking", "hint", "input", "output"))
    return sum(_size_of(part) for part in parts if part is not None)
