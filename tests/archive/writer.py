"""A process that saves histories and says each reference once it was returned.

Arguments: url, worker number, how many saves, and whether to use few sessions or one each.
Prints ``ready``, waits for a line, then prints ``<n> <ref>`` per save.
"""

import asyncio
import sys
from typing import Any

from agentscope_compaction.archive import SqlArchive


def history(worker: int, n: int) -> list[dict[str, Any]]:
    """What worker ``worker`` saves as its ``n``-th history: some blocks shared by all workers."""
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": f"shared {k} " * 20} for k in range(n % 20)
    ]
    blocks.append({"type": "tool_result", "id": f"c{n}", "output": f"{worker} {n} " * 50})
    return [{"role": "assistant", "content": blocks, "id": f"m{worker}"}]


async def main(url: str, worker: int, saves: int, sessions: str) -> None:
    """Save."""
    async with SqlArchive(url, timeout=60) as archive:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        for n in range(saves):
            session = f"shared {n % 5}" if sessions == "few" else f"own {worker}"
            ref = await archive.save(session, history(worker, n), meta={"worker": worker})
            print(n, ref, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
