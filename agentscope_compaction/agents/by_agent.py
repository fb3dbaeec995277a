"""What is remembered about agents from outside: by identity, and gone with the agent.

An agent's class may define equality (a dataclass does), which makes its agents unhashable, or two
of them one key. So the weak collections of the standard library cannot hold them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import ReferenceType, ref

if TYPE_CHECKING:
    from agentscope.agent import Agent

__all__ = ["ByAgent"]

T = TypeVar("T")


class ByAgent(Generic[T]):
    """One value per agent, for as long as the agent lives."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[ReferenceType[Agent], T]] = {}

    def __contains__(self, agent: Agent) -> bool:
        return id(agent) in self._held

    def get(self, agent: Agent) -> T | None:
        """Return an agent's value; None if there is none."""
        held = self._held.get(id(agent))
        return held[1] if held is not None else None

    def set(self, agent: Agent, value: T) -> T:
        """Keep a value, and return it."""
        key = id(agent)
        self._held[key] = (ref(agent, lambda gone: self._forget(key, gone)), value)
        return value

    def pop(self, agent: Agent) -> T | None:
        """Return, and forget, an agent's value; None if there is none."""
        held = self._held.pop(id(agent), None)
        return held[1] if held is not None else None

    def _forget(self, key: int, gone: ReferenceType[Agent]) -> None:
        held = self._held.get(key)
        if held is not None and held[0] is gone:  # another agent may have the address by now
            del self._held[key]
