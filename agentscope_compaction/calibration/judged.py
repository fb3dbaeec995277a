"""One cut history with a model's answers, reduced to what thresholds need: no text is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentscope_compaction.calibration.cuts import Cut
from agentscope_compaction.calibration.uses import Use, find_uses, holds
from agentscope_compaction.core.decisions import Answer, decide
from agentscope_compaction.core.options import CompactionOptions
from agentscope_compaction.core.pairing import Pair, find_pairs
from agentscope_compaction.core.rules import removal_unsafe, signed_messages
from agentscope_compaction.core.stubs import Recovery, stub_text
from agentscope_compaction.core.types import Action, Thresholds
from agentscope_compaction.tokens import texts_of

__all__ = ["JudgedCall", "JudgedCut", "Need", "Outcome", "judged_cut", "outcome"]

_NEVER_CUT = -1


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """A candidate: both answers, and the characters that either action frees."""

    answer: Answer
    freed_cut: int
    """Freed by ``drop_result``; 0 where the stub would not be shorter."""
    freed_removed: int
    """Freed by ``drop_call``; as ``freed_cut`` where removal is unsafe."""
    removable: bool


@dataclass(frozen=True, slots=True)
class Need:
    """A string that was used later: (call, survives its ``drop_result``) for every holder."""

    holders: tuple[tuple[int, bool], ...]
    """Position in ``JudgedCut.calls``, or -1 for a holder that nothing cuts."""
    only_outputs: bool


@dataclass(frozen=True, slots=True)
class JudgedCut:
    """What one cut of one history contributes to a curve."""

    history: str
    model: str
    chars: int
    """Characters of all texts before the cut."""
    calls: tuple[JudgedCall, ...]
    needs: tuple[Need, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pair of thresholds would have done to one cut, as counts that add up over cuts."""

    chars: int
    freed: int
    strings: int
    lost: int
    """Of the strings only outputs held."""
    all_strings: int
    all_lost: int
    """Of these and the strings that tool inputs held too."""


def judged_cut(
    history: str,
    cut: Cut,
    answers: Mapping[str, Answer],
    options: CompactionOptions,
    model: str = "",
) -> JudgedCut:
    """Label a cut and join the labels with a model's answers.

    Args:
        history: Name of the history; whole histories are drawn when intervals are made.
        cut: The history in two parts.
        answers: Answers by decision id; calls without one count as kept.
        options: What stubs look like.
        model: Who answered.
    """
    pairs = [p for p in find_pairs(cut.past, options.reused_ids).pairs if p.id in answers]
    stubs = [_stub(pair, options) for pair in pairs]
    signed = signed_messages(cut.past)
    calls = [
        _call(pair, stub, answers[pair.id], removable=not removal_unsafe(pair, signed))
        for pair, stub in zip(pairs, stubs, strict=True)
    ]
    number = {pair.result_at: n for n, pair in enumerate(pairs)}
    number |= {pair.call_at: n for n, pair in enumerate(pairs)}
    needs = [_need(use, number, stubs) for use in find_uses(cut.past, cut.future)]
    chars = sum(map(len, texts_of(cut.past)))
    return JudgedCut(history, model, chars, tuple(calls), tuple(needs))


def outcome(cut: JudgedCut, thresholds: Thresholds) -> Outcome:
    """Count what these thresholds free and lose in one cut."""
    actions = [decide(call.answer, thresholds)[0] for call in cut.calls]
    actions = [
        Action.DROP_RESULT if action is Action.DROP_CALL and not call.removable else action
        for action, call in zip(actions, cut.calls, strict=True)
    ]
    freed = 0
    for call, action in zip(cut.calls, actions, strict=True):
        if action is not Action.KEEP:
            removed = action is Action.DROP_CALL
            freed += call.freed_removed if removed else call.freed_cut
    gone = [not any(_keeps(h, actions, cut.calls) for h in need.holders) for need in cut.needs]
    outputs = [lost for lost, need in zip(gone, cut.needs, strict=True) if need.only_outputs]
    return Outcome(cut.chars, freed, len(outputs), sum(outputs), len(gone), sum(gone))


def _keeps(
    holder: tuple[int, bool], actions: Sequence[Action], calls: Sequence[JudgedCall]
) -> bool:
    number, survives = holder
    if number == _NEVER_CUT or actions[number] is Action.KEEP:
        return True
    if actions[number] is Action.DROP_CALL:
        return False
    return survives or not calls[number].freed_cut


def _stub(pair: Pair, options: CompactionOptions) -> str:
    return stub_text(pair.text or "", Recovery(pair.call_id), options)


def _call(pair: Pair, stub: str, answer: Answer, *, removable: bool) -> JudgedCall:
    before = len(pair.text or "")
    cut = max(0, before - len(stub))
    removed = before + len(str(pair.call["input"])) if removable else cut
    return JudgedCall(answer, cut, removed, removable)


def _need(use: Use, number: Mapping[tuple[int, int], int], stubs: Sequence[str]) -> Need:
    holders = []
    for holder in use.holders:
        place = number.get(holder.spot, _NEVER_CUT)
        # A cut leaves the input alone, so what an input holds survives it.
        survives = holder.is_input or place == _NEVER_CUT or holds(stubs[place], use)
        holders.append((place, survives))
    return Need(tuple(holders), use.only_outputs)
