"""Actions, and what speaks for keeping an output, in plain words."""

from __future__ import annotations

from typing import Any

from agentscope_compaction.core.types import Action

__all__ = ["ACTIONS", "because", "in_words"]

ACTIONS = {
    Action.KEEP: "kept whole",
    Action.DROP_RESULT: "cut to a stub",
    Action.DROP_CALL: "removed",
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
