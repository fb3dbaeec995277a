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

from agentscope_compaction.models.embedded.structure import RELEASES
from benchmarks.curves import Curve, at, auc, interval
from benchmarks.fit_embedded import folds
from benchmarks.histories import Sample, load
from benchmarks.picture import line_chart
from benchmarks.strategies import OURS, RECENCY, Answers, ask, strategies

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


def question_table(samples: Sequence[Sample], answers: dict[int, Answers]) -> list[str]:
    """AUC per question: pooled, and averaged over samples that have both classes."""
    rows = ["| question | AUC pooled | AUC, mean over samples |", "|---|--:|--:|"]
    for question in ("result", "call"):
        truths = [
            s.needed
            if question == "result"
            else [a or b for a, b in zip(s.needed, s.input_needed, strict=True)]
            for s in samples
        ]
        scores = [getattr(answers[id(s)], question) for s in samples]
        pooled = auc([x for row in scores for x in row], [y for row in truths for y in row])
        each = [a for x, y in zip(scores, truths, strict=True) if (a := auc(x, y)) is not None]
        rows.append(f"| {question} | {pooled or 0:.3f} | {fmean(each):.3f} ({len(each)}) |")
    return rows


def structure_table(samples: Sequence[Sample], answers: dict[int, Answers]) -> list[str]:
    """The record of each structural fact: of what it released, how much was needed later."""
    fired: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    freed: Counter[str] = Counter()
    for sample in samples:
        alone = {h for r in sample.requirements for h in r.holders[-1:]}
        for place, facts in enumerate(answers[id(sample)].facts):
            if facts:
                fired[facts[0]] += 1
                freed[facts[0]] += len(sample.outputs[place])
                wrong[facts[0]] += place in alone
    rows = ["| fact | releases | times | needed | characters |", "|---|---|--:|--:|--:|"]
    for fact, times in sorted(fired.items()):
        kind = "yes" if fact in RELEASES else "keeps"
        rows.append(f"| {fact} | {kind} | {times} | {wrong[fact]} | {freed[fact]:,} |")
    return rows


def operating_point(samples: Sequence[Sample], answers: dict[int, Answers]) -> list[str]:
    """At threshold 0.5: needed outputs kept, and the tools of those that were not."""
    kept = total = 0
    tools: Counter[str] = Counter()
    for sample in samples:
        for place, needed in enumerate(sample.needed):
            if needed:
                total += 1
                good = answers[id(sample)].result[place] >= 0.5
                kept += good
                tools[sample.tools[place]] += not good
    missed = ", ".join(f"{tool} {n}" for tool, n in tools.most_common() if n) or "none"
    return [f"Needed outputs kept whole at 0.5: {kept} of {total}; false drops by tool: {missed}."]


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
        *question_table(samples, answers),
        "",
        *operating_point(samples, answers),
        "",
        *structure_table(samples, answers),
        "",
    ]
    return "\n".join(lines), picture(curves, samples)


def main() -> None:
    """Measure, print, and write the files if asked."""
    arguments = argparse.ArgumentParser(description="Savings-loss curves on real histories.")
    arguments.add_argument("--out", type=Path, help="folder for quality.md and quality.svg")
    arguments.add_argument("--date", default="undated")
    options = arguments.parse_args()
    text, drawing = report(load(("merged", "split")), options.date)
    print(text)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "quality.md").write_text(text, "utf-8")
        (options.out / "quality.svg").write_text(drawing, "utf-8")


if __name__ == "__main__":
    main()
