"""What became of a proposal: outcomes, and the records an archive keeps of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from agentscope_compaction.archive.codec import encode
from agentscope_compaction.core.types import CompactionProposal, JSONObject
from agentscope_compaction.errors import ArchiveError

__all__ = ["ArchiveRecord", "Outcome", "OutcomeKind", "recall_counts"]


class OutcomeKind(StrEnum):
    """What happened to a proposal."""

    PROPOSED = "proposed"
    """It was made, and waits."""
    ACCEPTED = "accepted"
    """All of it was applied."""
    PARTLY = "partly"
    """Some of its calls were applied."""
    REJECTED = "rejected"
    """It was turned down; nothing changed."""
    STALE = "stale"
    """The history had changed, so nothing was applied."""
    RESTORED = "restored"
    """It was undone: the archived outputs came back."""
    RECALLED = "recalled"
    """The agent read the original of a cut output: an observed false drop."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One thing that happened to a proposal, and who decided it."""

    kind: OutcomeKind
    """What happened."""
    calls: tuple[str, ...] = ()
    """Ids of the calls (or decisions) concerned; empty = all of the proposal."""
    decided_by: str | None = None
    """The reviewer, agent or person that decided."""
    reason: str | None = None
    """Why, in the decider's words."""

    @classmethod
    def of(cls, value: Outcome | str | Mapping[str, Any]) -> Self:
        """An outcome from an outcome, a kind, or a mapping of the fields.

        Raises:
            ArchiveError: Unknown kind or field, or a field of the wrong type.
        """
        if isinstance(value, str):
            given: dict[str, Any] = {"kind": value}
        elif isinstance(value, Mapping):
            given = dict(value)
        elif isinstance(value, Outcome):
            given = {name.name: getattr(value, name.name) for name in fields(value)}
        else:
            raise ArchiveError(f"not an outcome: {type(value).__name__}")
        return cls._checked(given)

    @classmethod
    def _checked(cls, given: dict[str, Any]) -> Self:
        try:
            kind = OutcomeKind(given.pop("kind", None))
            calls = given.pop("calls", None) or ()
            if isinstance(calls, str) or not all(isinstance(call, str) for call in calls):
                raise TypeError("calls must be strings")
            texts = {key: given.pop(key, None) for key in ("decided_by", "reason")}
            if not all(text is None or isinstance(text, str) for text in texts.values()):
                raise TypeError("decided_by and reason must be strings")
            if given:
                raise TypeError("unknown fields")
        except (TypeError, ValueError) as exc:
            raise ArchiveError(f"not an outcome: {exc}") from exc
        return cls(kind, tuple(calls), **texts)

    def as_json(self) -> JSONObject:
        """The fields as a JSON object; :meth:`of` reads it back."""
        return {
            "kind": self.kind.value,
            "calls": list(self.calls),
            "decided_by": self.decided_by,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class ArchiveRecord:
    """One outcome of one proposal, as the archive keeps it."""

    ref: str
    """The snapshot."""
    recorded_at: datetime
    """When, in UTC."""
    outcome: Outcome
    """What happened, to which calls, who decided and why."""
    proposal: JSONObject = field(repr=False)
    """The proposal's wire form without ``messages``: decisions, answers and stats."""
    options: JSONObject | None = field(default=None, repr=False)
    """The snapshot's ``meta["options"]``, where given."""


def recall_counts(records: Iterable[ArchiveRecord]) -> dict[str, int]:
    """How often each call was recalled after it was cut: every count is an observed false drop."""
    counts: Counter[str] = Counter()
    for record in records:
        if record.outcome.kind is OutcomeKind.RECALLED:
            counts.update(record.outcome.calls)
    return dict(counts)


def encoded_meta(meta: Mapping[str, Any]) -> bytes:
    """Raw bytes of a snapshot's meta.

    Raises:
        ArchiveError: Not a mapping of JSON.
    """
    if not isinstance(meta, Mapping):
        raise ArchiveError(f"meta must be a mapping, not {type(meta).__name__}")
    return encode(dict(meta)).raw


def encoded_proposal(proposal: CompactionProposal) -> bytes:
    """Raw bytes of what is kept of a proposal.

    Raises:
        ArchiveError: Not a proposal.
    """
    if not isinstance(proposal, CompactionProposal):
        raise ArchiveError(f"not a proposal: {type(proposal).__name__}")
    return encode(proposal.model_dump(mode="json", exclude={"messages"})).raw


def options_of(meta: Mapping[str, Any]) -> JSONObject | None:
    """The options a snapshot's meta names."""
    options = meta.get("options")
    return options if isinstance(options, dict) else None
