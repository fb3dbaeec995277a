"""Replays real histories call by call under a context limit, once per policy.

Before each recorded model call the policy may edit the context; then the call is charged for what
it reads. Tokens in the prefix that equals the previous call's context are cached, the rest are
not. A string is lost where the recorded agent used it (assistant text or tool input), only old
outputs had held it, and none of them held it any more at that moment. The replay cannot show what
an agent would have done instead: reading again, recalling the archived output, or failing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentscope_compaction.core.options import CompactionOptions
from agentscope_compaction.core.types import Thresholds
from agentscope_compaction.models.embedded import EmbeddedDecisionModel
from benchmarks.kit.histories import shared_folder
from benchmarks.kit.replay_history import History, State, read_history
from benchmarks.kit.replay_policies import Keep, MaskBatches, MaskSteps, Ours, Policy

__all__ = ["Figures", "Prices", "load_histories", "policies", "replay"]

SMALLEST_LIMIT = 8_000


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars per million tokens."""

    read: float = 3.0
    cached: float = 0.3
    judge: float = 0.042


@dataclass(frozen=True, slots=True)
class Figures:
    """What one policy did to one history, or to several."""

    calls: int
    peak: int
    """Largest context; over several histories, the sum of their peaks."""
    cached: int
    uncached: int
    over: int
    """Calls whose context was larger than the limit."""
    passes: int
    requests: int
    questions: int
    judge_tokens: int
    strings: int
    lost: int

    @property
    def total(self) -> int:
        """Tokens read."""
        return self.cached + self.uncached

    @property
    def loss(self) -> float:
        """Share of the used strings that were gone."""
        return self.lost / self.strings if self.strings else 0.0

    def cost(self, prices: Prices) -> float:
        """Dollars for what the model and the judge read."""
        read = self.uncached * prices.read + self.cached * prices.cached
        return (read + self.judge_tokens * prices.judge) / 1_000_000


def load_histories() -> list[History]:
    """Every history of the shared folder, in a fixed order; none where it does not exist."""
    folder = shared_folder() / "data" / "trajectories"
    return [
        read_history(path.stem, json.loads(path.read_text("utf-8")))
        for path in sorted(folder.glob("*.json"))
    ]


def limit_of(history: History, limit: int | None = None) -> int:
    """The context limit: the given one, or half of what the history grows to."""
    return limit or max(SMALLEST_LIMIT, history.tokens // 2)


async def replay(history: History, policy: Policy, limit: int) -> Figures:
    """Replay one history under one policy."""
    state = State(history)
    previous: list[object] = []
    cached = uncached = peak = over = 0
    gone = 0
    for seen, end in history.calls:
        state.seen = seen
        await policy.step(state, limit)
        versions = state.versions()
        size = state.tokens()
        known = _shared(previous, versions)
        hit = sum(map(state.tokens_of, range(known)))
        cached, uncached = cached + hit, uncached + size - hit
        peak, over = max(peak, size), over + (size > limit)
        used = [(use, holders) for at, use, holders in history.uses if seen <= at < end]
        gone += sum(not state.holds(use, holders) for use, holders in used)
        previous = versions
    return Figures(
        calls=len(history.calls),
        peak=peak,
        cached=cached,
        uncached=uncached,
        over=over,
        passes=state.passes,
        requests=state.requests,
        questions=state.questions,
        judge_tokens=state.judge_tokens,
        strings=len(history.uses),
        lost=gone,
    )


def _shared(old: Sequence[object], new: Sequence[object]) -> int:
    """Length of the common prefix."""
    for place, (was, now) in enumerate(zip(old, new, strict=False)):
        if was is not now and was != now:
            return place
    return min(len(old), len(new))


def policies(calibrated: Thresholds | None = None) -> dict[str, Callable[[], Policy]]:
    """Every policy by name, to be made anew for each history."""
    agents = CompactionOptions.for_agents
    ranked = agents(keep_result_threshold=1.0, keep_call_threshold=0.0)
    found: dict[str, Callable[[], Policy]] = {
        "no compaction": Keep,
        "mask all but 8, every step": MaskSteps,
        "mask oldest, in batches": MaskBatches,
        "ours, default thresholds": lambda: Ours(EmbeddedDecisionModel()),
        "ours, ranked to the target": lambda: Ours(EmbeddedDecisionModel(), ranked),
    }
    if calibrated is not None:
        options = agents(
            keep_call_threshold=calibrated.call, keep_result_threshold=calibrated.result
        )
        found["ours, calibrated to 5 % loss"] = lambda: Ours(EmbeddedDecisionModel(), options)
    return found


async def main() -> None:
    """Measure, print, and write the files if asked."""
    from benchmarks.kit.replay_report import report

    usual = Prices()
    arguments = argparse.ArgumentParser(description="Replay real histories under a limit.")
    arguments.add_argument("--limit", type=int, help="tokens; default: half of each history")
    arguments.add_argument("--price-read", type=float, default=usual.read)
    arguments.add_argument("--price-cached", type=float, default=usual.cached)
    arguments.add_argument("--price-judge", type=float, default=usual.judge)
    arguments.add_argument("--out", type=Path, help="folder for replay.md and replay.svg")
    arguments.add_argument("--date", default="undated")
    options = arguments.parse_args()
    histories = load_histories()
    if not histories:
        raise SystemExit("no histories found; see benchmarks/kit/histories.py")
    prices = Prices(options.price_read, options.price_cached, options.price_judge)
    text, drawing = await report(histories, prices, options.limit, options.date)
    print(text)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "replay.md").write_text(text, "utf-8")
        (options.out / "replay.svg").write_text(drawing, "utf-8")


if __name__ == "__main__":
    asyncio.run(main())
