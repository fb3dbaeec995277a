"""How long a proposal takes, by length of the history, with ReMe's step beside it.

Run from the repository: ``python benchmarks/speed.py [--quick] [--no-peer] [--out FILE]``. Every
figure comes from a process of its own (``speed_cases.py``); the peer runs in its own virtual
environment, made on first use (``speed_peer.py``). Prints Markdown.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.speed_history import SEED, history

ROOT = Path(__file__).resolve().parent.parent
PEER = ("reme-ai==0.4.2.0", "agentscope[classifier-jev]==2.0.10")
SIZES = (100, 300, 400, 1_600, 6_400, 12_800, 25_600)
QUICK = (20, 100)
PEER_LIMIT = 400
"""The peer takes about a minute for 1,600 calls."""
Figures = dict[str, Any]


def run(case: str, calls: int, evidence: int = 0) -> Figures:
    """Measure one case in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.speed_cases", case, str(calls), str(evidence)]
    return _json_of(command, os.environ | {"PYTHONPATH": str(ROOT)})


def run_peer(python: Path | None, calls: int) -> Figures | None:
    """Measure the peer's step on the same history; None where it is not wanted or too slow."""
    if python is None or calls > PEER_LIMIT:
        return None
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(history(calls), file)
        file.flush()
        repeats = "3" if calls <= 100 else "1"
        return _json_of([str(python), str(ROOT / "benchmarks/speed_peer.py"), file.name, repeats])


def _json_of(command: list[str], environment: dict[str, str] | None = None) -> Figures:
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[1:4])} failed:\n{done.stderr[-2_000:]}")
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def peer_python(folder: Path) -> Path:
    """Return the interpreter of the peer's environment, making it if need be."""
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEER], check=True)
        (folder / ".ready").touch()
    return python


def import_seconds() -> tuple[float, float]:
    """Median seconds of a bare interpreter, and of one that imports the package."""

    def once(code: str) -> float:
        clock = f"import time; t = time.perf_counter(); {code}; print(time.perf_counter() - t)"
        return float(_json_of([sys.executable, "-c", clock]))  # type: ignore[arg-type]

    bare = median(once("import json, asyncio, pydantic") for _ in range(5))
    return bare, median(once("import agentscope_compaction") for _ in range(5))


