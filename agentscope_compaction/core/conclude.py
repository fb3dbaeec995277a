"""From answers to a proposal: actions, the target, the new history and its statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agentscope_compaction.core.decisions import Answer, decide, has_no_signal
from agentscope_compaction.core.jsontext import compact, digest, sized
from agentscope_compaction.core.options import CallRemoval, CompactionOptions
from agentscope_compaction.core.pairing import Pair
from agentscope_compaction.core.plan import Inspection, Plan
from agentscope_compaction.core.rebuild import Edit, rebuild
from agentscope_compaction.core.rules import removal_unsafe, signed_messages
from agentscope_compaction.core.stubs import Recovery, stub_text
from agentscope_compaction.core.types import (
    Action,
    CallDecision,
    CompactionProposal,
    DecisionReason,
    JSONObject,
    ProposalReason,
    Thresholds,
)

__all__ = ["Counter", "Evidence", "conclude"]

Counter = Callable[[list[JSONObject]], int]
"""Tokens of a history."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the asking brought: answers by decision id (missing = unanswered), and who answered."""

    answers: Mapping[str, Answer]
    thresholds: Thresholds
    model: str | None = None


class _Verdict(NamedTuple):
    """One pair's fate; ``text`` is the stub of a ``drop_result`` that is shorter."""

    pair: Pair
    action: Action
    reason: DecisionReason
    answer: Answer | None = None
    text: str | None = None

    @property
    def acts(self) -> bool:
        return self.action is Action.DROP_CALL or self.text is not None

    @property
    def freed(self) -> int:
        """Characters this verdict frees, if it acts."""
        before = len(self.pair.text or "")
        if self.action is Action.DROP_CALL:
            return before + len(self.pair.call["input"])
        return before - len(self.text) if self.text is not None else 0

    def kept(self, reason: DecisionReason) -> _Verdict:
        return self._replace(action=Action.KEEP, reason=reason, text=None)


def conclude(
    plan: Plan, evidence: Evidence, count: Counter, tokens_before: int
) -> CompactionProposal:
    """Build the proposal.

    Args:
        plan: What was asked.
        evidence: What was answered, with the thresholds to hold the answers against.
        count: Counts a history's tokens; called once, or about log2(candidates) times with
            ``target_tokens``.
        tokens_before: That count of the snapshot.
    """
    inspection = plan.inspection
    request = inspection.snapshot.request
    target = request.options.target_tokens
    verdicts, reason = _judge(inspection, evidence), ProposalReason.NO_CHANGE
    if target is not None and tokens_before <= target:
        verdicts, reason = _keep_all(verdicts, inspection, DecisionReason.WITHIN_TARGET)
    elif request.options.require_signal and _asked_in_vain(inspection, evidence):
        verdicts, reason = _keep_all(verdicts, inspection, DecisionReason.NO_SIGNAL)
    elif target is not None:
        verdicts = _until_target(verdicts, inspection, count, target)
    edits = _edits(verdicts)
    messages = rebuild(request.messages, edits)
    unchanged = (inspection.snapshot.chars, inspection.snapshot.digest)
    chars_after, digest_after = sized(messages) if edits else unchanged
    freed = inspection.snapshot.chars - chars_after
    if edits and freed < request.options.min_saved_chars:
        verdicts, reason = _keep_all(verdicts, inspection, DecisionReason.BELOW_MINIMUM)
        edits, messages = [], rebuild(request.messages, ())
        chars_after, digest_after = unchanged
    changed = bool(edits)
    if changed:
        reason = ProposalReason.COMPACTED
    elif not inspection.candidates:
        reason = ProposalReason.NO_CANDIDATES
    stats = _stats(plan, evidence, messages, chars_after)
    stats["tokens_before"] = tokens_before
    stats["tokens_after"] = count(messages) if changed else tokens_before
    return CompactionProposal(
        messages=messages,
        changed=changed,
        reason=reason,
        decisions=[_decision(verdict) for verdict in verdicts],
        stats=stats,
        proposal_id=_proposal_id(inspection, evidence, digest_after),
        snapshot_digest=inspection.snapshot.digest,
        observation=plan.observation,
    )


def _judge(inspection: Inspection, evidence: Evidence) -> list[_Verdict]:
    request = inspection.snapshot.request
    signed = signed_messages(request.messages)
    verdicts = []
    for pair in inspection.pairing.pairs:
        rule, holder = inspection.rules.get(pair.id), inspection.duplicates.get(pair.id)
        answer = evidence.answers.get(pair.id)
        if rule is not None:
            verdict = _Verdict(pair, Action.KEEP, rule)
        elif holder is not None:
            verdict = _Verdict(pair, Action.DROP_RESULT, DecisionReason.DUPLICATE)
        elif answer is None:
            verdict = _Verdict(pair, Action.KEEP, DecisionReason.UNANSWERED)
        else:
            verdict = _Verdict(pair, *decide(answer, evidence.thresholds), answer)
        verdict = _without_unsafe_removal(
            verdict,
            request.options.call_removal,
            host=pair.id in inspection.unremovable,
            provider=removal_unsafe(pair, signed),
        )
        if verdict.action is Action.DROP_RESULT:
            recovery = Recovery(
                call_id=pair.call_id,
                source_ref=request.source_refs.get(pair.call_id),
                holder=holder.call_id if holder else None,
            )
            verdict = _with_stub(verdict, recovery, request.options)
        verdicts.append(verdict)
    return verdicts


