"""How long a proposal takes with the embedded model, by length of the history."""

from __future__ import annotations

import asyncio
import time

from agentscope_compaction import CompactionOptions, compact_context
from agentscope_compaction.testing import HistoryBuilder

CALLS = (50, 200, 800)
LINE = "def handler_{n}(request): return render('page_{n}.html', user=request.user)\n"


def history(calls: int) -> list[dict[str, object]]:
    """A session that reads half as many files as it has calls, each of them twice."""
    builder = HistoryBuilder().user("Tidy up the handlers")
    for number in range(calls):
        call = number % max(1, calls // 2)
        text = "".join(LINE.format(n=call * 40 + line) for line in range(40))
        builder.call("Read", {"file_path": f"web/handlers_{call}.py"}, text)
    return builder.user("Now write the release note").messages


async def measure(calls: int) -> tuple[float, int, int]:
    """Return seconds, characters before and characters after."""
    request = {
        "messages": history(calls),
        "goal": "Write the release note about handler_7",
        "eligible_tool_names": ["Read"],
        "options": CompactionOptions.for_agents(
            max_state_tokens=200_000, max_request_tokens=250_000
        ),
    }
    started = time.perf_counter()
    proposal = await compact_context(request)
    seconds = time.perf_counter() - started
    return seconds, proposal.stats["chars_before"], proposal.stats["chars_after"]


def main() -> None:
    """Print one line per length."""
    asyncio.run(measure(10))  # imports and caches
    print(f"{'calls':>6} {'seconds':>8} {'before':>11} {'after':>11}")
    for calls in CALLS:
        seconds, before, after = asyncio.run(measure(calls))
        print(f"{calls:>6} {seconds:>8.2f} {before:>11,} {after:>11,}")


if __name__ == "__main__":
    main()
