"""What is compared: each strategy turns one sample into a savings-loss curve."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentscope.classifier import BinaryQuestion

from agentscope_compaction.core.options import CompactionOptions
from agentscope_compaction.models.embedded import EmbeddedDecisionModel
from agentscope_compaction.models.embedded.weights import Weights
from benchmarks.kit.curves import Curve, Masks, blank, curve, limits, stubs
from benchmarks.kit.histories import Sample

__all__ = ["OURS", "RECENCY", "Answers", "ask", "strategies"]

RECENCY = "mask oldest (keep newest N)"
OURS = "embedded, facts 0.2"
PLAIN = CompactionOptions()
FACTS = CompactionOptions(facts_ratio=0.2)
BARE = CompactionOptions(truncate_head_chars=0)


@dataclass(frozen=True, slots=True)
class Answers:
    """The embedded model's answers about one sample, by output."""

    call: list[float]
    result: list[float]
    facts: list[list[str]]


def ask(sample: Sample, weights: Weights, state: dict[str, Any] | None = None) -> Answers:
    """Ask the embedded model about every recognised pair; others count as kept."""
    model = EmbeddedDecisionModel(weights=weights)
    question = BinaryQuestion()
    asked = {f"{q}_{k}": question for k in sample.keys if k for q in ("call", "result")}
    found = model.explain(state or sample.state, asked)
    nothing = {"probability": 1.0, "facts": []}
    results = [found.get(f"result_{k}", nothing) for k in sample.keys]
    calls = [found.get(f"call_{k}", nothing) for k in sample.keys]
    return Answers(
        [c["probability"] for c in calls],
        [r["probability"] for r in results],
        [r["facts"] for r in results],
    )


def by_expected_loss(chances: Sequence[float], masks: Masks) -> list[int]:
    """The package's order for ``target_tokens``: expected loss per freed character."""
    order = range(len(chances))
    return sorted(order, key=lambda n: (chances[n] / max(1, masks.freed[n]), n))


def _oracle(sample: Sample, masks: Masks) -> list[int]:
    """Outputs that nothing needs first; then fewest strings per character."""
    lost = [1e-9] * len(sample.outputs)
    for number, requirement in enumerate(sample.requirements):
        for holder in requirement.holders:
            if number not in masks.survivors[holder]:
                lost[holder] += 1 / len(requirement.holders)
    return by_expected_loss(lost, masks)


def strategies(answers: Mapping[int, Answers]) -> dict[str, Callable[[Sample], Curve]]:
    """Every strategy by name; ``answers`` are the embedded model's, by ``id`` of the sample."""

    def oldest(sample: Sample) -> Curve:
        return curve(sample, blank(sample), range(len(sample.outputs)))

    def largest(sample: Sample) -> Curve:
        masks = blank(sample)
        return curve(sample, masks, by_expected_loss([1.0] * len(sample.outputs), masks))

    def constant(options: CompactionOptions) -> Callable[[Sample], Curve]:
        def run(sample: Sample) -> Curve:
            masks = stubs(sample, options)
            return curve(sample, masks, by_expected_loss([1.0] * len(sample.outputs), masks))

        return run

    def embedded(options: CompactionOptions) -> Callable[[Sample], Curve]:
        def run(sample: Sample) -> Curve:
            masks = stubs(sample, options)
            order = by_expected_loss(answers[id(sample)].result, masks)
            return curve(sample, masks, order)

        return run

    def oracle(options: CompactionOptions) -> Callable[[Sample], Curve]:
        def run(sample: Sample) -> Curve:
            masks = stubs(sample, options)
            return curve(sample, masks, _oracle(sample, masks))

        return run

    return {
        RECENCY: oldest,
        "mask largest": largest,
        "head and tail of each": limits,
        "constant judge": constant(PLAIN),
        "constant judge, facts 0.2": constant(FACTS),
        "embedded, no facts": embedded(PLAIN),
        "embedded, no facts, no head": embedded(BARE),
        OURS: embedded(FACTS),
        "oracle, no facts": oracle(PLAIN),
        "oracle, facts 0.2": oracle(FACTS),
    }
