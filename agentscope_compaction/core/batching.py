"""Split the candidates into requests: an ordered partition, both questions of a call together."""

from __future__ import annotations

from collections.abc import Sequence

from agentscope_compaction.core.estimate import PER_REQUEST
from agentscope_compaction.core.options import CompactionOptions
from agentscope_compaction.core.questions import pair_tokens
from agentscope_compaction.errors import ObservationBudgetError

__all__ = ["batch", "room_for_view"]


def room_for_view(asked: Sequence[str], options: CompactionOptions) -> int:
    """Return the token budget of the view: the tighter of both limits, one pair's room reserved.

    Raises:
        ObservationBudgetError: One pair of questions does not fit a request.
    """
    room = options.max_request_tokens - PER_REQUEST - _largest(asked)
    if asked and room <= 0:
        raise ObservationBudgetError(
            f"one pair of questions does not fit max_request_tokens={options.max_request_tokens}"
        )
    return min(options.max_state_tokens, room)


def batch(
    asked: Sequence[str], view_tokens: int, options: CompactionOptions
) -> tuple[tuple[str, ...], ...]:
    """Partition the decision ids, in order, within both limits of a request."""
    room = options.max_request_tokens - PER_REQUEST - view_tokens
    per_request = min(options.max_questions_per_request // 2, room // max(1, _largest(asked)))
    size = max(1, per_request)
    return tuple(tuple(asked[start : start + size]) for start in range(0, len(asked), size))


def _largest(asked: Sequence[str]) -> int:
    """Tokens of the costliest pair: the wording is fixed, so that of the longest id."""
    return pair_tokens(max(asked, key=len)) if asked else 0