def proposals(sizes: tuple[int, ...], python: Path | None) -> tuple[list[str], dict[int, float]]:
    """Rows of the main table, and mean processor seconds without evidence by size."""
    lines = [
        "| calls | JSON MB | evidence 0: ms | CPU ms | stall ms | evidence 2000: ms | CPU ms "
        "| peer ms | ratio (0) | ratio (2000) | traced peak / JSON | resident growth / JSON "
        "| deep copy / JSON |",
        "|" + " ---: |" * 13,
    ]
    seconds = {}
    for calls in sizes:
        plain, shown = run("propose", calls), run("propose", calls, 2_000)
        traced, peer = run("memory", calls), run_peer(python, calls)
        seconds[calls] = plain["mean"]
        wall = peer["wall"] if peer else None
        cells = [
            f"{calls:,}",
            f"{plain['json'] / 1e6:.1f}",
            *(_ms(plain[key]) for key in ("wall", "cpu", "stall")),
            *(_ms(shown[key]) for key in ("wall", "cpu")),
            _ms(wall) if wall else "–",
            f"{wall / plain['wall']:.0f}×" if wall else "–",
            f"{wall / shown['wall']:.0f}×" if wall else "–",
            *(f"{traced['peak'] / traced['json']:.1f}", f"{plain['resident'] / plain['json']:.1f}"),
            f"{traced['copy'] / traced['json']:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines, seconds


def parts(sizes: tuple[int, ...]) -> list[str]:
    """Rows about hook, archive and embedded model."""
    lines = [
        "| calls | hook below its trigger: ms | first look: ms | archive: ms | its share "
        "| embedded proposal: ms | model alone: ms per candidate |",
        "|" + " ---: |" * 7,
    ]
    for calls in sizes:
        hook, kept = run("hook", calls), run("archived", calls)
        judged = run("embedded", calls) if calls <= 12_800 else None
        cells = [
            f"{calls:,}",
            f"{hook['wall'] * 1e3:.3f}",
            _ms(hook["first"]),
            _ms(kept["archive"]),
            f"{kept['archive'] / kept['wall']:.0%}",
            _ms(judged["wall"]) if judged else "–",
            f"{judged['model'] / calls * 1e3:.3f}" if judged else "–",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f}" if seconds < 0.1 else f"{seconds * 1e3:,.0f}"


def rounds(count: int, python: Path, calls: int = 300) -> list[str]:
    """Time both sides in turn, each time in fresh processes: a slow spell then hits both."""
    lines = [
        "| round | evidence 0: ms | evidence 2000: ms | peer ms | ratio (0) | ratio (2000) |",
        "|" + " ---: |" * 6,
    ]
    ratios = []
    for number in range(1, count + 1):
        plain, shown = (run("propose", calls, evidence)["wall"] for evidence in (0, 2_000))
        peer = run_peer(python, calls) or {}
        ratios.append((peer["wall"] / plain, peer["wall"] / shown))
        cells = [*map(_ms, (plain, shown, peer["wall"])), *(f"{r:.0f}×" for r in ratios[-1])]
        lines.append(f"| {number} | {' | '.join(cells)} |")
    middle = [median(column) for column in zip(*ratios, strict=True)]
    lines.append(f"\nMedian ratio at {calls} calls: {middle[0]:.0f}× and {middle[1]:.0f}×.")
    return lines


def report(sizes: tuple[int, ...], python: Path | None) -> str:
    """Measure everything and return the page."""
    main_table, seconds = proposals(sizes, python)
    first, last = (1_600, 12_800) if 12_800 in seconds else (sizes[0], sizes[-1])
    exponent = math.log(seconds[last] / seconds[first]) / math.log(last / first)
    bare, ours = import_seconds()
    today = datetime.datetime.now(datetime.UTC).date()
    lines = [
        "# How long a proposal takes",
        "",
        f"Measured {today} by `benchmarks/speed.py`, seed {SEED}, Python "
        f"{sys.version.split()[0]}, {os.cpu_count()} processors shared with other work. Medians; "
        "2,000 characters per output; an instant decision model; 64 questions a request; budgets "
        "raised so that the whole view fits. Stall: the longest time the event loop was held up, "
        f"in the best run. Peer: `{PEER[0]}` with its defaults (evidence 2000).",
        "",
        *main_table,
        "",
        f"Growth from {first:,} to {last:,} calls (mean CPU, evidence 0): n^{exponent:.2f}.",
        "",
        *parts(sizes),
        "",
        f"`import agentscope_compaction`: {_ms(ours)} ms (of these, asyncio, json and pydantic "
        f"alone: {_ms(bare)} ms).",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description="How long a proposal takes.")
    parser.add_argument("--quick", action="store_true", help="two short histories, no peer")
    parser.add_argument("--no-peer", action="store_true", help="leave ReMe out")
    parser.add_argument("--peer", type=Path, default=ROOT / ".venv" / "peer", metavar="FOLDER")
    parser.add_argument(
        "--rounds", type=int, default=0, help="only 300 calls, in turn with ReMe, so many times"
    )
    parser.add_argument("--out", type=Path, help="write the page to this file")
    given = parser.parse_args()
    python = None if given.quick or given.no_peer else peer_python(given.peer)
    if given.rounds:
        print("\n".join(rounds(given.rounds, peer_python(given.peer))))
        return
    page = report(QUICK if given.quick else SIZES, python)
    if given.out:
        given.out.write_text(page, encoding="utf-8")
    else:
        print(page)


if __name__ == "__main__":
    main()
