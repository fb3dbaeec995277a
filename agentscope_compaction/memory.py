"""Answers from before: an unchanged call under an unchanged goal is not asked about again.

The key is content alone (goal, tool, input, output), so the memory holds nothing of any agent and
may serve many. It forgets the least recently used answers.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from agentscope_compaction.core.decisions import Answer
from agentscope_compaction.core.jsontext import compact, digest
from agentscope_compaction.core.pairing import Pair

__all__ = ["AnswerMemory"]


class AnswerMemory:
    """A bounded map from (goal, call) to the two answers one decision model gave.

    Args:
        size: Most answers kept.
    """

    def __init__(self, size: int = 20_000) -> None:
        self._size = size
        self._answers: OrderedDict[str, Answer] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, goal: str, pairs: Iterable[Pair]) -> dict[str, Answer]:
        """Return the answers known about these pairs, by decision id."""
        found = {}
        with self._lock:
            for pair in pairs:
                key = _key(goal, pair)
                if key in self._answers:
                    self._answers.move_to_end(key)
                    found[pair.id] = self._answers[key]
        return found

    def learn(self, goal: str, pairs: Iterable[Pair], answers: Mapping[str, Answer]) -> None:
        """Remember new answers."""
        with self._lock:
            for pair in pairs:
                if pair.id in answers:
                    self._answers[_key(goal, pair)] = answers[pair.id]
            while len(self._answers) > self._size:
                self._answers.popitem(last=False)


def _key(goal: str, pair: Pair) -> str:
    return digest(compact([goal, pair.tool_name, pair.call["input"], pair.text]))
