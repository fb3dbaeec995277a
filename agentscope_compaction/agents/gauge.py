"""How large a context is, cheaply: what was counted once and is still there is not counted again.

A context grows at its end. Each message's blocks are remembered beside their size, and lists of the
very same blocks compare equal without a look into them, so a context that was seen costs little.
Hosts replace blocks in place (``agent/_agent.py`` does so with images): a message with a replaced
block is counted anew. A text changed inside a block is not seen: AgentScope does that to none it
has saved. What is remembered goes with the agent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter, ne
from typing import TYPE_CHECKING, Any

from agentscope_compaction.agents.by_agent import ByAgent

if TYPE_CHECKING:
    from agentscope.agent import Agent

__all__ = ["Gauge"]

_DATA_BYTES = 8_000
"""AgentScope's flat 2,000 tokens per data block, in bytes (``model/_base.py``)."""
_PARTS = ("text", "thinking", "hint", "input", "output")
_contents = attrgetter("content")


@dataclass(slots=True)
class _Counted:
    """What was counted of one context: each message's blocks, and their bytes."""

    blocks: list[list[Any]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def update(self, contents: Sequence[list[Any]]) -> int:
        """Count what is new, and return the bytes of all."""
        shared = min(len(self.blocks), len(contents))
        del self.blocks[shared:], self.sizes[shared:]
        changed = [n for n, differs in enumerate(map(ne, self.blocks, contents)) if differs]
        for n in changed:
            known = len(self.blocks[n])
            if contents[n][:known] != self.blocks[n]:
                known = self.sizes[n] = 0
            self.sizes[n] += size_of(contents[n][known:])
            self.blocks[n] = list(contents[n])
        for content in contents[shared:]:
            self.blocks.append(list(content))
            self.sizes.append(size_of(content))
        return sum(self.sizes)


class Gauge:
    """Counts the contexts of any number of agents."""

    def __init__(self) -> None:
        self._counted: ByAgent[_Counted] = ByAgent()
        self._prompts: ByAgent[str] = ByAgent()

    def saw_prompt(self, agent: Agent, prompt: str) -> None:
        """Remember the system prompt of an agent's newest model call."""
        self._prompts.set(agent, prompt)

    async def tokens(self, agent: Agent) -> int:
        """Return the estimated tokens of the agent's context and summary.

        By AgentScope's own rule, or by the model's ``count_tokens`` where it has one of its own,
        so that both agree on how full the window is.
        """
        from agentscope.model import ChatModelBase

        model, context = agent.model, agent.state.context
        summary = size_of(agent.state.summary)
        if type(model).count_tokens is not ChatModelBase.count_tokens:
            return await model.count_tokens(list(context), None) + math.ceil(summary / 4)
        counted = self._counted.get(agent) or self._counted.set(agent, _Counted())
        size = counted.update(list(map(_contents, context)))
        return math.ceil((size + summary) / 4)

    async def beside(self, agent: Agent) -> int:
        """Return the tokens of what a model is sent beside the context: tools, and a prompt seen.

        As its model counts them: AgentScope's own trigger (``_compress_context_impl``) does the
        same.
        """
        from agentscope.message import SystemMsg

        prompt = self._prompts.get(agent)
        seen = [SystemMsg(name="system", content=prompt)] if prompt else []
        schemas = await agent.toolkit.get_tool_schemas(agent.state.tool_context.activated_groups)
        return await agent.model.count_tokens(seen, schemas)


def size_of(value: Any) -> int:
    """UTF-8 bytes of the strings a model is sent; an ASCII string is not read."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, list):
        return sum(map(size_of, value))
    if getattr(value, "type", None) == "data":
        return _DATA_BYTES
    parts = (getattr(value, key, None) for key in _PARTS)
    return sum(size_of(part) for part in parts if part is not None)
