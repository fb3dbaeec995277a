"""Fits the embedded model's weights: ``python -m benchmarks.fit_embedded [--write]``.

A logistic regression on calls that no structural fact decides, drawn towards prior weights (what
earlier measurements on other sessions and plain sense say), because few outputs are needed later
and they sit in few histories. Histories weigh by the square root of their calls, classes equally.
How hard to draw is chosen by leave-one-history-out AUC, averaged over histories. The bias is then
moved so that nearly all needed training calls score 0.5 or more (``KEPT``). Nothing is drawn at
random, so the same data give the same file.
"""

from __future__ import annotations

import argparse
import pprint
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from agentscope_compaction.models.embedded.features import FEATURES, features_of
from agentscope_compaction.models.embedded.index import prepare
from agentscope_compaction.models.embedded.structure import facts_of, verdict_of
from agentscope_compaction.models.embedded.weights import Weights
from benchmarks.kit.curves import auc
from benchmarks.kit.histories import Sample, load

Array = Any
"""A numpy array; numpy is needed here only."""

RESULT_PRIOR = {
    "goal_overlap": 0.5,
    "tail_overlap": 0.8,
    "task_overlap": 0.2,
    "only_copy": 0.5,
    "ids_in_tail": 0.3,
    "input_in_tail": 0.2,
    "came_back": 0.2,
    "recency": 0.3,
    "reread": -0.3,
    "edited": -0.1,
    "error": -0.2,
    "plans": -0.2,
    "reads": 0.1,
}
CALL_PRIOR = {
    "goal_overlap": 0.3,
    "tail_overlap": 0.4,
    "task_overlap": 0.2,
    "input_in_tail": 0.4,
    "input_only": 0.5,
    "recency": 0.4,
    "writes": 0.5,
    "plans": -0.3,
    "error": -0.2,
}
"""Prior weights per standard deviation of a feature; 0 where missing."""

PULLS = (10.0, 30.0, 100.0, 300.0, 1000.0)
KEPT = {"result": 0.85, "call": 0.97}
"""Share of needed training calls that must score 0.5 or more; removing a call loses its facts."""
_LEAST_SPREAD = 0.1
"""A feature that hardly varies in training must not explode on a history where it does."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The scored calls of one sample."""

    name: str
    values: Array
    result: Array
    call: Array
    weight: Array


def rows_of(sample: Sample) -> Rows:
    """Measure the calls of a sample that the scorer decides."""
    index = prepare(sample.state)
    picked = [
        (index.calls[key], needed, needed or by_input)
        for key, needed, by_input in zip(
            sample.keys, sample.needed, sample.input_needed, strict=True
        )
        if key and verdict_of(facts_of(index.calls[key], index)) is None
    ]
    features = [[features_of(call, index)[f] for f in FEATURES] for call, _, _ in picked]
    return Rows(
        sample.name,
        np.array(features).reshape(len(picked), len(FEATURES)),
        np.array([float(y) for _, y, _ in picked]),
        np.array([float(y) for _, _, y in picked]),
        np.full(len(picked), len(picked) ** -0.5 if picked else 1.0),
    )


def fit(rows: Sequence[Rows], question: str, pull: float) -> dict[str, float]:
    """Fit one question's weights on some samples, in units of the raw features."""
    values = np.concatenate([r.values for r in rows])
    wanted = np.concatenate([getattr(r, question) for r in rows])
    weight = np.concatenate([r.weight for r in rows])
    middle, spread = values.mean(0), np.maximum(values.std(0), _LEAST_SPREAD)
    scaled = np.c_[np.ones(len(values)), (values - middle) / spread]
    ratio = (weight * (1 - wanted)).sum() / max((weight * wanted).sum(), 1e-9)
    weight = weight * np.where(wanted > 0, ratio, 1.0)
    weight *= len(weight) / weight.sum()
    prior = RESULT_PRIOR if question == "result" else CALL_PRIOR
    start = np.array([0.0, *(prior.get(f, 0.0) for f in FEATURES)])
    found = _newton(scaled, wanted, weight, start, pull)
    scores = np.sort((scaled @ found)[wanted > 0])
    found[0] -= scores[int((1 - KEPT[question]) * len(scores))]
    slopes = found[1:] / spread
    bias = found[0] - (slopes * middle).sum()
    return {
        "bias": round(float(bias), 3),
        **{f: round(float(s), 3) for f, s in zip(FEATURES, slopes, strict=True)},
    }


