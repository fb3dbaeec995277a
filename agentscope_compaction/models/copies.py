"""Copies of the state for requests: a model may do what it likes with the one it is given.

A copy per request costs requests times calls, which is quadratic in a history that is asked about
in batches. A copy that comes back unchanged serves the next request instead: comparing is many
times as fast as copying, and no more copies exist than requests in flight.
"""

from __future__ import annotations

from agentscope_compaction.core.jsontext import copy_json
from agentscope_compaction.core.view import Observation

__all__ = ["Copies"]


class Copies:
    """Hands out equal copies of one state, each to one request at a time."""

    def __init__(self, state: Observation) -> None:
        self._state = state
        self._spare: list[Observation] = []

    def take(self) -> Observation:
        """Return a copy nobody else holds."""
        if self._spare:
            return self._spare.pop()
        return Observation(copy_json(self._state))

    def give_back(self, copy: Observation) -> None:
        """Keep a copy for the next request if its user left it as it was."""
        if copy is not self._state and copy == self._state:
            self._spare.append(copy)
