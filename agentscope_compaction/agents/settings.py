"""When a hook or a decorated agent compacts, and who decides; bounds are checked when built."""

from __future__ import annotations

from dataclasses import dataclass

from agentscope_compaction.agents.reviewers import Review
from agentscope_compaction.errors import ConfigurationError

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The keywords of hook and decorator."""

    review: Review | None = None
    """Decides about a proposal; None = the agent's ``review_compaction``, else announce only."""
    trigger_ratio: float = 0.6
    """Share of ``model.context_size`` above which a proposal is made."""
    trigger_tokens: int | None = None
    """That size in tokens; instead of the ratio."""
    target_ratio: float = 0.4
    """Share of ``model.context_size`` at which compaction stops."""
    target_tokens: int | None = None
    """That size in tokens; instead of the ratio."""
    min_growth_ratio: float = 0.1
    """Growth since the last judging before the next."""
    before_reply: bool = True
    """Whether to look before each reply."""
    during_reply: bool = True
    """Whether to look before each model call of a reply."""
    goal: str | None = None
    """What the agent does next; None = the compactor's, else the agent's own."""

    def __post_init__(self) -> None:
        for name in ("trigger_ratio", "target_ratio", "min_growth_ratio"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise ConfigurationError(f"{name} must be a number in [0, 1]")
        for name in ("trigger_tokens", "target_tokens"):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and value > 0
            if value is not None and not whole:
                raise ConfigurationError(f"{name} must be a positive integer")

    def trigger(self, context_size: int) -> int:
        """Return the trigger in tokens."""
        return self.trigger_tokens or int(self.trigger_ratio * context_size)

    def target(self, context_size: int) -> int:
        """Return the target in tokens; at least 1.

        A ratio at or above the trigger (one of them given in tokens, the other left alone) would
        never let anything act, so the target is then two thirds of the trigger.
        """
        if self.target_tokens is not None:
            return self.target_tokens
        trigger, target = self.trigger(context_size), int(self.target_ratio * context_size)
        return max(1, target if target < trigger else trigger * 2 // 3)

    def grown(self, tokens: int, judged: int | None) -> bool:
        """Whether a context grew enough since it was last judged (or shrank, or never was)."""
        if judged is None or tokens < judged:
            return True
        return tokens > judged and tokens >= judged * (1 + self.min_growth_ratio)
