"""Savings-loss curves: mask outputs in some order, and see which later-used strings are gone."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agentscope_compaction.core.options import CompactionOptions
from agentscope_compaction.core.stubs import Recovery, stub_text
from benchmarks.kit.histories import Sample, holds, normal

__all__ = ["Curve", "Masks", "blank", "curve", "interval", "limits", "stubs"]

Curve = list[tuple[float, float]]
"""Points (share of characters saved, strings lost), from (0, 0) on."""
_BLANK = "[old output omitted]"


@dataclass(frozen=True, slots=True)
class Masks:
    """What stands in for each output when it is masked."""

    freed: list[int]
    """Characters saved; 0 where masking would save nothing and is not done."""
    survivors: list[frozenset[int]]
    """Per output: the requirements its replacement still meets."""


def _masks(sample: Sample, texts: Sequence[str]) -> Masks:
    holds_of: list[frozenset[int]] = []
    by_output = defaultdict(list)
    for number, requirement in enumerate(sample.requirements):
        for holder in requirement.holders:
            by_output[holder].append(number)
    for place, text in enumerate(texts):
        plain = normal(text) if by_output[place] else ""
        holds_of.append(
            frozenset(n for n in by_output[place] if holds(plain, sample.requirements[n]))
        )
    freed = [max(0, len(o) - len(t)) for o, t in zip(sample.outputs, texts, strict=True)]
    return Masks(freed, holds_of)


def blank(sample: Sample) -> Masks:
    """What ten lines of one's own would do: a fixed note instead of the output."""
    return _masks(sample, [min(o, _BLANK, key=len) for o in sample.outputs])


def stubs(sample: Sample, options: CompactionOptions) -> Masks:
    """The stubs of this package; calls that are no candidates are left alone."""
    texts = []
    for key, call_id, output in zip(sample.keys, sample.call_ids, sample.outputs, strict=True):
        candidate = sample.state["calls"].get(key, {}).get("state") == "success"
        stub = stub_text(output, Recovery(call_id), options) if candidate else output
        texts.append(min(stub, output, key=len))
    return _masks(sample, texts)


def curve(sample: Sample, masks: Masks, order: Iterable[int]) -> Curve:
    """Mask outputs one after the other."""
    waiting = [set(r.holders) for r in sample.requirements]
    by_output = defaultdict(list)
    for number, requirement in enumerate(sample.requirements):
        for holder in requirement.holders:
            by_output[holder].append(number)
    points, saved, lost, size = [(0.0, 0.0)], 0, 0, sample.size
    for place in order:
        if not masks.freed[place]:
            continue
        saved += masks.freed[place]
        for number in by_output[place]:
            if number not in masks.survivors[place] and waiting[number]:
                waiting[number].discard(place)
                lost += not waiting[number]
        points.append((saved / size, float(lost)))
    return points


def limits(sample: Sample) -> Curve:
    """Head-and-tail truncation of every output, with ever shorter limits."""
    points = [(0.0, 0.0)]
    for limit in (20_000, 10_000, 5_000, 3_000, 2_000, 1_500, 1_000, 700, 500, 300, 150, 0):
        texts = [
            o if len(o) <= limit + 30 else o[: limit // 2] + "\n...\n" + o[len(o) - limit // 2 :]
            for o in sample.outputs
        ]
        masks = _masks(sample, texts)
        cut = {n for n, freed in enumerate(masks.freed) if freed}
        lost = sum(
            all(h in cut and n not in masks.survivors[h] for h in r.holders)
            for n, r in enumerate(sample.requirements)
        )
        points.append((sum(masks.freed) / sample.size, float(lost)))
    return sorted(points)


def at(points: Curve, saved: float) -> float | None:
    """Strings lost at a share of savings, between points linearly; None beyond the last."""
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        if x1 >= saved and x1 > x0:
            return y0 + (y1 - y0) * (saved - x0) / (x1 - x0)
    return None


def interval(
    names: Sequence[str], statistic: Callable[[Sequence[str]], float], seed: int, rounds: int = 1000
) -> tuple[float, float]:
    """A 90 % bootstrap interval of a statistic, drawing whole histories."""
    draw = random.Random(seed)
    unique = sorted(set(names))
    values = sorted(
        v
        for _ in range(rounds)
        if (v := statistic(draw.choices(unique, k=len(unique)))) == v  # NaN: nothing drawn
    )
    return values[int(0.05 * len(values))], values[int(0.95 * len(values)) - 1]


def auc(scores: Sequence[float], labels: Sequence[bool]) -> float | None:
    """The chance that a positive scores above a negative; None without one of either."""
    ranked = sorted(zip(scores, labels, strict=True))
    positives = sum(labels)
    negatives = len(labels) - positives
    if not positives or not negatives:
        return None
    total, place = 0.0, 0
    while place < len(ranked):
        end = place
        while end < len(ranked) and ranked[end][0] == ranked[place][0]:
            end += 1
        total += sum(y for _, y in ranked[place:end]) * (place + end + 1) / 2
        place = end
    return (total - positives * (positives + 1) / 2) / (positives * negatives)
