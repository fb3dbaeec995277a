"""Savings-loss curves on real histories: ``python -m benchmarks.quality [--out docs/quality]``.

Loss is the share of strong strings (URLs, paths, ids, long numbers, runs of 40 characters) that
only outputs before the cut held, that the rest of the history uses, and that are gone. Savings
are characters of the whole history. The embedded model is asked with weights fitted on all other
histories (leave one history out). Two strategies are compared at equal savings, on the samples
where both reach them.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from benchmarks.fit_embedded import folds
from benchmarks.kit.answers import answers_section, public_path
from benchmarks.kit.curves import Curve, at, interval
from benchmarks.kit.histories import Sample, load
from benchmarks.kit.picture import line_chart
from benchmarks.kit.strategies import OURS, RECENCY, ask, strategies

LEVELS = (0.2, 0.3, 0.4)
SEED = 20261202
Curves = dict[str, list[Curve]]


def losses(
    curves: Curves, samples: Sequence[Sample], name: str, level: float, names: Sequence[str]
) -> tuple[float, float, float]:
    """Strings lost by a strategy and by recency, and their number, where both reach a level."""
    ours = theirs = total = 0.0
    times = Counter(names)
    for sample, mine, base in zip(samples, curves[name], curves[RECENCY], strict=True):
        a, b = at(mine, level), at(base, level)
        if a is not None and b is not None and times[sample.name]:
            ours += a * times[sample.name]
            theirs += b * times[sample.name]
            total += len(sample.requirements) * times[sample.name]
    return ours, theirs, total


def mean_loss(
    curves: Curves, samples: Sequence[Sample], name: str, names: Sequence[str]
) -> tuple[float, float]:
    """Mean share lost over the levels, by a strategy and by recency on the same samples."""
    found = [losses(curves, samples, name, level, names) for level in LEVELS]
    shares = [(a / n, b / n) for a, b, n in found if n]
    if not shares:
        return float("nan"), float("nan")
    return fmean(a for a, _ in shares), fmean(b for _, b in shares)


def pooled_table(curves: Curves, samples: Sequence[Sample]) -> list[str]:
    """One line per strategy."""
    names = [s.name for s in samples]
    rows = [
        "| strategy | lost at 20 % | 30 % | 40 % | mean | recency, same samples | ratio (90 %) |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name in curves:
        cells = []
        for level in LEVELS:
            ours, _, total = losses(curves, samples, name, level, sorted(set(names)))
            cells.append(f"{ours / total:.3f}" if total else "–")
        mine, base = mean_loss(curves, samples, name, sorted(set(names)))

        def ratio(drawn: Sequence[str], name: str = name) -> float:
            a, b = mean_loss(curves, samples, name, drawn)
            return a / b if b else float("nan")

        low, high = interval(names, ratio, SEED, 400)
        rows.append(
            f"| {name} | {' | '.join(cells)} | {mine:.3f} | {base:.3f} | "
            f"{mine / base:.2f} ({low:.2f}–{high:.2f}) |"
        )
    return rows


def domain_table(curves: Curves, samples: Sequence[Sample], by: str) -> list[str]:
    """Strings lost per domain or history, summed over the levels: recency against ours."""
    groups = defaultdict(set)
    for sample in samples:
        groups[getattr(sample, by)].add(sample.name)
    rows = [
        f"| {by} | strings looked for | lost: recency | lost: ours | lost: oracle |",
        "|---|--:|--:|--:|--:|",
    ]
    for group, names in sorted(groups.items()):
        found = [losses(curves, samples, OURS, level, sorted(names)) for level in LEVELS]
        best = [losses(curves, samples, "oracle, facts 0.2", x, sorted(names)) for x in LEVELS]
        total = sum(n for _, _, n in found)
        if total:
            ours, base = sum(a for a, _, _ in found), sum(b for _, b, _ in found)
            least = sum(a for a, _, _ in best)
            rows.append(f"| {group} | {total:.0f} | {base:.1f} | {ours:.1f} | {least:.1f} |")
    return rows


def picture(curves: Curves, samples: Sequence[Sample]) -> str:
    """The pooled curves; a sample that cannot save more stays where it ends."""
    total = sum(len(s.requirements) for s in samples)
    grid = [n / 50 for n in range(31)]
    lines = {}
    for name, found in curves.items():
        lines[name] = [
            (x, sum(p[-1][1] if (y := at(p, x)) is None else y for p in found) / total)
            for x in grid
        ]
    title = "Later-used strings lost, by characters saved (leave one history out)"
    return line_chart(title, ("characters saved", "strings lost"), lines, [RECENCY, OURS])


def report(samples: Sequence[Sample], date: str) -> tuple[str, str]:
    """The Markdown report and the picture."""
    weights = folds(samples)
    answers = {id(s): ask(s, weights[s.name]) for s in samples}
    curves = {n: [run(s) for s in samples] for n, run in strategies(answers).items()}
    strings = sum(len(s.requirements) for s in samples)
    lines = [
        "# Decision quality on real histories",
        "",
        f"Made by `python -m benchmarks.quality`, {date}, seed {SEED}: {len(samples)} samples of "
        f"{len({s.name for s in samples})} histories, {strings} strings.",
        "",
        *(__doc__ or "").split("\n")[2:-1],
        "",
        "![savings and loss](quality.svg)",
        "",
        "## Pooled",
        "",
        *pooled_table(curves, samples),
        "",
        "## By domain and by history (sum over 20, 30 and 40 %)",
        "",
        *domain_table(curves, samples, "domain"),
        "",
        *domain_table(curves, samples, "name"),
        "",
        "## Answers",
        "",
        *answers_section(samples, answers, weights),
        "",
        *(public_path(samples, weights, level) for level in LEVELS),
        "",
    ]
    return "\n".join(lines), picture(curves, samples)


def main() -> None:
    """Measure, print, and write the files if asked."""
    arguments = argparse.ArgumentParser(description="Savings-loss curves on real histories.")
    arguments.add_argument("--out", type=Path, help="folder for quality.md and quality.svg")
    arguments.add_argument("--date", default="undated")
    options = arguments.parse_args()
    samples = load(("merged", "split"))
    if not samples:
        print("no labelled histories found; see benchmarks/kit/histories.py")
        return
    text, drawing = report(samples, options.date)
    print(text)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "quality.md").write_text(text, "utf-8")
        (options.out / "quality.svg").write_text(drawing, "utf-8")


if __name__ == "__main__":
    main()
