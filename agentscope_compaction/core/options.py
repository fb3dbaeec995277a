"""The options of one proposal: strict bounds, frozen, JSON in and out.

Numbers are strict: no numeric strings, no bool, finite. Zero means "none" for every
``preserve_*``, ``truncate_*``, ``facts_*``, ``evidence_chars`` and ``min_saved_chars``; budgets,
counts and timeouts must be positive.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

__all__ = ["BatchFailure", "CallRemoval", "CompactionOptions", "ReusedIds"]


def _a_number(value: object) -> object:
    """Refuse what pydantic's strict float would still take: bool (an int in Python)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    return value


_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), BeforeValidator(_a_number)]
_Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False), BeforeValidator(_a_number)]
_Count = Annotated[int, Field(strict=True, ge=0)]
_Positive = Annotated[int, Field(strict=True, gt=0)]


class BatchFailure(StrEnum):
    """What one failed request means for the proposal."""

    FAIL = "fail"
    """The proposal fails."""
    KEEP = "keep"
    """The calls it asked about are kept, the others act; if no request succeeded, it fails."""


class CallRemoval(StrEnum):
    """Whether ``drop_call`` may really remove the pair."""

    SAFE = "safe"
    """Except where it could break a provider: signed thinking or provider items in the message."""
    NEVER = "never"
    """It always becomes ``drop_result``."""
    ALWAYS = "always"
    """Wherever the model says so; live agents add conditions of their own."""


class ReusedIds(StrEnum):
    """How to read a call id that occurs more than once."""

    KEEP = "keep"
    """Calls and results with that id are never touched."""
    PAIR = "pair"
    """Clean alternation of call and result is read as separate pairs; anything else is kept."""


class CompactionOptions(BaseModel):
    """How one proposal is made; the defaults are those of the seed design (``compact_context``)."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    keep_threshold: _Share | None = 0.5
    """Shared keep threshold; None takes the decision model's own profile (0.1/0.1 without one)."""
    keep_call_threshold: _Share | None = None
    """Threshold of the call question; None = ``keep_threshold``."""
    keep_result_threshold: _Share | None = None
    """Threshold of the result question; None = ``keep_threshold``."""
    preserve_recent_messages: _Count = 6
    """Newest messages left untouched."""
    preserve_recent_calls: _Count = 0
    """Newest ``tool_call`` blocks left untouched, counted across messages."""
    max_state_tokens: _Positive = 25_000
    """Estimated tokens of the observation view."""
    max_request_tokens: _Positive = 30_000
    """Estimated tokens of one request: view, its questions and a fixed reserve."""
    max_questions_per_request: Annotated[int, Field(strict=True, ge=2, multiple_of=2)] = 64
    """Questions in one request; even, because both questions of a call travel together."""
    truncate_head_chars: _Count = 300
    """Characters of the output's start that ``drop_result`` keeps."""
    truncate_tail_chars: _Count = 0
    """Characters of the output's end that ``drop_result`` keeps."""
    facts_ratio: _Share = 0.0
    """Share of an omitted output that its stub may spend on facts taken from it verbatim."""
    facts_max_chars: _Count = 4_000
    """Cap of those facts, in characters."""
    max_concurrency: Annotated[int, Field(strict=True, ge=1, le=32)] = 4
    """Requests in flight at once."""
    total_timeout_seconds: _Seconds = 30.0
    """One deadline over all requests of a proposal, queueing and retries included."""
    evidence_chars: _Count = 0
    """Characters of each candidate's output shown to a remote model; 0 = none ever leaves."""
    on_batch_failure: BatchFailure = BatchFailure.FAIL
    """``fail``: any failed request fails the proposal; ``keep``: its calls are kept."""
    target_tokens: _Positive | None = None
    """Stop acting as soon as the history fits; None = act on all the thresholds release."""
    call_removal: CallRemoval = CallRemoval.SAFE
    """Where ``drop_call`` must become ``drop_result``."""
    dedupe: Annotated[bool, Field(strict=True)] = False
    """Stub exact repetitions of a call without asking, keeping the newest."""
    reused_ids: ReusedIds = ReusedIds.KEEP
    """``keep``: never touch an id used twice; ``pair``: read clean alternation as pairs."""
    require_signal: Annotated[bool, Field(strict=True)] = False
    """Keep all when the model answers every result question alike, below the threshold."""
    min_saved_chars: _Count = 0
    """A proposal that frees fewer characters changes nothing."""

    @field_validator("on_batch_failure", "call_removal", "reused_ids", mode="before")
    @classmethod
    def _a_name(cls, value: object) -> object:
        if not isinstance(value, str):
            raise ValueError("must be a string")
        return value

    @classmethod
    def for_agents(cls, **overrides: object) -> Self:
        """The defaults of live agents: recency by calls, doubt-keeping rules on, own thresholds.

        One AgentScope reply is one message, so recency counts calls instead of messages.

        Args:
            **overrides: Any field of this class, replacing the agent default.

        Raises:
            pydantic.ValidationError: An override is unknown or out of bounds.
        """
        defaults: dict[str, object] = {
            "keep_threshold": None,
            "preserve_recent_messages": 0,
            "preserve_recent_calls": 8,
            "facts_ratio": 0.2,
            "call_removal": CallRemoval.SAFE,
            "dedupe": True,
            "require_signal": True,
        }
        return cls.model_validate({**defaults, **overrides})
