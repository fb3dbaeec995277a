"""Answers from before: an unchanged call under an unchanged goal is not asked about again.

The key is content alone (goal, tool, input, output, and how much of it was shown), so the memory
holds nothing of any agent and may serve many. It forgets the least recently used answers.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agentscope_compaction.core.decisions import Answer
from agentscope_compaction.core.jsontext import compact, digest
from agentscope_compaction.core.pairing import Pair
from agentscope_compaction.core.types import CompactionRequest

__all__ = ["AnswerMemory", "Remembered"]


@dataclass(frozen=True, slots=True)
class Remembered:
    """Answers from before, by decision id, and the models that gave them."""

    answers: dict[str, Answer] = field(default_factory=dict)
    models: dict[str, None] = field(default_factory=dict)
    """An ordered set of names."""


class AnswerMemory:
    """A bounded map from (goal, call) to the two answers one decision model gave.

    Args:
        size: Most answers kept.
    """

    def __init__(self, size: int = 20_000) -> None:
        self._size = size
        self._answers: OrderedDict[str, tuple[Answer, str | None]] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, request: CompactionRequest, pairs: Iterable[Pair]) -> Remembered:
        """Return what is known about these pairs."""
        found = Remembered()
        with self._lock:
            for pair in pairs:
                key = _key(request, pair)
                if key in self._answers:
                    self._answers.move_to_end(key)
                    found.answers[pair.id], model = self._answers[key]
                    found.models.update({model: None} if model is not None else {})
        return found

    def learn(
        self,
        request: CompactionRequest,
        pairs: Iterable[Pair],
        answers: Mapping[str, Answer],
        model: str | None,
    ) -> None:
        """Remember new answers and who gave them."""
        with self._lock:
            for pair in pairs:
                if pair.id in answers:
                    self._answers[_key(request, pair)] = (answers[pair.id], model)
            while len(self._answers) > self._size:
                self._answers.popitem(last=False)


def _key(request: CompactionRequest, pair: Pair) -> str:
    asked = [request.goal, request.options.evidence_chars]
    return digest(compact([*asked, pair.tool_name, pair.call["input"], pair.text]))
