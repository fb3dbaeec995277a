"""A decision model that answers from a script, for tests without a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentscope.classifier import BinaryQuestion, ClassifierResponse

__all__ = ["ScriptedDecisionModel"]

Script = Mapping[str, float] | Callable[[str, dict[str, Any]], float] | float


class ScriptedDecisionModel:
    """Answers every question from a script and records what it was asked.

    Args:
        script: One probability for all; a mapping from question id (``call_t1``) or kind
            (``call``, ``result``) to probability; or a function of (question id, state).
        default: Probability where a mapping has no entry.
        name: The model name it answers with.
        local: Whether it declares to run in process, and so is shown full outputs.
    """

    def __init__(
        self,
        script: Script = 0.0,
        *,
        default: float = 1.0,
        name: str = "scripted-1",
        local: bool = False,
    ) -> None:
        self.local = local
        self.name = name
        self.requests: list[tuple[dict[str, Any], dict[str, BinaryQuestion]]] = []
        """State and questions of every request, in order of arrival."""
        self._script = script
        self._default = default

    async def __call__(
        self, state: dict[str, Any], questions: Mapping[str, BinaryQuestion]
    ) -> ClassifierResponse:
        """Answer from the script."""
        from agentscope.classifier import BinaryAnswer, ClassifierResponse, ClassifierUsage

        self.requests.append((state, dict(questions)))
        content = {name: BinaryAnswer(self._probability(name, state)) for name in questions}
        usage = ClassifierUsage(time=0.0, input_tokens=100, output_tokens=len(questions))
        return ClassifierResponse(model=self.name, content=dict(content), usage=usage)

    @property
    def asked(self) -> list[str]:
        """Every question id asked so far, in order."""
        return [name for _, questions in self.requests for name in questions]

    def _probability(self, name: str, state: dict[str, Any]) -> float:
        if callable(self._script):
            return self._script(name, state)
        if isinstance(self._script, Mapping):
            kind = name.partition("_")[0]
            return self._script.get(name, self._script.get(kind, self._default))
        return self._script
