"""One measurement per process: ``python -m benchmarks.speed_cases CASE CALLS [EVIDENCE]``.

Prints one JSON object. ``benchmarks/speed.py`` starts these and makes the table.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from statistics import mean, median
from typing import Any

from agentscope_compaction import (
    CompactionOptions,
    Compactor,
    EmbeddedDecisionModel,
    SqlArchive,
    compact_context,
    tokens,
)
from agentscope_compaction.core.jsontext import compact, copy_json
from benchmarks.speed_history import GOAL, TOOL, history

_TICK = 0.001
_NO_BUDGET = 1_000_000_000
Step = Callable[[], Awaitable[Any]]


class Instant:
    """Answers at once, keeping every third output; remembers nothing."""

    local = False
    reads_only = True  # as the bundled client declares

    async def __call__(self, state: dict[str, Any], questions: Mapping[str, Any]) -> Any:
        """Answer each question from its number alone."""
        from agentscope.classifier import BinaryAnswer, ClassifierResponse

        goes, stays = BinaryAnswer(0.05), BinaryAnswer(0.9)
        content: dict[str, Any] = {
            name: goes if int(name.rpartition("t")[2]) % 3 else stays for name in questions
        }
        return ClassifierResponse(model="instant", content=content)


def request(calls: int, evidence: int = 0) -> dict[str, Any]:
    """Return the request for a history, with budgets that hold its whole view."""
    return {
        "messages": history(calls),
        "goal": GOAL,
        "eligible_tool_names": [TOOL],
        "options": {
            "evidence_chars": evidence,
            "max_state_tokens": _NO_BUDGET,
            "max_request_tokens": _NO_BUDGET,
            "total_timeout_seconds": 3_600,
        },
    }


async def timed(step: Step, repeats: int) -> dict[str, float]:
    """Return median wall and processor seconds, mean processor seconds, and the smallest stall.

    Stalls are looked for in runs of their own: the looking competes for the interpreter. A full
    garbage collection falls on some runs only, so that the mean alone holds its share.
    """
    walls, processors, stalls = [], [], []
    for _ in range(repeats):
        wall, processor = time.perf_counter(), time.process_time()
        await step()
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
    for _ in range(repeats):
        longest, ticker = [0.0], asyncio.Event()
        task = asyncio.create_task(_tick(longest, ticker))
        await asyncio.sleep(0)
        await step()
        ticker.set()
        await task
        stalls.append(longest[0])
    return {
        "wall": median(walls),
        "cpu": median(processors),
        "mean": mean(processors),
        "stall": min(stalls),
    }


async def _tick(longest: list[float], over: asyncio.Event) -> None:
    """Wake as often as the loop allows, and note the longest sleep beyond what was asked."""
    while not over.is_set():
        before = time.perf_counter()
        await asyncio.sleep(_TICK)
        longest[0] = max(longest[0], time.perf_counter() - before - _TICK)


async def propose(calls: int, evidence: int) -> dict[str, Any]:
    """Time ``compact_context`` with an instant model."""
    given, model = request(calls, evidence), Instant()
    await compact_context(request(20), model)  # imports and caches
    size = len(compact(given["messages"]).encode())
    resident = _resident()
    repeats = 15 if calls <= 1_600 else 5

    def cold() -> Awaitable[Any]:
        tokens._estimated.cache_clear()  # else short histories alone would be counted beforehand
        return compact_context(given, model)

    measured: dict[str, Any] = await timed(cold, repeats)
    return {**measured, "json": size, "resident": _resident() - resident}


async def memory(calls: int, evidence: int) -> dict[str, Any]:
    """Trace what one proposal allocates at its peak, and what its deep copy does."""
    given, model = request(calls, evidence), Instant()
    await compact_context(request(20), model)
    size = len(compact(given["messages"]).encode())
    tracemalloc.start()
    copied = copy_json(given["messages"])
    copy, _ = tracemalloc.get_traced_memory()
    del copied
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    await compact_context(given, model)
    _, peak = tracemalloc.get_traced_memory()
    return {"json": size, "peak": peak - before, "copy": copy}


async def embedded(calls: int, evidence: int) -> dict[str, Any]:
    """Time a proposal with the embedded model, and the model's own share of it."""
    given, spans = request(calls, evidence), list[float]()

    class Watched(EmbeddedDecisionModel):
        async def __call__(self, state: Any, questions: Any) -> Any:
            spans.append(time.perf_counter())
            try:
                return await super().__call__(state, questions)
            finally:
                spans.append(time.perf_counter())

    async def step() -> None:
        spans.clear()
        await compact_context(given, Watched())

    await compact_context(request(20), Watched())
    measured = await timed(step, 3)
    return {**measured, "model": max(spans) - min(spans)}


async def archived(calls: int, evidence: int) -> dict[str, Any]:
    """Time a whole ``Compactor.propose`` with a SQLite file, and the archive's share of it."""
    given, spent = request(calls, evidence), [0.0]
    options = CompactionOptions.model_validate(given["options"])

    class Watched(SqlArchive):
        async def save(self, *args: Any, **keywords: Any) -> Any:
            started = time.perf_counter()
            try:
                return await super().save(*args, **keywords)
            finally:
                spent[0] += time.perf_counter() - started

    with tempfile.TemporaryDirectory() as folder:
        async with Watched(str(Path(folder, "archive.db"))) as archive:
            compactor = Compactor(Instant(), archive, options, [TOOL], GOAL)
            await compactor.propose(request(20)["messages"], session_id="warm")
            spent[0] = 0.0
            started = time.perf_counter()
            await compactor.propose(given["messages"])
            wall = time.perf_counter() - started
    return {"wall": wall, "archive": spent[0]}


async def hook(calls: int, evidence: int) -> dict[str, Any]:
    """Time the hook below its trigger, on the context of a real agent it has seen."""
    from agentscope.agent import Agent
    from agentscope.message import Msg

    from agentscope_compaction.agents.driver import Driver
    from agentscope_compaction.agents.settings import Settings
    from agentscope_compaction.testing.chat import ScriptedChatModel

    agent = Agent(name="a", system_prompt="s", model=ScriptedChatModel([]))
    agent.state.context[:] = [Msg.model_validate(message) for message in history(calls)]
    driver = Driver(Compactor(Instant()), Settings(trigger_tokens=_NO_BUDGET))
    started = time.perf_counter()
    await driver.before_model_call(agent)
    first = time.perf_counter() - started
    measured = await timed(lambda: driver.before_model_call(agent), 21)
    return {**measured, "first": first}


def _resident() -> int:
    """Peak resident bytes of this process (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


CASES = {
    "propose": propose,
    "memory": memory,
    "embedded": embedded,
    "archived": archived,
    "hook": hook,
}


def main() -> None:
    """Run the case that the command line names."""
    if len(sys.argv) < 3:
        print(f"usage: python -m benchmarks.speed_cases {'|'.join(CASES)} CALLS [EVIDENCE]")
        return
    name, calls, evidence = sys.argv[1], int(sys.argv[2]), int((*sys.argv, "0")[3])
    print(json.dumps(asyncio.run(CASES[name](calls, evidence))))


if __name__ == "__main__":
    main()
