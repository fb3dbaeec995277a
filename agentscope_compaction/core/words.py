"""The closed sets of a proposal in plain words, the same wherever people read them."""

from __future__ import annotations

from agentscope_compaction.core.types import DecisionReason, ProposalReason

__all__ = ["OUTCOMES", "REASONS", "SKIPPED"]

REASONS = {
    DecisionReason.FIRST_MESSAGE: "in the first message, which is never touched",
    DecisionReason.RECENT_MESSAGE: "in one of the newest messages (preserve_recent_messages)",
    DecisionReason.RECENT_CALL: "one of the newest calls (preserve_recent_calls)",
    DecisionReason.PROTECTED_MESSAGE: "in a system message or a message named as protected",
    DecisionReason.PROTECTED_CALL: "named as protected",
    DecisionReason.TOOL_NOT_ELIGIBLE: "its tool is not among those that may be compacted",
    DecisionReason.CALL_NOT_FINISHED: "the call has not finished",
    DecisionReason.RESULT_NOT_SUCCESS: "it did not succeed, or still runs",
    DecisionReason.NON_TEXT_OUTPUT: "its output is more than text, or none",
    DecisionReason.TOOL_NAME_MISMATCH: "call and result name different tools",
    DecisionReason.ALREADY_COMPACTED: "a stub already",
    DecisionReason.DUPLICATE: "a later call holds the same output",
    DecisionReason.RESULT_NEEDED: "its full output is still needed",
    DecisionReason.RESULT_NOT_NEEDED: "the call matters, its full output no longer does",
    DecisionReason.CALL_NOT_NEEDED: "neither the call nor its output matters any more",
    DecisionReason.REMOVAL_UNSAFE: "not needed, but removing the call could break provider data",
    DecisionReason.WITHIN_TARGET: "could go, but the history fits target_tokens without that",
    DecisionReason.UNANSWERED: "the decision model gave no answer, so it stays",
    DecisionReason.NO_SIGNAL: "the model said the same of every output, so all stay",
    DecisionReason.BELOW_MINIMUM: "the proposal freed less than min_saved_chars, so all stay",
}
"""Why a call is kept, cut or removed."""

OUTCOMES = {
    ProposalReason.COMPACTED: "A smaller history is proposed.",
    ProposalReason.NO_CHANGE: "Nothing changes: every call that was asked about is needed.",
    ProposalReason.NO_CANDIDATES: "Nothing changes: no call may be compacted.",
    ProposalReason.WITHIN_TARGET: "Nothing changes: the history fits target_tokens already.",
    ProposalReason.BELOW_MINIMUM: "Nothing changes: it would free less than min_saved_chars.",
    ProposalReason.NO_SIGNAL: "Nothing changes: the model said the same of every output.",
}
"""What a proposal as a whole comes to."""

SKIPPED = {
    "duplicate_id": "used by more than one call or result",
    "no_result": "call without a result",
    "no_call": "result without a call",
    "reversed": "result before its call",
    "bad_input": "input that is not a JSON object",
}
"""Why an id is left out of a proposal: the keys of ``stats["skipped"]``."""
