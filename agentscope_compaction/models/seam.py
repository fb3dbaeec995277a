"""The seam to a decision model: AgentScope's classifier call, and nothing else.

A decision model is anything callable like ``agentscope.classifier.ClassifierModelBase``:
``await model(state, questions) -> ClassifierResponse``. ``local = True`` declares a model that
runs in this process; only such a model is shown full outputs, and nothing is redacted for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from agentscope.classifier import BinaryQuestion, ClassifierResponse

__all__ = ["DecisionModel"]


@runtime_checkable
class DecisionModel(Protocol):
    """What ``compact_context`` asks; AgentScope's classifiers and plain async functions fit."""

    async def __call__(
        self, state: dict[str, Any], questions: Mapping[str, BinaryQuestion]
    ) -> ClassifierResponse:
        """Answer each named yes/no question about the shared state with a probability.

        Args:
            state: The observation, a JSON object; the same for every request of a proposal.
            questions: Question id (``call_t1``, ``result_t1``, ...) to binary question.

        Returns:
            The answering model's name, and one ``BinaryAnswer`` per question id in ``content``.
        """
        ...
