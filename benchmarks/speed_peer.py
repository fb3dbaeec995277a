"""Time ReMe's ``compact_context`` step: ``PYTHON benchmarks/speed_peer.py HISTORY.json``.

Runs in the peer's own virtual environment, so nothing of this package is imported. Prints one
JSON object. Everything is left at the step's defaults, 2,000 evidence characters included.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any


class Instant:
    """Answers at once, releasing two of three outputs."""

    async def __call__(self, state: Any, questions: Any) -> Any:
        """Answer each question from its number alone."""
        from agentscope.classifier import BinaryAnswer, ClassifierResponse

        goes, stays = BinaryAnswer(0.05), BinaryAnswer(0.9)
        content: dict[str, Any] = {
            name: goes if int(name.rpartition("t")[2]) % 3 else stays for name in questions
        }
        return ClassifierResponse(model="instant", content=content)


async def measure(messages: list[dict[str, Any]], repeats: int) -> dict[str, Any]:
    """Return medians of the step's wall and processor seconds, and what it did."""
    from reme.steps.compaction import CompactContextStep  # type: ignore[import-not-found]

    blocks = [block for message in messages for block in message["content"]]
    calls = [block for block in blocks if block["type"] == "tool_call"]
    walls, processors, done = [], [], 0
    for _ in range(repeats):
        step = CompactContextStep()
        step.as_decision_model = Instant()
        step.context = _context(messages, calls)
        wall, processor = time.perf_counter(), time.process_time()
        response = await step.execute()
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
        done = sum(d["action"] == "preview" for d in response.answer["decisions"])
    return {"wall": median(walls), "cpu": median(processors), "previews": done}


def _context(messages: list[dict[str, Any]], calls: list[dict[str, Any]]) -> Any:
    from reme.components.runtime_context import RuntimeContext  # type: ignore[import-not-found]

    return RuntimeContext(
        messages=messages,
        goal="Fix the retry bug",
        eligible_tool_names=["Read"],
        source_refs={block["id"]: f"archive:{block['id']}" for block in calls},
    )


def main() -> None:
    """Read the history and print the figures."""
    if len(sys.argv) < 2:
        print("usage: PYTHON benchmarks/speed_peer.py HISTORY.json [REPEATS]")
        return
    messages = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print(json.dumps(asyncio.run(measure(messages, int((*sys.argv, "1")[2])))))


if __name__ == "__main__":
    main()
