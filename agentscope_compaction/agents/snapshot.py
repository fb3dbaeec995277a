"""Read an agent's state: its messages as JSON, what it does next, and AgentScope's token rule."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from agentscope_compaction.core.types import JSONObject
from agentscope_compaction.tokens import texts_of

if TYPE_CHECKING:
    from agentscope.agent import Agent
    from agentscope.message import Msg
    from agentscope.state import AgentState

__all__ = ["NativeCounter", "counter_for", "dump", "goal_of", "goal_of_messages", "text_of"]

NO_GOAL = "Continue the current task."
"""The goal of an agent that was told nothing yet."""
_OPEN_TASKS = ("pending", "in_progress")


def dump(messages: Iterable[Msg]) -> list[JSONObject]:
    """Return messages as JSON objects."""
    return [message.model_dump(mode="json") for message in messages]


def goal_of(state: AgentState, inputs: object = None) -> str:
    """Return what the agent does next: its open tasks and the newest user message.

    Args:
        state: The agent's state.
        inputs: The input of a reply that is about to start, not yet part of the state.
    """
    parts = [
        f"Open task: {task.subject}. {task.description}".strip()
        for task in state.tasks_context.tasks
        if task.state in _OPEN_TASKS
    ]
    newest = _newest_user_text([*state.context, *_messages(inputs)])
    return "\n".join([*parts, newest] if newest else parts) or NO_GOAL


def goal_of_messages(messages: Sequence[JSONObject]) -> str:
    """Return what happens next as far as JSON messages tell: the newest user message."""
    for message in reversed(messages):
        content = message.get("content")
        if message.get("role") != "user" or not isinstance(content, list):
            continue
        blocks = (b for b in content if isinstance(b, dict) and b.get("type") == "text")
        text = "\n".join(b["text"] for b in blocks if isinstance(b.get("text"), str))
        if text.strip():
            return text
    return NO_GOAL


def _messages(inputs: object) -> list[Any]:
    from agentscope.message import Msg

    given = inputs if isinstance(inputs, list) else [inputs]
    return [message for message in given if isinstance(message, Msg)]


def _newest_user_text(messages: Sequence[Msg]) -> str:
    for message in reversed(messages):
        if message.role == "user":
            text = text_of(message)
            if text.strip():
                return text
    return ""


def text_of(message: Msg) -> str:
    """Return a message's text blocks, joined by newlines."""
    return "\n".join(block.text for block in message.content if block.type == "text")


class NativeCounter:
    """AgentScope's own estimate, UTF-8 bytes / 4 (``model/_base.py``), times a model's factor.

    Args:
        factor: Real count divided by the estimate, for a model that counts in its own way.
    """

    name = "agentscope"
    reads_only = True

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def __call__(self, messages: list[JSONObject]) -> int:
        """Return the tokens of a history of message objects."""
        size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts_of(messages))
        return math.ceil(size / 4 * self.factor)


async def counter_for(agent: Agent, messages: list[JSONObject]) -> NativeCounter:
    """Return a counter on the scale of the agent's model, so that both agree on thresholds."""
    from agentscope.model import ChatModelBase

    model = agent.model
    if type(model).count_tokens is ChatModelBase.count_tokens or not messages:
        return NativeCounter()
    estimate = NativeCounter()(messages)
    counted = await model.count_tokens(list(agent.state.context), None)
    return NativeCounter(counted / estimate if estimate and counted > 0 else 1.0)
