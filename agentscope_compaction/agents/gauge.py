"""How large a context is, cheaply: no snapshot, no serialising, nothing kept.

Lengths of ASCII strings are known without reading them, so a count costs time in the number of
blocks, not in their sizes. Nothing is cached: hosts and users replace blocks in place.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentscope.agent import Agent

__all__ = ["context_tokens", "tools_tokens"]

_DATA_BYTES = 8_000
"""AgentScope's flat 2,000 tokens per data block, in bytes (``model/_base.py``)."""
_PARTS = ("text", "thinking", "hint", "input", "output")


async def context_tokens(agent: Agent) -> int:
    """Return the estimated tokens of the agent's context and summary.

    By AgentScope's own rule, or by the model's ``count_tokens`` where it has one of its own, so
    that both agree on how full the window is.
    """
    from agentscope.model import ChatModelBase

    model, context = agent.model, agent.state.context
    summary = _size_of(agent.state.summary)
    if type(model).count_tokens is not ChatModelBase.count_tokens:
        return await model.count_tokens(list(context), None) + math.ceil(summary / 4)
    size = sum(_size_of(message.content) for message in context)
    return math.ceil((size + summary) / 4)


async def tools_tokens(agent: Agent) -> int:
    """Return the tokens of the schemas of the agent's tools, as its model counts them."""
    schemas = await agent.toolkit.get_tool_schemas(agent.state.tool_context.activated_groups)
    return await agent.model.count_tokens([], schemas)


def _size_of(value: Any) -> int:
    """UTF-8 bytes of the strings a model is sent."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, list):
        return sum(map(_size_of, value))
    if getattr(value, "type", None) == "data":
        return _DATA_BYTES
    parts = (getattr(value, key, None) for key in _PARTS)
    return sum(_size_of(part) for part in parts if part is not None)
