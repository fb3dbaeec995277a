"""What is remembered in ``agent.state.middle_context``: ids and counters, never content.

AgentScope saves it with the state and shows it in session lists, so it is small, plain JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentscope_compaction.agents.settings import names_in

if TYPE_CHECKING:
    from agentscope.state import AgentState

__all__ = ["KEY", "Notes", "decide_pending"]

KEY = "agentscope_compaction"
"""The key in ``middle_context``; hook and decorator share it, so they do their work once."""
_ACCEPTED_KEPT = 32


class Notes:
    """Typed access to this package's entry of one agent's state."""

    def __init__(self, state: AgentState) -> None:
        self._state = state

    @property
    def _entry(self) -> dict[str, Any]:
        entry = self._state.middle_context.get(KEY)
        return entry if isinstance(entry, dict) else {}

    def _set(self, **changes: Any) -> None:
        entry = {**self._entry, **changes}
        self._state.middle_context[KEY] = {k: v for k, v in entry.items() if v is not None}

    @property
    def judged_tokens(self) -> int | None:
        """Size of the context, in tokens, after the last judging."""
        value = self._entry.get("judged_tokens")
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @judged_tokens.setter
    def judged_tokens(self, tokens: int | None) -> None:
        self._set(judged_tokens=tokens)

    @property
    def pending(self) -> dict[str, Any] | None:
        """The proposal that waits for a decision: ids, and the decision once there is one."""
        value = self._entry.get("pending")
        return value if _names_proposal(value) else None

    def set_pending(self, proposal_id: str, archive_ref: str) -> None:
        """Note a proposal that waits."""
        self._set(pending={"proposal_id": proposal_id, "archive_ref": archive_ref})

    def decide(self, decision: bool | list[str]) -> None:
        """Note the decision about the waiting proposal."""
        if self.pending is not None:
            self._set(pending={**self.pending, "decision": decision})

    def clear_pending(self, proposal_id: str | None = None) -> None:
        """Forget the waiting proposal (only this one, if named)."""
        pending = self.pending
        if pending is not None and proposal_id in (None, pending.get("proposal_id")):
            self._set(pending=None)

    @property
    def accepted(self) -> list[dict[str, str]]:
        """The accepted proposals, oldest first: proposal id and archive reference."""
        value = self._entry.get("accepted")
        return [item for item in value if _names_proposal(item)] if isinstance(value, list) else []

    def add_accepted(self, proposal_id: str, archive_ref: str) -> None:
        """Note an accepted proposal."""
        entry = {"proposal_id": proposal_id, "archive_ref": archive_ref}
        others = [item for item in self.accepted if item != entry]
        self._set(accepted=[*others, entry][-_ACCEPTED_KEPT:])

    def remove_accepted(self, proposal_id: str) -> None:
        """Forget a proposal that was undone."""
        self._set(accepted=[i for i in self.accepted if i.get("proposal_id") != proposal_id])


def _names_proposal(value: object) -> bool:
    """Whether this is a note of ours; a state may have been written by another version."""
    return isinstance(value, dict) and all(
        isinstance(value.get(key), str) for key in ("proposal_id", "archive_ref")
    )


def decide_pending(
    state: AgentState, decision: bool | Sequence[str], *, proposal_id: str | None = None
) -> bool:
    """Decide about a waiting proposal in a saved state; it is applied before the next reply.

    Args:
        state: The agent's state, for instance loaded from storage.
        decision: True for all of it, False for none, or the ids to accept (``t3``, ...).
        proposal_id: The proposal the decider saw; another one that waits by now is left alone.

    Returns:
        Whether the proposal was waiting.

    Raises:
        ConfigurationError: The decision is one text instead of a list of ids.
    """
    chosen = decision if isinstance(decision, bool) else names_in(decision, "decision")
    notes = Notes(state)
    if notes.pending is None or proposal_id not in (None, notes.pending["proposal_id"]):
        return False
    notes.decide(chosen)
    return True