def _without_unsafe_removal(
    verdict: _Verdict, removal: CallRemoval, *, host: bool, provider: bool
) -> _Verdict:
    """Cut the output instead where the options, the host or provider data forbid removal."""
    if verdict.action is not Action.DROP_CALL:
        return verdict
    if removal is CallRemoval.NEVER:
        return verdict._replace(action=Action.DROP_RESULT)
    if host or (provider and removal is not CallRemoval.ALWAYS):
        return verdict._replace(action=Action.DROP_RESULT, reason=DecisionReason.REMOVAL_UNSAFE)
    return verdict


def _with_stub(verdict: _Verdict, recovery: Recovery, options: CompactionOptions) -> _Verdict:
    """Attach the stub if it is shorter than the output it replaces, as text and as JSON.

    A note's quotes and line breaks are escaped in JSON, so a stub a few characters shorter than
    its output could still make the history grow.
    """
    before = verdict.pair.text or ""
    text = stub_text(before, recovery, options)
    if len(text) >= len(before):
        return verdict
    size = len(compact(text))
    shorter = size < len(before) or size < len(compact(before))  # JSON is never the shorter form
    return verdict._replace(text=text) if shorter else verdict


def _asked_in_vain(inspection: Inspection, evidence: Evidence) -> bool:
    answers = list(evidence.answers.values())
    asked = len(inspection.asked) + len(inspection.known)  # whenever that was
    return has_no_signal(answers, evidence.thresholds, asked=asked)


def _keep_all(
    verdicts: Sequence[_Verdict], inspection: Inspection, reason: DecisionReason
) -> tuple[list[_Verdict], ProposalReason]:
    """Keep every candidate, for one reason; protected pairs keep theirs."""
    kept = [v if v.pair.id in inspection.rules else v.kept(reason) for v in verdicts]
    return kept, ProposalReason(reason.value)


def _until_target(
    verdicts: Sequence[_Verdict], inspection: Inspection, count: Counter, target: int
) -> list[_Verdict]:
    """Act in order of expected loss per freed character until the history fits.

    The shortest sufficient prefix of that order is found by bisection, so the count is taken a
    logarithmic number of times instead of after every step.
    """
    messages = inspection.snapshot.request.messages
    position = {v.pair.id: n for n, v in enumerate(verdicts)}
    released = sorted(
        (v for v in verdicts if v.acts),
        key=lambda v: (_loss(v), -v.freed, -position[v.pair.id]),
    )

    def fits(acting: int) -> bool:
        return count(rebuild(messages, _edits(released[:acting]))) <= target

    low, high = 1, len(released)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    spared = {v.pair.id for v in released[high:]}
    return [v.kept(DecisionReason.WITHIN_TARGET) if v.pair.id in spared else v for v in verdicts]


def _loss(verdict: _Verdict) -> float:
    """Expected loss per freed character; a duplicate's output is not lost at all."""
    expected = verdict.answer.keep_result if verdict.answer else 0.0
    return expected / max(1, verdict.freed)


def _edits(verdicts: Sequence[_Verdict]) -> list[Edit]:
    return [Edit(v.pair, v.text) for v in verdicts if v.acts]


def _decision(verdict: _Verdict) -> CallDecision:
    pair, before = verdict.pair, len(verdict.pair.text or "")
    after = before
    if verdict.action is Action.DROP_CALL:
        after = 0
    elif verdict.text is not None:
        after = len(verdict.text)
    return CallDecision(
        id=pair.id,
        call_id=pair.call_id,
        tool_name=pair.tool_name,
        action=verdict.action,
        reason=verdict.reason,
        keep_call=verdict.answer.keep_call if verdict.answer else None,
        keep_result=verdict.answer.keep_result if verdict.answer else None,
        applied=verdict.action is Action.KEEP or verdict.acts,
        chars_before=before,
        chars_after=after,
    )


def _stats(
    plan: Plan, evidence: Evidence, messages: Sequence[JSONObject], chars_after: int
) -> JSONObject:
    inspection = plan.inspection
    old = inspection.snapshot.request.messages
    return {
        "messages_before": len(old),
        "messages_after": len(messages),
        "chars_before": inspection.snapshot.chars,
        "chars_after": chars_after,
        "candidates": inspection.candidates,
        "protected": len(inspection.rules),
        "skipped": dict(sorted(inspection.pairing.skipped.items())),
        "state_tokens": plan.state_tokens,
        "state_stage": plan.stage.value,
        "requests": len(plan.batches),
        "questions": 2 * sum(len(ids) for ids in plan.batches),
        "first_changed": _first_changed(old, messages),
        "model": evidence.model,
        "reused": len(inspection.known),
        "options": inspection.snapshot.request.options.model_dump(mode="json"),
        "thresholds": {"call": evidence.thresholds.call, "result": evidence.thresholds.result},
    }


def _first_changed(old: Sequence[JSONObject], new: Sequence[JSONObject]) -> int | None:
    """Index of the first message that is not the very same object any more."""
    for index, message in enumerate(old):
        if index >= len(new) or new[index] is not message:
            return index
    return None


def _proposal_id(inspection: Inspection, evidence: Evidence, digest_after: str) -> str:
    """Name the request, the answers and the result (a token counter has its say in that)."""
    request = inspection.snapshot.request
    asked = request.model_dump(mode="json", exclude={"messages"})
    answers = dict(evidence.answers)  # tuples, which JSON writes as lists
    named = [inspection.snapshot.digest, asked, answers, evidence.thresholds, evidence.model]
    return digest(compact([*named, digest_after]))[:32]
