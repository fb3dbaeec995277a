"""How good the embedded model's answers are in themselves: tables for the quality report."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from agentscope_compaction.compact import compact_context
from agentscope_compaction.core.options import CompactionOptions
from agentscope_compaction.models.embedded import EmbeddedDecisionModel
from agentscope_compaction.models.embedded.structure import RELEASES
from agentscope_compaction.models.embedded.weights import Weights
from benchmarks.kit.curves import auc, stubs
from benchmarks.kit.histories import Sample, holds, normal, size_of, texts_of
from benchmarks.kit.strategies import FACTS, Answers, ask

__all__ = ["answers_section", "public_path"]


def answers_section(
    samples: Sequence[Sample], answers: Mapping[int, Answers], weights: Mapping[str, Weights]
) -> list[str]:
    """AUC, operating point, structural facts, flips and cost."""
    return [
        *_questions(samples, answers),
        "",
        *_operating_point(samples, answers),
        "",
        _flips(samples, answers, weights),
        "",
        *_structure(samples, answers),
    ]


def _questions(samples: Sequence[Sample], answers: Mapping[int, Answers]) -> list[str]:
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


def _operating_point(samples: Sequence[Sample], answers: Mapping[int, Answers]) -> list[str]:
    """What threshold 0.5 does, counting only outputs whose stub would be shorter."""
    kept = total = saved = size = lost = strings = 0
    tools: Counter[str] = Counter()
    for sample in samples:
        masks, chances = stubs(sample, FACTS), answers[id(sample)].result
        cut = {n for n, chance in enumerate(chances) if chance < 0.5 and masks.freed[n]}
        for place, needed in enumerate(sample.needed):
            if needed and masks.freed[place]:
                total += 1
                kept += place not in cut
                tools[sample.tools[place]] += place in cut
        saved += sum(masks.freed[n] for n in cut)
        size += sample.size
        strings += len(sample.requirements)
        lost += sum(
            all(h in cut and n not in masks.survivors[h] for h in r.holders)
            for n, r in enumerate(sample.requirements)
        )
    missed = ", ".join(f"{tool} {n}" for tool, n in tools.most_common() if n) or "none"
    return [
        f"At threshold 0.5 with facts 0.2, cutting outputs only: {saved / size:.1%} of all "
        f"characters saved, {lost} of {strings} strings lost, {kept} of {total} needed outputs "
        f"kept whole; false drops by tool: {missed}."
    ]


def _flips(
    samples: Sequence[Sample], answers: Mapping[int, Answers], weights: Mapping[str, Weights]
) -> str:
    """Decisions at 0.5 that change when a word of thanks is appended to the history."""
    changed = asked = 0
    started = time.perf_counter()
    for sample in samples:
        thanks = {"role": "user", "text": "Thanks, please go on."}
        state = {**sample.state, "conversation": [*sample.state["conversation"], thanks]}
        again = ask(sample, weights[sample.name], state)
        pairs = zip(answers[id(sample)].result, again.result, strict=True)
        changed += sum((a < 0.5) != (b < 0.5) for a, b in pairs)
        asked += len(again.result)
    cost = (time.perf_counter() - started) / asked * 1000
    return (
        f"A short user message appended to each history flips {changed} of {asked} decisions. "
        f"Asking both questions took {cost:.2f} ms per call."
    )


def _structure(samples: Sequence[Sample], answers: Mapping[int, Answers]) -> list[str]:
    """Of what each fact decided: how often a string that only outputs held was newest there."""
    fired: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    freed: Counter[str] = Counter()
    for sample in samples:
        newest = {max(r.holders) for r in sample.requirements}
        for place, facts in enumerate(answers[id(sample)].facts):
            if facts:
                fired[facts[0]] += 1
                freed[facts[0]] += len(sample.outputs[place])
                wrong[facts[0]] += place in newest
    rows = ["| fact | effect | times | needed later | characters |", "|---|---|--:|--:|--:|"]
    for fact, times in sorted(fired.items()):
        effect = "releases" if fact in RELEASES else "keeps"
        rows.append(f"| {fact} | {effect} | {times} | {wrong[fact]} | {freed[fact]:,} |")
    return rows


def public_path(samples: Sequence[Sample], weights: Mapping[str, Weights], level: float) -> str:
    """The same through ``compact_context`` itself, to a target in characters."""
    lost = total = reached = 0
    shares = []
    for sample in samples:
        target = int(sample.size * (1 - level))
        options = FACTS.model_dump() | {
            "keep_threshold": 1,
            "keep_call_threshold": 0,
            "preserve_recent_messages": 0,
            "target_tokens": target,
        }
        request: dict[str, Any] = {
            "messages": sample.messages,
            "goal": sample.goal,
            "eligible_tool_names": sorted(set(sample.tools)),
            "options": CompactionOptions.model_validate(options),
        }
        model = EmbeddedDecisionModel(weights=weights[sample.name])
        proposal = asyncio.run(compact_context(request, model, token_counter=size_of))
        after = size_of(proposal.messages)
        if after > target:
            continue
        reached += 1
        shares.append(1 - after / sample.size)
        text = normal("\n".join(texts_of(proposal.messages)))
        lost += sum(not holds(text, r) for r in sample.requirements)
        total += len(sample.requirements)
    return (
        f"Through `compact_context` with `target_tokens` at {level:.0%} savings: {reached} of "
        f"{len(samples)} samples reach it (mean {fmean(shares):.1%} saved), "
        f"{lost} of {total} strings lost."
    )
