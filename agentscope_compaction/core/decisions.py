"""From two probabilities to an action; doubt keeps.

The rule is the seed design's: a needed result keeps the call whole, however little the call itself
matters; an unneeded result of a needed call is cut to a stub; else both go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeGuard

from agentscope_compaction.core.options import CompactionOptions
from agentscope_compaction.core.types import Action, DecisionReason, Thresholds

__all__ = [
    "Answer",
    "as_thresholds",
    "decide",
    "has_no_signal",
    "is_probability",
    "thresholds_of",
]

NEUTRAL_PROFILE = Thresholds(call=0.1, result=0.1)
"""For models without a profile of their own."""
_SIGNAL_SPREAD = 0.02
_SIGNAL_MINIMUM = 4


class Answer(NamedTuple):
    """Both answers about one call."""

    keep_call: float
    keep_result: float


def thresholds_of(options: CompactionOptions, profile: Thresholds | None) -> Thresholds:
    """Resolve the thresholds: per question, else shared, else the model's profile."""
    shared = options.keep_threshold
    base = (profile or NEUTRAL_PROFILE) if shared is None else Thresholds(shared, shared)
    return Thresholds(
        call=base.call if options.keep_call_threshold is None else options.keep_call_threshold,
        result=(
            base.result if options.keep_result_threshold is None else options.keep_result_threshold
        ),
    )


def decide(answer: Answer, thresholds: Thresholds) -> tuple[Action, DecisionReason]:
    """Apply the two thresholds."""
    if answer.keep_result >= thresholds.result:
        return Action.KEEP, DecisionReason.RESULT_NEEDED
    if answer.keep_call >= thresholds.call:
        return Action.DROP_RESULT, DecisionReason.RESULT_NOT_NEEDED
    return Action.DROP_CALL, DecisionReason.CALL_NOT_NEEDED


def has_no_signal(answers: Sequence[Answer], thresholds: Thresholds, *, asked: int) -> bool:
    """Whether the model says the same of every output, so that all of them would go."""
    values = [answer.keep_result for answer in answers]
    if asked < _SIGNAL_MINIMUM or not values or max(values) >= thresholds.result:
        return False
    return max(values) - min(values) <= _SIGNAL_SPREAD + 1e-12


def is_probability(value: object) -> TypeGuard[float]:
    """Whether a value is a number in [0, 1]; a truth value is none, and NaN is not in it."""
    return not isinstance(value, bool) and isinstance(value, int | float) and 0 <= value <= 1


def as_thresholds(value: object) -> Thresholds:
    """Read a model's ``thresholds``: the named tuple, or a mapping with its keys.

    Raises:
        ValueError: It is neither, or a threshold is not a number in [0, 1].
    """
    if isinstance(value, Mapping):
        if set(value) != {"call", "result"}:
            raise ValueError("thresholds need the keys call and result")
        value = (value["call"], value["result"])
    if not isinstance(value, tuple) or len(value) != 2:
        raise ValueError("thresholds must be Thresholds(call, result) or a mapping")
    for number in value:
        if not is_probability(number):
            raise ValueError("thresholds must be numbers in [0, 1]")
    return Thresholds(float(value[0]), float(value[1]))
