"""Shipped reviewers: who decides about a proposal when the agent's own code does not."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from agentscope_compaction.core.types import CompactionProposal

if TYPE_CHECKING:
    from agentscope.agent import Agent

__all__ = ["Review", "Verdict", "accept_all", "accept_if", "break_even_calls"]

Verdict = bool | Collection[str]
"""True accepts all, False nothing, ids (``t3``, ...) only these."""
Review = Callable[["Agent", CompactionProposal], Verdict | Awaitable[Verdict]]
"""The agent's own code: decides about one proposal, synchronously or not."""

CACHED_PRICE = 0.1
UNCACHED_PRICE = 1.0


def accept_all(agent: Agent, proposal: CompactionProposal) -> bool:
    """Accept every proposal."""
    return True


def accept_if(
    *,
    min_saved_tokens: int = 0,
    min_saved_ratio: float = 0.0,
    max_break_even_calls: float | None = None,
    cached_price: float = CACHED_PRICE,
    uncached_price: float = UNCACHED_PRICE,
) -> Callable[[Agent, CompactionProposal], bool]:
    """Return a reviewer that accepts what saves enough.

    Args:
        min_saved_tokens: Least tokens freed.
        min_saved_ratio: Least share of the history's tokens freed, in [0, 1].
        max_break_even_calls: Most further model calls after which the pass must have paid for the
            prompt cache it invalidates; None = no limit.
        cached_price: Price of an input token read from the prompt cache, in any unit.
        uncached_price: Price of an input token read anew, in the same unit.
    """

    def review(agent: Agent, proposal: CompactionProposal) -> bool:
        before, after = proposal.stats["tokens_before"], proposal.stats["tokens_after"]
        saved = before - after
        if saved < min_saved_tokens or saved < min_saved_ratio * before:
            return False
        if max_break_even_calls is None:
            return True
        calls = break_even_calls(
            proposal.stats, cached_price=cached_price, uncached_price=uncached_price
        )
        return calls is not None and calls <= max_break_even_calls

    return review


def break_even_calls(
    stats: Mapping[str, Any],
    *,
    cached_price: float = CACHED_PRICE,
    uncached_price: float = UNCACHED_PRICE,
) -> int | None:
    """Return after how many further model calls a pass has paid for itself; None = never.

    A provider's prompt cache holds a prefix: everything after the first edit is read anew once,
    and each later call reads fewer cached tokens.

    Args:
        stats: A proposal's statistics (``tokens_before``, ``tokens_after``, ``reread_tokens``).
        cached_price: Price of a cached input token.
        uncached_price: Price of an input token read anew.
    """
    saved = int(stats["tokens_before"]) - int(stats["tokens_after"])
    extra = int(stats.get("reread_tokens", 0)) * (uncached_price - cached_price)
    if saved <= 0 or cached_price <= 0:
        return None if saved <= 0 or extra > 0 else 0
    return max(0, math.ceil(extra / (saved * cached_price)))
