"""Evict AgentScope's read-cache entries of files whose content the agent no longer sees.

``Edit`` and ``Write`` are allowed on a cached file (``tool/_builtin/_edit.py``). With the read's
output cut, the agent would edit what it cannot see; without the entry it reads again first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentscope_compaction.core.jsontext import object_of

if TYPE_CHECKING:
    from agentscope.message import Msg
    from agentscope.state import AgentState

__all__ = ["evict_unseen"]

_FILE_TOOLS = ("Read", "Write", "Edit")


def evict_unseen(state: AgentState, before: list[Msg]) -> None:
    """Drop the entries of files that a cut ``Read`` showed and no whole result shows any more.

    Args:
        state: The agent's state after the edit.
        before: Its context before the edit.
    """
    seen_before, seen = _seen(before), _seen(state.context)
    lost = seen_before["Read"] - set().union(*seen.values())
    if lost:
        cache = state.tool_context.read_file_cache
        state.tool_context.read_file_cache = [e for e in cache if e.file_path not in lost]


def _seen(context: list[Msg]) -> dict[str, set[str]]:
    """Paths of successful file-tool calls whose result is whole, by tool."""
    paths: dict[str, str] = {}
    seen: dict[str, set[str]] = {tool: set() for tool in _FILE_TOOLS}
    for message in context:
        for block in message.content:
            if block.type == "tool_call" and block.name in _FILE_TOOLS:
                path = (object_of(block.input) or {}).get("file_path")
                if isinstance(path, str):
                    paths[block.id] = path
            elif block.type == "tool_result" and block.id in paths and block.name in seen:
                if block.state == "success" and "compaction" not in block.metadata:
                    seen[block.name].add(paths[block.id])
    return seen
