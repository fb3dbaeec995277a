"""When a hook or a decorated agent compacts, and who decides; bounds are checked when built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from agentscope_compaction.agents.reviewers import Review
from agentscope_compaction.core.decisions import is_probability
from agentscope_compaction.core.options import CompactionOptions
from agentscope_compaction.errors import ConfigurationError

__all__ = ["Settings", "names_in", "options_in"]


def names_in(value: Iterable[str], setting: str) -> list[str]:
    """Return the names a setting lists.

    Raises:
        ConfigurationError: It is one text, whose letters would be taken for names, or no list.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise ConfigurationError(f"{setting} must be a list of names")
    return list(value)


def options_in(value: object, default: CompactionOptions) -> CompactionOptions:
    """Return the options an argument holds, as such or as a mapping; None takes the default.

    Raises:
        ConfigurationError: It holds none, or an option is unknown or out of its bounds.
    """
    if value is None:
        return default
    if isinstance(value, CompactionOptions):
        return value
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"options must be CompactionOptions, not {type(value).__name__}")
    try:
        return CompactionOptions.model_validate(dict(value))
    except ValidationError as exc:
        names = sorted({str(fault["loc"][0]) for fault in exc.errors() if fault["loc"]})
        raise ConfigurationError(f"unusable options: {', '.join(names)}") from None


@dataclass(frozen=True, slots=True)
class Settings:
    """The keywords of hook and decorator."""

    review: Review | None = None
    """Decides about a proposal, called as ``review(agent, proposal)``; None = the agent's
    ``review_compaction(proposal)``, else announce only."""
    trigger_ratio: float = 0.6
    """Share of ``model.context_size``, in [0, 1], above which a proposal is made."""
    trigger_tokens: int | None = None
    """That size in tokens, positive; instead of the ratio."""
    target_ratio: float = 0.4
    """Share of ``model.context_size``, in [0, 1], at which compaction stops."""
    target_tokens: int | None = None
    """That size in tokens, positive; instead of the ratio."""
    min_growth_ratio: float = 0.1
    """Growth since the last judging before the next, as a share, in [0, 1]."""
    before_reply: bool = True
    """Whether to look before each reply."""
    during_reply: bool = True
    """Whether to look before each model call of a reply."""
    goal: str | None = None
    """What the agent does next; None = the compactor's, else the agent's own."""

    def __post_init__(self) -> None:
        for name in ("trigger_ratio", "target_ratio", "min_growth_ratio"):
            if not is_probability(getattr(self, name)):
                raise ConfigurationError(f"{name} must be a number in [0, 1]")
        for name in ("trigger_tokens", "target_tokens"):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and value > 0
            if value is not None and not whole:
                raise ConfigurationError(f"{name} must be a positive integer")

    def trigger(self, context_size: int, beside: int = 0) -> int:
        """Return the size of the context, in tokens, from which on a proposal is made.

        Args:
            context_size: The model's window.
            beside: What the tools' schemas and a prompt that was seen take of it. AgentScope's own
                trigger counts them, so a ratio leaves that much less to the context, but at least
                a tenth of the window.
        """
        if self.trigger_tokens is not None:
            return self.trigger_tokens
        full = int(self.trigger_ratio * context_size)
        return min(full, max(full - beside, context_size // 10))

    def target(self, context_size: int, beside: int = 0) -> int:
        """Return the size at which compaction stops; at least 1.

        A target at or above the trigger (one of them given in tokens, the other left alone) would
        never let anything act, so it is then two thirds of the trigger; likewise where prompt and
        schemas leave no room at all.
        """
        if self.target_tokens is not None:
            return self.target_tokens
        trigger = self.trigger(context_size, beside)
        target = int(self.target_ratio * context_size) - beside
        if target >= trigger or (target < 1 and beside):
            target = trigger * 2 // 3
        return max(1, target)

    def grown(self, tokens: int, judged: int | None) -> bool:
        """Whether a context grew enough since it was last judged (or shrank, or never was)."""
        if judged is None or tokens < judged:
            return True
        return tokens > judged and tokens >= judged * (1 + self.min_growth_ratio)
