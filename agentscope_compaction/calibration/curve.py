"""From judged cuts to a savings-loss curve and the thresholds for a chosen loss.

The result threshold comes first, with no call removed: the largest whose loss is within the
bound. Then the call threshold: the largest at which removing calls keeps the loss of everything
tool calls held (inputs too) within the same bound.
"""

from __future__ import annotations

import bisect
import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentscope_compaction.calibration.judged import JudgedCut, Outcome, outcome
from agentscope_compaction.core.types import Thresholds

__all__ = ["Interval", "Point", "Suggestion", "curve", "suggest", "warnings_about"]

Interval = tuple[float, float]
"""A 90 % bootstrap interval, drawing whole histories."""
_ROUNDS = 1_000
_GRID = 60
"""Thresholds tried at most; more would only follow noise."""
_ENOUGH_HISTORIES = 10
_ENOUGH_STRINGS = 50
_ENOUGH_CALLS = 200


@dataclass(frozen=True, slots=True)
class Point:
    """One threshold of the curve."""

    threshold: float
    """``keep_result_threshold``, with no call removed."""
    saved: float
    """Share of all characters before the cuts that is freed."""
    loss: float
    """Share of the later-used strings that only outputs held and that are gone."""
    interval: Interval
    """Of the loss."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Thresholds for a chosen loss, and what they would have done."""

    thresholds: Thresholds
    saved: float
    loss: float
    interval: Interval
    """Of the loss."""
    held_out: float | None
    """Loss on each history of thresholds chosen on the others; None with fewer than two."""


def curve(cuts: Sequence[JudgedCut], points: int = 10, seed: int = 0) -> list[Point]:
    """Measure result thresholds from keeping all to cutting all, at even steps of savings.

    Args:
        cuts: Judged cuts.
        points: How many thresholds, at most.
        seed: Of the bootstrap.
    """
    found = []
    for threshold in _grid([call.answer.keep_result for cut in cuts for call in cut.calls]):
        by_history = _by_history(cuts, Thresholds(0.0, threshold))
        total = _sum(by_history.values())
        found.append((threshold, _share(total.freed, total.chars), by_history))
    most = found[-1][1]
    wanted = [most * n / max(1, points - 1) for n in range(points)]
    chosen = {min(range(len(found)), key=lambda n: abs(found[n][1] - w)) for w in wanted}
    return [_point(*found[n], seed) for n in sorted(chosen)]


def _point(threshold: float, saved: float, by_history: Mapping[str, Outcome], seed: int) -> Point:
    loss = _loss(_sum(by_history.values()))
    return Point(threshold, saved, loss, _interval(by_history, seed))


def suggest(cuts: Sequence[JudgedCut], loss: float, seed: int = 0) -> Suggestion:
    """Choose the thresholds that free most within a loss.

    Args:
        cuts: Judged cuts.
        loss: Largest acceptable loss, in [0, 1], as measured on these cuts.
        seed: Of the bootstrap.
    """
    thresholds = _choose(cuts, loss)
    by_history = _by_history(cuts, thresholds)
    total = _sum(by_history.values())
    return Suggestion(
        thresholds=thresholds,
        saved=_share(total.freed, total.chars),
        loss=_loss(total),
        interval=_interval(by_history, seed),
        held_out=_held_out(cuts, loss),
    )


def warnings_about(cuts: Sequence[JudgedCut], suggestion: Suggestion, loss: float) -> list[str]:
    """Say in plain sentences why the suggestion may not hold; empty where nothing is amiss."""
    histories = len({cut.history for cut in cuts})
    calls = sum(len(cut.calls) for cut in cuts)
    strings = sum(need.only_outputs for cut in cuts for need in cut.needs)
    answers = {round(c.answer.keep_result, 3) for cut in cuts for c in cut.calls}
    found = []
    if histories < _ENOUGH_HISTORIES:
        found.append(f"only {histories} histories; {_ENOUGH_HISTORIES} or more are needed")
    if strings < _ENOUGH_STRINGS:
        found.append(f"only {strings} later-used strings; {_ENOUGH_STRINGS} or more are needed")
    if calls < _ENOUGH_CALLS:
        found.append(f"only {calls} judged calls; {_ENOUGH_CALLS} or more are needed")
    if calls and len(answers) < 5:
        found.append(f"the model gave only {len(answers)} distinct answers: it tells little apart")
    if suggestion.interval[1] > 2 * loss:
        found.append(f"the loss may be as high as {suggestion.interval[1]:.0%} on other histories")
    if suggestion.held_out is not None and suggestion.held_out > 2 * loss:
        found.append(f"on histories it was not chosen on, the loss was {suggestion.held_out:.0%}")
    if calls and not suggestion.saved:
        found.append("no threshold frees anything within this loss")
    return found


