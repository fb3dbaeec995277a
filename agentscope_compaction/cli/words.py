"""The closed sets of a proposal in plain words."""

from __future__ import annotations

from typing import Any

from agentscope_compaction.core.types import Action, DecisionReason, ProposalReason

__all__ = ["ACTIONS", "OUTCOMES", "REASONS", "SKIPPED", "because", "in_words"]

ACTIONS = {
    Action.KEEP: "kept whole",
    Action.DROP_RESULT: "cut to a stub",
    Action.DROP_CALL: "removed",
}

REASONS = {
    DecisionReason.FIRST_MESSAGE: "in the first message, which is never touched",
    DecisionReason.RECENT_MESSAGE: "in one of the newest messages (preserve_recent_messages)",
    DecisionReason.RECENT_CALL: "one of the newest calls (preserve_recent_calls)",
    DecisionReason.PROTECTED_MESSAGE: "in a system message or a message named as protected",
    DecisionReason.PROTECTED_CALL: "named as protected",
    DecisionReason.TOOL_NOT_ELIGIBLE: "its tool is not named with --tool",
    DecisionReason.CALL_NOT_FINISHED: "the call has not finished",
    DecisionReason.RESULT_NOT_SUCCESS: "it did not succeed, or is still running",
    DecisionReason.NON_TEXT_OUTPUT: "its output is more than text, or none",
    DecisionReason.TOOL_NAME_MISMATCH: "call and result name different tools",
    DecisionReason.ALREADY_COMPACTED: "a stub already",
    DecisionReason.DUPLICATE: "a later call holds the same output",
    DecisionReason.RESULT_NEEDED: "its full output is still needed",
    DecisionReason.RESULT_NOT_NEEDED: "the call matters, its full output no longer does",
    DecisionReason.CALL_NOT_NEEDED: "neither the call nor its output matters any more",
    DecisionReason.REMOVAL_UNSAFE: "not needed, but removing the call could break provider data",
    DecisionReason.WITHIN_TARGET: "could go, but the history fits target_tokens without it",
    DecisionReason.UNANSWERED: "the decision model gave no answer, so it stays",
    DecisionReason.NO_SIGNAL: "the model said the same of every output, so all stay",
    DecisionReason.BELOW_MINIMUM: "the proposal freed less than min_saved_chars, so all stay",
}

OUTCOMES = {
    ProposalReason.COMPACTED: "A smaller history is proposed.",
    ProposalReason.NO_CHANGE: "Nothing changes: every call that was asked about is needed.",
    ProposalReason.NO_CANDIDATES: "Nothing changes: no call may be compacted.",
    ProposalReason.WITHIN_TARGET: "Nothing changes: the history fits target_tokens already.",
    ProposalReason.BELOW_MINIMUM: "Nothing changes: it would free less than min_saved_chars.",
    ProposalReason.NO_SIGNAL: "Nothing changes: the model said the same of every output.",
}

SKIPPED = {
    "duplicate_id": "used by more than one call or result",
    "no_result": "call without a result",
    "no_call": "result without a call",
    "reversed": "result before its call",
    "bad_input": "input that is not a JSON object",
}

_CAUSES = {
    "receipt": "it is the receipt of an action",
    "quoted_by_user": "the user quoted it",
    "recent_error": "a recent error",
    "unfinished": "it has not finished",
    "output_not_shown": "its output is not shown",
    "no_context": "nothing follows it that could tell",
    "exact_duplicate": "a later call holds the same output",
    "superseded_identical": "the same call was made again later",
    "superseded_plan": "a later plan replaced it",
    "covered_by_later_read": "a later read covers it",
    "stale_read_after_edit": "the file was edited and read again since",
    "old_error_unreferenced": "an old error that nothing refers to",
    "bare_acknowledgement": "it only says that something was done",
    "goal_overlap": "shares words with the goal",
    "tail_overlap": "shares words with the newest messages",
    "ids_in_tail": "the newest messages use identifiers from it",
    "input_in_tail": "the newest messages speak of what it asked for",
    "only_copy": "the only place of some identifiers",
    "only_names": "the only place of some names",
    "came_back": "later steps used identifiers from it",
    "recency": "recent",
}
_DECIDING = 0.15
"""Log odds from which a contribution is worth naming."""


def because(explanation: dict[str, Any], *, limit: int = 2) -> str:
    """Say in words what speaks for keeping an output: its facts, else its largest shares."""
    facts = [str(fact) for fact in explanation.get("facts", ())]
    if facts:
        return in_words(facts[:limit])
    parts = {k: v for k, v in explanation.get("contributions", {}).items() if k in _CAUSES}
    strongest = sorted(parts, key=lambda name: parts[name], reverse=True)
    return in_words([name for name in strongest if parts[name] >= _DECIDING][:limit])


def in_words(names: list[str]) -> str:
    """Put names of facts and features into words."""
    return "; ".join(_CAUSES.get(name, name.replace("_", " ")) for name in names)
