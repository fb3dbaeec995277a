"""Build histories in AgentScope's message form (``Msg.model_dump(mode="json")``) for tests."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["HistoryBuilder"]

_AT = "2025-01-01T00:00:00"


class HistoryBuilder:
    """Collects blocks into messages; every method returns the builder itself.

    Example::

        history = HistoryBuilder().user("Fix the bug").call("Read", {"path": "a"}, "text").messages
    """

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        """The messages so far: plain JSON objects."""
        self._count = 0

    def user(self, text: str) -> HistoryBuilder:
        """Start a user message."""
        return self.message("user", [self._text(text)])

    def system(self, text: str) -> HistoryBuilder:
        """Start a system message."""
        return self.message("system", [self._text(text)])

    def say(self, text: str) -> HistoryBuilder:
        """Add an assistant text to the current reply."""
        return self.add(self._text(text))

    def think(self, thinking: str, **extra: Any) -> HistoryBuilder:
        """Add a thinking block, with provider fields such as ``signature``."""
        block = {"type": "thinking", "thinking": thinking, "id": self._next("th")}
        return self.add({**block, "created_at": _AT, "finished_at": None, **extra})

    def call(
        self, tool: str, arguments: object, output: object, call_id: str | None = None
    ) -> HistoryBuilder:
        """Add a finished call and its successful result to the current reply."""
        call_id = call_id if call_id is not None else self._next("call_")
        return self.start(tool, arguments, call_id).finish(tool, output, call_id)

    def start(
        self, tool: str, arguments: object, call_id: str, state: str = "finished"
    ) -> HistoryBuilder:
        """Add a tool call; a string is taken as the raw input."""
        raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
        block = {"type": "tool_call", "id": call_id, "name": tool, "input": raw, "state": state}
        return self.add({**block, "suggested_rules": [], "created_at": _AT, "finished_at": None})

    def finish(
        self, tool: str, output: object, call_id: str, state: str = "success"
    ) -> HistoryBuilder:
        """Add a tool result: a string, or a list of content blocks."""
        block = {"type": "tool_result", "id": call_id, "name": tool, "output": output}
        rest: dict[str, Any] = {
            "state": state,
            "metadata": {},
            "created_at": _AT,
            "finished_at": None,
        }
        return self.add({**block, **rest})

    def add(self, block: dict[str, Any]) -> HistoryBuilder:
        """Add a block to the current reply, opening one after a user or system message."""
        if not self.messages or self.messages[-1]["role"] != "assistant":
            self.message("assistant", [])
        self.messages[-1]["content"].append(block)
        return self

    def reply(self) -> HistoryBuilder:
        """Start a new assistant message."""
        return self.message("assistant", [])

    def message(self, role: str, content: list[dict[str, Any]]) -> HistoryBuilder:
        """Start a message."""
        head = {"name": role, "content": content, "role": role, "id": self._next("m")}
        tail: dict[str, Any] = {
            "metadata": {},
            "created_at": _AT,
            "usage": None,
            "finished_at": None,
        }
        self.messages.append({**head, **tail})
        return self

    def request(
        self, goal: str = "Do the next step", tools: list[str] | None = None, **options: Any
    ) -> dict[str, Any]:
        """Return a request of ``compact_context`` for these messages.

        Args:
            goal: What the agent does next.
            tools: Eligible tool names; None = every tool the history calls.
            **options: Fields of ``CompactionOptions``.
        """
        if tools is None:
            blocks = [block for message in self.messages for block in message["content"]]
            names = [block.get("name") for block in blocks if block.get("type") == "tool_call"]
            tools = sorted({name for name in names if isinstance(name, str)})
        return {
            "messages": self.messages,
            "goal": goal,
            "eligible_tool_names": tools,
            "options": options,
        }

    def text_block(self, text: str) -> dict[str, Any]:
        """Return a text block, for outputs made of blocks."""
        return self._text(text)

    def _text(self, text: str) -> dict[str, Any]:
        block = {"type": "text", "text": text, "id": self._next("b")}
        return {**block, "created_at": _AT, "finished_at": None}

    def _next(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"
