"""The tables and the picture of a replay."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from agentscope_compaction.calibration.curve import suggest
from agentscope_compaction.calibration.judged import JudgedCut
from agentscope_compaction.calibration.run import judge, tasks_for
from agentscope_compaction.core.jsontext import compact
from agentscope_compaction.memory import AnswerMemory
from agentscope_compaction.models.embedded import EmbeddedDecisionModel
from agentscope_compaction.testing import ScriptedDecisionModel
from benchmarks.kit.replay_bars import bar_panels
from benchmarks.kit.replay_history import History
from benchmarks.kit.replay_policies import Ours
from benchmarks.replay import Figures, Prices, limit_of, policies, replay

__all__ = ["report"]

SEED = 0
LOSS = 0.05
CUTS = (0.3, 0.5, 0.7)
Table = dict[str, dict[str, Figures]]
"""Policy to history to figures."""


async def report(
    histories: Sequence[History], prices: Prices, limit: int | None, date: str
) -> tuple[str, str]:
    """The Markdown report and the picture."""
    table = await _measure(histories, limit)
    pooled = {name: _pool(list(found.values())) for name, found in table.items()}
    remote = await _memory(histories, limit)
    import benchmarks.replay

    own = "half of what each history grows to" if limit is None else f"{limit} tokens"
    lines = [
        "# Replay of real histories",
        "",
        f"Made by `python -m benchmarks.replay --date {date} --out docs`, {date}, seed {SEED}: "
        f"{len(histories)} histories, {pooled['no compaction'].calls} model calls. Limit: {own}; "
        f"trigger 0.6, target 0.4 and growth 0.1 as in `Settings`. Dollars per million tokens: "
        f"{prices.read:g} read, {prices.cached:g} cached, {prices.judge:g} judge. Tokens are the "
        "package's own estimate, which is high; output tokens, the system prompt and tool "
        "schemas are the same for all and left out.",
        "",
        *(benchmarks.replay.__doc__ or "").split("\n")[2:-1],
        "",
        "The calibrated thresholds of a history come from the other histories "
        f"(`calibrate`, loss {LOSS:.0%}, cuts at 30, 50 and 70 %). The embedded model runs in "
        "process, so it reads no judge tokens.",
        "",
        "![tokens, cost and loss](replay.svg)",
        "",
        "## All histories",
        "",
        *_pooled_table(pooled, prices),
        "",
        "## By history",
        "",
        "Net cost in dollars, calls over the limit, strings lost.",
        "",
        *_history_table(histories, table, prices, limit),
        "",
        "## Questions to a remote model, with and without the memory of answers",
        "",
        *_memory_table(remote, prices),
        "",
    ]
    return "\n".join(lines), _picture(pooled, prices, own)


async def _measure(histories: Sequence[History], limit: int | None) -> Table:
    judged = await _judged(histories)
    table: Table = {}
    for history in histories:
        others = [cut for cut in judged if cut.history != history.name]
        thresholds = suggest(others, LOSS, SEED).thresholds
        for name, make in policies(thresholds).items():
            figures = await replay(history, make(), limit_of(history, limit))
            table.setdefault(name, {})[history.name] = figures
        print(f"replayed {history.name} {tuple(thresholds)}", file=sys.stderr)
    return table


async def _judged(histories: Sequence[History]) -> list[JudgedCut]:
    tasks = [t for h in histories for t in tasks_for(h.name, h.messages, CUTS)]
    return await judge(tasks, EmbeddedDecisionModel())


async def _memory(histories: Sequence[History], limit: int | None) -> dict[str, Figures]:
    """Ask a scripted remote model, whose answer to a call never changes."""
    found = {}
    for name, remembers in (("without memory", False), ("with memory", True)):
        figures = []
        for history in histories:
            memory = AnswerMemory() if remembers else None
            model = ScriptedDecisionModel(_steady_answer)
            policy = Ours(model, memory=memory)
            figures.append(await replay(history, policy, limit_of(history, limit)))
        found[name] = _pool(figures)
    return found


def _steady_answer(question: str, state: Mapping[str, Any]) -> float:
    """A fixed answer per question and call, spread over [0, 0.5]."""
    kind, _, key = question.partition("_")
    call = state["calls"][key]
    asked = compact([kind, call.get("tool"), call.get("input"), SEED])
    return int(hashlib.sha256(asked.encode("utf-8", "replace")).hexdigest()[:8], 16) / 2**33


def _pool(figures: Sequence[Figures]) -> Figures:
    names = [field.name for field in fields(Figures)]
    return Figures(**{name: sum(getattr(f, name) for f in figures) for name in names})


def _pooled_table(pooled: Mapping[str, Figures], prices: Prices) -> list[str]:
    rows = [
        "| policy | peak, sum | total tokens | cached | uncached | over the limit | passes | judge "
        "tokens | net cost | lost |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, f in pooled.items():
        rows.append(
            f"| {name} | {f.peak:,} | {f.total:,} | {f.cached / f.total:.1%} | {f.uncached:,} | "
            f"{f.over / f.calls:.1%} of calls | {f.passes} | {f.judge_tokens:,} | "
            f"${f.cost(prices):.2f} | {f.lost} of {f.strings} ({f.loss:.1%}) |"
        )
    return rows


def _history_table(
    histories: Sequence[History], table: Table, prices: Prices, limit: int | None
) -> list[str]:
    rows = [
        f"| history | calls | limit | {' | '.join(table)} |",
        f"|---|--:|--:|{'--:|' * len(table)}",
    ]
    for history in histories:
        found = [policy[history.name] for policy in table.values()]
        cells = [f"${f.cost(prices):.2f}, {f.over} over, {f.lost} lost" for f in found]
        size = limit_of(history, limit)
        rows.append(f"| {history.name} | {found[0].calls} | {size:,} | {' | '.join(cells)} |")
    return rows


def _memory_table(found: Mapping[str, Figures], prices: Prices) -> list[str]:
    rows = [
        "A scripted model that is not local; its answer to one call never changes. The memory's "
        "key holds the goal, so it saves within one user message and not across them.",
        "",
        "| | passes | questions | per 100 model calls | requests per 100 | judge tokens per 100 "
        "| judge tokens | judge cost |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, f in found.items():
        cost = f.judge_tokens * prices.judge / 1_000_000
        rows.append(
            f"| {name} | {f.passes} | {f.questions} | {100 * f.questions / f.calls:.0f} | "
            f"{100 * f.requests / f.calls:.1f} | {100 * f.judge_tokens / f.calls:,.0f} | "
            f"{f.judge_tokens:,} | ${cost:.3f} |"
        )
    return rows


def _picture(pooled: Mapping[str, Figures], prices: Prices, own: str) -> str:
    base = pooled["no compaction"]
    found = list(pooled.values())
    panels = {
        "tokens read": [f.total / base.total for f in found],
        "net cost": [f.cost(prices) / base.cost(prices) for f in found],
        "calls over the limit": [f.over / f.calls for f in found],
        "used strings lost": [f.loss for f in found],
    }
    note = f"all histories; tokens and cost as a share of no compaction; limit: {own}"
    return bar_panels("Replay of real histories, call by call", list(pooled), panels, note)
