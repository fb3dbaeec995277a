"""Measure the archive: save and load rate, bytes stored per byte archived, growth.

Run from the repository: ``python benchmarks/archive.py [--snapshots 10000]``. Prints Markdown
tables. Histories are read from ``trajectories/*.json`` below ``$AGENTSCOPE_COMPACTION_SHARED``
(default: ``../shared`` beside the repository), else made up from a fixed seed. With
``$AGENTSCOPE_COMPACTION_TEST_POSTGRES`` the rates are measured on PostgreSQL too; the sessions
made there are deleted again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentscope_compaction.archive import SqlArchive

History = list[dict[str, Any]]
SEED = 7


def real_histories() -> dict[str, History]:
    """Published agent sessions, where the folder holds them."""
    default = Path(__file__).parents[2] / "shared"
    shared = Path(os.environ.get("AGENTSCOPE_COMPACTION_SHARED") or default)
    files = sorted(shared.glob("**/trajectories/*.json"))
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def synthetic_history(calls: int, seed: int) -> History:
    """One question and one reply of so many calls with outputs of real sizes."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefghijklmnop", k=rng.randint(2, 9))) for _ in range(800)]
    blocks: list[dict[str, Any]] = []
    for n in range(calls):
        call_id = f"call_{rng.getrandbits(64):016x}"
        output = " ".join(rng.choices(words, k=min(3000, int(rng.lognormvariate(5, 1.2)))))
        call = {"type": "tool_call", "id": call_id, "name": "Read", "input": f'{{"n": {n}}}'}
        result = {"type": "tool_result", "id": call_id, "name": "Read", "state": "success"}
        blocks += [call | {"state": "finished"}, result | {"output": output}]
    question = {"id": "u1", "role": "user", "content": [{"type": "text", "text": f"task {seed}"}]}
    return [question, {"id": "a1", "role": "assistant", "content": blocks}]


def after_every_call(history: History) -> Iterator[History]:
    """The history as it was after each tool result."""
    for index, message in enumerate(history):
        content = message["content"]
        for position, block in enumerate(content, 1):
            if block.get("type") == "tool_result":
                yield [*history[:index], {**message, "content": content[:position]}]


def compact_size(history: History) -> int:
    """Bytes of a history as compact JSON: what a naive archive writes per snapshot."""
    return len(json.dumps(history, ensure_ascii=False, separators=(",", ":")).encode())


def file_size(path: Path) -> int:
    """Bytes of a SQLite archive on disk, journal included."""
    return sum(file.stat().st_size for file in path.parent.glob(path.name + "*"))


async def stored_table(histories: dict[str, History], folder: Path) -> None:
    """Archive each history after every call, and compare with full copies."""
    print("\n| history | snapshots | saves/s | naive copies, MB | ours, MB | stored per byte |")
    print("|---|--:|--:|--:|--:|--:|")
    total: list[float] = [0, 0, 0, 0]
    for name, history in histories.items():
        path = folder / f"{name}.db"
        naive = count = 0
        spent = 0.0
        async with SqlArchive(path) as archive:
            for snapshot in after_every_call(history):
                naive += compact_size(snapshot)
                count += 1
                began = time.perf_counter()
                await archive.save(name, snapshot)
                spent += time.perf_counter() - began
        row = [count, spent, naive / 1e6, file_size(path) / 1e6]
        total = [a + b for a, b in zip(total, row, strict=True)]
        print_stored(name, row)
    print_stored("**all**", total)


def print_stored(name: str, row: list[float]) -> None:
    """One row of the table of sizes."""
    count, spent, naive, ours = row
    print(
        f"| {name} | {count:.0f} | {count / spent:.0f} | {naive:.2f} | {ours:.2f}"
        f" | {ours / naive:.4f} |"
    )


async def rate_table(folder: Path, saves: int = 100) -> None:
    """Save, load and single-result rates on each database, for a short and a long reply."""
    print("\n| database | calls in the reply | saves/s | loads/s | single results/s |")
    print("|---|--:|--:|--:|--:|")
    places: dict[str, str] = {"SQLite": str(folder / "rate.db")}
    if server := os.environ.get("AGENTSCOPE_COMPACTION_TEST_POSTGRES"):
        places["PostgreSQL"] = server
    for label, url in places.items():
        for calls in (10, 200):
            await rate_row(label, url, calls, saves)


async def rate_row(label: str, url: str, calls: int, saves: int) -> None:
    """One row of the table of rates: a reply that grows by one call per save."""
    session = f"benchmark {calls}"
    history = synthetic_history(calls + saves, SEED)
    last = history[1]["content"][3]["id"]
    async with SqlArchive(url) as archive:
        shots = list(after_every_call(history))[calls:]
        ref = await archive.save(session, shots[0])
        rates = []
        for work in (
            lambda n: archive.save(session, shots[n % len(shots)]),
            lambda _: archive.load(ref),
            lambda _: archive.load_result(ref, last),
        ):
            began = time.perf_counter()
            for n in range(saves):
                await work(n)
            rates.append(saves / (time.perf_counter() - began))
        await archive.delete(session)
    print(f"| {label} | {calls} | " + " | ".join(f"{rate:.0f}" for rate in rates) + " |")


async def growth_table(folder: Path, snapshots: int, calls: int = 250) -> None:
    """Size while so many snapshots are archived, replies of 250 calls one after the other."""
    print("\n| snapshots | file, MB | naive copies, MB | stored per byte | KB per snapshot |")
    print("|--:|--:|--:|--:|--:|")
    path = folder / "growth.db"
    naive = count = 0
    began = time.perf_counter()
    async with SqlArchive(path) as archive:
        for reply in range(-(-snapshots // calls)):
            for snapshot in after_every_call(synthetic_history(calls, SEED + reply)):
                if count == snapshots:
                    break
                naive += compact_size(snapshot)
                count += 1
                await archive.save(f"reply {reply}", snapshot)
                if count % max(1, snapshots // 5) == 0:
                    size = file_size(path)
                    print(
                        f"| {count} | {size / 1e6:.1f} | {naive / 1e6:.0f} | {size / naive:.4f}"
                        f" | {size / count / 1e3:.2f} |"
                    )
        spent = time.perf_counter() - began
        began = time.perf_counter()
        listed = len(await archive.list())
        print(f"\n{count} saves in {spent:.0f} s (naive sizes and making the histories included);")
        print(f"listing {listed} entries took {time.perf_counter() - began:.2f} s.")


async def main() -> None:
    """Print every table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--snapshots", type=int, default=10_000)
    snapshots = parser.parse_args().snapshots
    histories = real_histories()
    if not histories:
        histories = {f"synthetic {n}": synthetic_history(40 * n, SEED + n) for n in range(1, 5)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        await stored_table(histories, folder)
        await rate_table(folder)
        await growth_table(folder, snapshots)


if __name__ == "__main__":
    asyncio.run(main())