def _choose(cuts: Sequence[JudgedCut], loss: float) -> Thresholds:
    if not any(need.only_outputs for cut in cuts for need in cut.needs):
        return Thresholds(0.0, 0.0)  # without a single string nothing says that cutting is safe
    answers = [call.answer for cut in cuts for call in cut.calls]

    def result_loss(threshold: float) -> float:
        return _loss(_pooled(cuts, Thresholds(0.0, threshold)))

    result = _largest(_grid([answer.keep_result for answer in answers]), result_loss, loss)

    if all(need.only_outputs for cut in cuts for need in cut.needs):
        return Thresholds(0.0, result)  # nothing says what a removed input would lose

    def call_loss(threshold: float) -> float:
        total = _pooled(cuts, Thresholds(threshold, result))
        return max(_loss(total), _share(total.all_lost, total.all_strings))

    dropped = [answer.keep_call for answer in answers if answer.keep_result < result]
    return Thresholds(_largest(_grid(dropped), call_loss, loss), result)


def _largest(grid: Sequence[float], loss_at: Callable[[float], float], bound: float) -> float:
    """Return the last threshold within the bound; a loss never falls as its threshold rises."""
    return grid[max(0, bisect.bisect_right(grid, bound, key=loss_at) - 1)]


def _held_out(cuts: Sequence[JudgedCut], loss: float) -> float | None:
    names = sorted({cut.history for cut in cuts})
    if len(names) < 2:
        return None
    found = []
    for name in names:
        thresholds = _choose([cut for cut in cuts if cut.history != name], loss)
        found += [outcome(cut, thresholds) for cut in cuts if cut.history == name]
    return _loss(_sum(found))


def _grid(answers: Iterable[float]) -> list[float]:
    """Thresholds between the distinct answers, ascending, from 0 (keep all) to 1."""
    distinct = sorted(set(answers))
    between = [round((low + high) / 2, 4) for low, high in itertools.pairwise(distinct)]
    above = [round(min(1.0, distinct[-1] + 0.0001), 4)] if distinct else []
    return [0.0, *_spread(sorted({*between, *above} - {0.0}), _GRID)]


def _spread(values: Sequence[float], count: int) -> list[float]:
    """At most ``count`` of the values, evenly by rank, first and last included."""
    if len(values) <= count or count < 2:
        return list(values)
    step = (len(values) - 1) / (count - 1)
    return [values[round(n * step)] for n in range(count)]


def _by_history(cuts: Sequence[JudgedCut], thresholds: Thresholds) -> dict[str, Outcome]:
    outcomes = defaultdict(list)
    for cut in cuts:
        outcomes[cut.history].append(outcome(cut, thresholds))
    return {name: _sum(found) for name, found in sorted(outcomes.items())}


def _pooled(cuts: Sequence[JudgedCut], thresholds: Thresholds) -> Outcome:
    return _sum(outcome(cut, thresholds) for cut in cuts)


def _sum(outcomes: Iterable[Outcome]) -> Outcome:
    found = list(outcomes)
    return Outcome(
        chars=sum(o.chars for o in found),
        freed=sum(o.freed for o in found),
        strings=sum(o.strings for o in found),
        lost=sum(o.lost for o in found),
        all_strings=sum(o.all_strings for o in found),
        all_lost=sum(o.all_lost for o in found),
    )


def _interval(by_history: Mapping[str, Outcome], seed: int) -> Interval:
    """Draw histories with replacement; a draw without any string says nothing."""
    draw = random.Random(seed)
    names = list(by_history)
    totals = [
        (sum(by_history[n].lost for n in drawn), sum(by_history[n].strings for n in drawn))
        for drawn in (draw.choices(names, k=len(names)) for _ in range(_ROUNDS if names else 0))
    ]
    losses = sorted(lost / strings for lost, strings in totals if strings)
    if not losses:
        return (0.0, 1.0)
    return losses[int(0.05 * len(losses))], losses[max(0, int(0.95 * len(losses)) - 1)]


def _loss(total: Outcome) -> float:
    return _share(total.lost, total.strings)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