def _newton(scaled: Array, wanted: Array, weight: Array, prior: Array, pull: float) -> Array:
    """The most likely weights, with a normal prior of precision ``pull`` around ``prior``."""
    found = prior.copy()
    precision = np.full(scaled.shape[1], pull)
    precision[0] = 1e-3
    for _ in range(60):
        chance = 1 / (1 + np.exp(-np.clip(scaled @ found, -30, 30)))
        slope = scaled.T @ (weight * (chance - wanted)) + precision * (found - prior)
        curved = weight * chance * (1 - chance) + 1e-9
        step = np.linalg.solve((scaled * curved[:, None]).T @ scaled + np.diag(precision), slope)
        found -= np.clip(step, -3, 3)
        if np.abs(step).max() < 1e-8:
            break
    return found


def scores(values: Array, weights: dict[str, float]) -> list[float]:
    """Scores in log odds."""
    slopes = np.array([weights[f] for f in FEATURES])
    return [float(s) for s in values @ slopes + weights["bias"]]


def left_out(rows: Sequence[Rows], question: str, pull: float) -> tuple[float, list[float]]:
    """Mean AUC over samples, each scored by weights that never saw its history; and all AUCs."""
    found = []
    for name in sorted({r.name for r in rows}):
        weights = fit([r for r in rows if r.name != name], question, pull)
        for row in rows:
            if row.name == name:
                value = auc(scores(row.values, weights), list(getattr(row, question) > 0))
                found += [value] if value is not None else []
    return fmean(found), found


def best_pull(rows: Sequence[Rows], question: str, say: Callable[[str], None]) -> float:
    """How hard to draw towards the prior, by leave-one-history-out AUC."""
    means = {pull: left_out(rows, question, pull)[0] for pull in PULLS}
    for pull, mean in means.items():
        say(f"{question}: pull {pull:g}: left-out AUC {mean:.3f}")
    return max(PULLS, key=lambda pull: (round(means[pull], 3), pull))


def folds(samples: Sequence[Sample]) -> dict[str, Weights]:
    """Weights per history, fitted (pull included) on all other histories."""
    rows = [rows_of(s) for s in samples if s.shape == "merged"]
    found = {}
    for name in sorted({r.name for r in rows}):
        rest = [r for r in rows if r.name != name]
        pulls = {q: best_pull(rest, q, lambda _: None) for q in ("result", "call")}
        found[name] = Weights(
            result=fit(rest, "result", pulls["result"]), call=fit(rest, "call", pulls["call"])
        )
    return found


def write(weights: Weights, path: Path) -> None:
    """Write the weights as a module."""
    body = pprint.pformat(dict(weights.result), sort_dicts=False, indent=4)
    call = pprint.pformat(dict(weights.call), sort_dicts=False, indent=4)
    note = "".join(
        f"\n    {line!r}" for line in textwrap.wrap(weights.note + " ", 88, drop_whitespace=False)
    )
    path.write_text(
        '"""The shipped weights; written by ``python -m benchmarks.fit_embedded``, not by hand."""'
        "\n\nfrom __future__ import annotations\n\n"
        "from agentscope_compaction.models.embedded.weights import Weights\n\n"
        '__all__ = ["FITTED"]\n\n'
        f"_RESULT = {body}\n\n_CALL = {call}\n\n"
        f"_NOTE = ({note}\n)\n\n"
        "FITTED = Weights(result=_RESULT, call=_CALL, note=_NOTE)\n"
        '"""What ``EmbeddedDecisionModel()`` uses; ``FITTED.note`` says how it was found."""\n',
        "utf-8",
    )


def main() -> None:
    """Fit on all histories, report what left-out histories say, write if asked."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--write", action="store_true", help="replace the shipped weights")
    arguments.add_argument("--date", default="", help="date to put into the training note")
    options = arguments.parse_args()
    rows = [rows_of(s) for s in load()]
    if not rows:
        print("no labelled histories found; see benchmarks/kit/histories.py")
        return
    found: dict[str, dict[str, float]] = {}
    notes = []
    for question in ("result", "call"):
        pull = best_pull(rows, question, print)
        mean, each = left_out(rows, question, pull)
        found[question] = fit(rows, question, pull)
        notes.append(f"{question} AUC {mean:.2f} over {len(each)} samples (pull {pull:g})")
    histories = len({r.name for r in rows})
    note = (
        f"Fitted{' ' * bool(options.date)}{options.date} on {sum(len(r.result) for r in rows)} "
        f"calls of {histories} published histories, each cut at three places; leave-one-history-"
        f"out: {', '.join(notes)}. Bias: of the needed training calls, {KEPT['result']:.0%} "
        f"(result) and {KEPT['call']:.0%} (call) score 0.5 or more."
    )
    print(note)
    if options.write:
        target = Path(__file__).resolve().parent.parent / "agentscope_compaction"
        path = target / "models" / "embedded" / "fitted.py"
        write(Weights(result=found["result"], call=found["call"], note=note), path)
        print(f"wrote {path.name}; run ruff format")


if __name__ == "__main__":
    main()
