"""Fates, reasons and outcomes in the reader's words."""

from __future__ import annotations

from agentscope_compaction.core.types import DecisionReason, ProposalReason
from agentscope_compaction.report.calls import Fate

__all__ = ["FATES", "OUTCOMES", "REASONS"]

FATES = {
    Fate.KEEP: "kept",
    Fate.CUT: "output cut",
    Fate.REMOVE: "removed",
    Fate.NOT_SHORTER: "kept, stub not shorter",
}

REASONS = {
    DecisionReason.FIRST_MESSAGE: "in the first message, which is never touched",
    DecisionReason.RECENT_MESSAGE: "in one of the newest messages",
    DecisionReason.RECENT_CALL: "one of the newest calls",
    DecisionReason.PROTECTED_MESSAGE: "in a system message or a protected message",
    DecisionReason.PROTECTED_CALL: "named as protected",
    DecisionReason.TOOL_NOT_ELIGIBLE: "its tool is not on the allow-list",
    DecisionReason.CALL_NOT_FINISHED: "the call has not finished",
    DecisionReason.RESULT_NOT_SUCCESS: "it did not succeed, or still runs",
    DecisionReason.NON_TEXT_OUTPUT: "its output is more than text, or empty",
    DecisionReason.TOOL_NAME_MISMATCH: "call and result name different tools",
    DecisionReason.ALREADY_COMPACTED: "a stub already",
    DecisionReason.DUPLICATE: "a later call holds the same output",
    DecisionReason.RESULT_NEEDED: "its full output is still needed",
    DecisionReason.RESULT_NOT_NEEDED: "the call matters, its full output no longer does",
    DecisionReason.CALL_NOT_NEEDED: "neither the call nor its output matters any more",
    DecisionReason.REMOVAL_UNSAFE: "not needed, but removing it could break provider data",
    DecisionReason.WITHIN_TARGET: "could go, but the history fits its target without",
    DecisionReason.UNANSWERED: "the decision model gave no answer, so it stays",
    DecisionReason.NO_SIGNAL: "the model said the same of every output, so all stay",
    DecisionReason.BELOW_MINIMUM: "too little would be freed, so all stay",
}

OUTCOMES = {
    ProposalReason.COMPACTED: "A smaller history is proposed.",
    ProposalReason.NO_CHANGE: "Nothing changes: every call that was asked about is needed.",
    ProposalReason.NO_CANDIDATES: "Nothing changes: no call may be compacted.",
    ProposalReason.WITHIN_TARGET: "Nothing changes: the history fits its target already.",
    ProposalReason.BELOW_MINIMUM: "Nothing changes: too little would be freed.",
    ProposalReason.NO_SIGNAL: "Nothing changes: the model said the same of every output.",
}
