"""The histories whose proposals are timed: a fixed seed, 2,000 characters per output."""

from __future__ import annotations

import random
from typing import Any

from agentscope_compaction.testing import HistoryBuilder

__all__ = ["GOAL", "SEED", "TOOL", "history"]

SEED = 20_250_101
GOAL = "Fix the retry bug"
TOOL = "Read"
_OUTPUT_CHARS = 2_000
_CALLS_PER_REPLY = 10


def history(calls: int) -> list[dict[str, Any]]:
    """Return a task, replies of ten calls and a remark each, and six closing messages."""
    draw = random.Random(SEED)
    words = [f"{draw.choice('abcdefgh')}{draw.randrange(10**6):x}" for _ in range(500)]
    builder = HistoryBuilder().user(GOAL)
    for number in range(calls):
        path = {"path": f"src/package_{number % 40}/module_{number}.py"}
        builder.call(TOOL, path, _output(draw, words, number), f"c{number}")
        if number % _CALLS_PER_REPLY == _CALLS_PER_REPLY - 1:
            builder.say(f"Step {number // _CALLS_PER_REPLY} is done, on to the next file.").reply()
    for number in range(6):
        builder.user(f"Go on, {number}.")
    return builder.messages


def _output(draw: random.Random, words: list[str], number: int) -> str:
    lines: list[str] = []
    size = 0
    while size < _OUTPUT_CHARS:
        lines.append(f"{number}:{len(lines)} {' '.join(draw.choices(words, k=9))}")
        size += len(lines[-1]) + 1
    return "\n".join(lines)[:_OUTPUT_CHARS]
