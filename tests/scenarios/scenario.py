"""What a scenario is: a history, the goal, and what a good proposal leaves alone or clears."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentscope_compaction.testing import HistoryBuilder

__all__ = ["Scenario", "add_broken_calls"]

Message = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """A synthetic history with its goal and the fate expected of its calls."""

    name: str
    goal: str
    messages: list[Message]
    tools: Sequence[str]
    protected_messages: Sequence[str]
    """Ids of messages that hold receipts."""
    protected_calls: Sequence[str]
    """Ids of calls that are evidence."""
    key_calls: Sequence[str]
    """Ids of candidates whose outputs the next steps are made of."""
    side_calls: Sequence[str]
    """Ids of candidates of finished side tracks."""
    side_words: Sequence[str]
    """Words that only the inputs of the side tracks hold."""

    def request(self, **options: Any) -> dict[str, Any]:
        """Return a fresh request of ``compact_context``."""
        return {
            "messages": copy.deepcopy(self.messages),
            "goal": self.goal,
            "eligible_tool_names": list(self.tools),
            "protected_message_ids": list(self.protected_messages),
            "protected_call_ids": list(self.protected_calls),
            "options": options,
        }

    @property
    def chars(self) -> int:
        """Characters of the history as compact JSON."""
        return len(json.dumps(self.messages, ensure_ascii=False, separators=(",", ":")))

    def script(self, question: str, state: dict[str, Any]) -> float:
        """Answer as a model would that knows what belongs to the side tracks."""
        kind, _, call = question.partition("_")
        record = state["calls"][call]
        aside = any(word in record["input"] for word in self.side_words)
        return {"call": 0.04, "result": 0.02}[kind] if aside else {"call": 0.9, "result": 0.8}[kind]


def add_broken_calls(builder: HistoryBuilder, tool: str, prefix: str) -> None:
    """Add what no proposal may touch: a failed, a running and a twice-used call, and a chart."""
    builder.start(tool, {"target": "wrong-name"}, f"{prefix}-failed")
    failure = "Error: no such target 'wrong-name'. Known targets are listed in the runbook. " * 8
    builder.finish(tool, failure, f"{prefix}-failed", state="error")
    builder.start(tool, {"target": "nightly"}, f"{prefix}-running", state="submitted")
    builder.finish(tool, "started, still collecting " * 20, f"{prefix}-running", state="running")
    for attempt in (1, 2):
        output = f"attempt {attempt}: " + "the same id was used for two calls. " * 12
        builder.call(tool, {"attempt": attempt}, output, f"{prefix}-twice")
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo" * 40}
    chart = {"type": "data", "id": f"{prefix}-png", "source": source, "name": "chart.png"}
    caption = builder.text_block("Latency by hour, as a chart.")
    builder.call(tool, {"render": "chart"}, [caption, chart], f"{prefix}-chart")
