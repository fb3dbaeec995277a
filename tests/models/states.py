"""States as a local model sees them, built from calls."""

from __future__ import annotations

import json
from typing import Any

from agentscope.classifier import BinaryQuestion

JSON = dict[str, Any]


class Observation(dict[str, Any]):
    """A state that can be watched, like the one ``compact_context`` passes."""


def call(tool: str, output: str, state: str = "success", **fields: object) -> JSON:
    """One call record as a local model sees it."""
    return {
        "tool": tool,
        "input": json.dumps(fields),
        "state": state,
        "output_chars": len(output),
        "output": output,
    }


def state_of(
    *calls: JSON, goal: str = "Fix the retry bug", texts: list[JSON] | None = None
) -> JSON:
    """A state whose texts all come after its calls."""
    records = {f"t{n}": c for n, c in enumerate(calls, 1)}
    made = {"role": "assistant", "calls": list(records)}
    first = {"role": "user", "text": "Please start"}
    conversation = [first, made, *(texts or [])]
    return {"about": "", "goal": goal, "conversation": conversation, "calls": records}


def questions(state: JSON) -> dict[str, BinaryQuestion]:
    """Both questions about every call."""
    return {f"{q}_{k}": BinaryQuestion() for k in state["calls"] for q in ("call", "result")}


LOREM = "\n".join(f"line {n}: the parser reads tokens and builds a tree" for n in range(40))
PADDING = [call("grep", f"nothing about {word}", pattern=word) for word in "abcdefghij"]
