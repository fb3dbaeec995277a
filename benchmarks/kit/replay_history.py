"""A recorded history as a sequence of model calls, and what each call used from old outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentscope_compaction.calibration.uses import Ledger, Use, holds, readable
from agentscope_compaction.core.estimate import measure
from agentscope_compaction.tokens import texts_of

__all__ = ["Block", "History", "State", "count_tokens", "read_history"]

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Block:
    """One block, with the message it is in."""

    message: int
    role: str
    content: JSON


@dataclass(frozen=True, slots=True)
class History:
    """A history, flat. ``calls`` are model calls as (blocks it saw, end of what it said)."""

    name: str
    messages: list[JSON]
    blocks: list[Block]
    sizes: list[int]
    """Tokens of each block."""
    calls: list[tuple[int, int]]
    uses: list[tuple[int, Use, tuple[int, ...]]]
    """(block that uses it, string, blocks that hold it) of strings only outputs held."""

    @property
    def tokens(self) -> int:
        """Size of the whole history."""
        return sum(self.sizes)


def count_tokens(messages: Sequence[JSON]) -> int:
    """The package's own estimate, so that figures do not depend on what is installed."""
    return sum(_tokens(text) for text in texts_of(list(messages)))


_known: dict[str, int] = {}


def _tokens(text: str) -> int:
    if text not in _known:
        _known[text] = measure(text).tokens
    return _known[text]


def read_history(name: str, messages: list[JSON]) -> History:
    """Flatten a history and find its model calls and later uses."""
    blocks = [Block(mi, m["role"], b) for mi, m in enumerate(messages) for b in m["content"]]
    sizes = [count_tokens([{"content": [block.content]}]) for block in blocks]
    return History(name, messages, blocks, sizes, list(_calls(blocks)), list(_uses(blocks)))


def _calls(blocks: Sequence[Block]) -> Iterator[tuple[int, int]]:
    """A model call begins where the assistant speaks after a user, a result or a message border."""
    start: int | None = None
    for place, block in enumerate(blocks):
        spoken = block.role == "assistant" and block.content["type"] != "tool_result"
        before = blocks[place - 1] if place else None
        joined = before is not None and before.message == block.message
        joined = joined and before is not None and before.content["type"] != "tool_result"
        if start is not None and not (spoken and joined):
            yield start, place
            start = None
        if spoken and start is None:
            start = place
    if start is not None:
        yield start, len(blocks)


def _uses(blocks: Sequence[Block]) -> Iterator[tuple[int, Use, tuple[int, ...]]]:
    ledger = Ledger()
    for place, block in enumerate(blocks):
        text, kind = readable(block.content), block.content["type"]
        if kind == "tool_result":
            ledger.hold((place, 0), text)
            continue
        if kind == "tool_call" or (kind == "text" and block.role != "user"):
            for use in ledger.uses(text):
                yield place, use, tuple(holder.spot[0] for holder in use.holders)
        # An input, once written, is not lost here: the label asks about outputs only.
        ledger.show(text)


@dataclass(slots=True)
class State:
    """What an agent's context looks like before one model call."""

    history: History
    seen: int = 0
    """Blocks that exist by now."""
    edits: dict[int, str | None] = field(default_factory=dict)
    """New text of an output, or None for a block that was removed."""
    passes: int = 0
    requests: int = 0
    questions: int = 0
    judge_tokens: int = 0

    def tokens_of(self, place: int) -> int:
        """Tokens of one block as it stands now."""
        if place not in self.edits:
            return self.history.sizes[place]
        text, name = self.edits[place], str(self.history.blocks[place].content.get("name", ""))
        return 0 if text is None else _tokens(text) + _tokens(name)

    def tokens(self) -> int:
        """Tokens of the whole context."""
        return sum(map(self.tokens_of, range(self.seen)))

    def versions(self) -> list[object]:
        """One value per block; equal values mean the provider has seen the very same block."""
        return [self.edits.get(place, True) for place in range(self.seen)]

    def results(self) -> list[int]:
        """Places of all outputs, oldest first."""
        blocks = self.history.blocks[: self.seen]
        return [n for n, b in enumerate(blocks) if b.content["type"] == "tool_result"]

    def holds(self, use: Use, holders: Sequence[int]) -> bool:
        """Whether the context still holds a string that these outputs held."""
        for place in holders:
            text = self.edits.get(place, "")
            if place not in self.edits or (text is not None and holds(text, use)):
                return True
        return False

    def messages(self) -> list[JSON]:
        """The context as messages."""
        found: dict[int, list[JSON]] = {}
        for place in range(self.seen):
            block = self.history.blocks[place]
            content = _edited(block.content, place, self.edits)
            if content is not None:
                found.setdefault(block.message, []).append(content)
        return [{**self.history.messages[mi], "content": c} for mi, c in found.items()]


def _edited(block: JSON, place: int, edits: Mapping[int, str | None]) -> JSON | None:
    if place not in edits:
        return block
    text = edits[place]
    if text is None:
        return None
    return {**block, "output": text}
