"""The agent's way back to what was cut: a read-only tool over the archive.

The tool is given the agent's state with every call, so one tool serves any number of agents; it
finds the archive reference in the cut result's metadata, or, for removed calls, in the notes of
accepted proposals.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from agentscope_compaction.agents.notes import Notes
from agentscope_compaction.archive.protocol import Archive
from agentscope_compaction.core.pairing import result_text
from agentscope_compaction.core.stubs import handle_of
from agentscope_compaction.core.types import JSONObject
from agentscope_compaction.errors import ArchiveError, ArchiveNotFoundError

if TYPE_CHECKING:
    from agentscope.state import AgentState
    from agentscope.tool import FunctionTool

__all__ = ["RECALL_TOOL", "recall_tool"]

RECALL_TOOL = "recall_tool_output"
"""Name of the tool."""
DEFAULT_LIMIT = 8_000
_MOST = 50_000

ArchiveOf = Callable[[], Archive]
OnRecall = Callable[[str, str], Awaitable[None]]


def recall_tool(archive_of: ArchiveOf, on_recall: OnRecall) -> FunctionTool:
    """Return the tool.

    Args:
        archive_of: Gives the archive, when first needed.
        on_recall: Told the reference and call id of every output recalled.
    """
    from agentscope.message import TextBlock
    from agentscope.permission import PermissionBehavior, PermissionDecision
    from agentscope.tool import FunctionTool, ToolChunk

    async def recall_tool_output(
        call_id: str,
        offset: int = 0,
        limit: int = DEFAULT_LIMIT,
        pattern: str | None = None,
        _agent_state: Any = None,
    ) -> ToolChunk:
        """Read the archived original of a tool output that was compacted.

        Args:
            call_id: The call named in the compaction note.
            offset: First character (with a pattern: first matching line) to return.
            limit: Most characters to return.
            pattern: Return only lines that contain this text, ignoring case; alternatives are
                separated by "|".
        """
        text = await _recall(archive_of, on_recall, _agent_state, call_id)
        if isinstance(text, tuple):
            text = _page(text[0], offset, limit, pattern)
        return ToolChunk(content=[TextBlock(text=text)])

    return FunctionTool(
        recall_tool_output,
        name=RECALL_TOOL,
        is_read_only=True,
        is_state_injected=True,
        permission=PermissionDecision(
            behavior=PermissionBehavior.ALLOW, message="Reads the agent's own archive."
        ),
    )


async def _recall(
    archive_of: ArchiveOf, on_recall: OnRecall, state: AgentState, call_id: str
) -> tuple[str] | str:
    """Return the original as a one-tuple, or a sentence that says why there is none."""
    found = _where(state, call_id)
    if isinstance(found, str):
        return found
    known_id, refs = found
    for ref in refs:
        try:
            block = await _original(archive_of(), ref, known_id)
        except ArchiveNotFoundError:
            continue
        except ArchiveError as exc:
            return f"The archive cannot be read now ({exc}); the original is still stored there."
        text = result_text(block)
        if text is not None:
            await on_recall(ref, known_id)
            return (text,)
    return f"No archived output is known for call {call_id!r}."


async def _original(archive: Archive, ref: str, call_id: str) -> JSONObject:
    """Load a result, following the notes of passes that had cut it before the snapshot."""
    visited: set[str] = set()
    while True:
        visited.add(ref)
        block = await archive.load_result(ref, call_id)
        earlier = _archive_ref(block.get("metadata"))
        if earlier is None or earlier in visited:
            return block
        ref = earlier


def _archive_ref(metadata: object) -> str | None:
    note = metadata.get("compaction") if isinstance(metadata, dict) else None
    ref = note.get("archive_ref") if isinstance(note, dict) else None
    return ref if isinstance(ref, str) else None


def _where(state: AgentState, call_id: str) -> tuple[str, list[str]] | str:
    """Return the full call id and the references to try, newest first."""
    whole = False
    for message in state.context:
        for block in message.content:
            if block.type != "tool_result" or call_id not in (block.id, handle_of(block.id)):
                continue
            ref = _archive_ref(block.metadata)
            if ref is not None:
                return block.id, [ref]
            whole = True
    if whole:
        return f"The output of call {call_id!r} was not compacted; it is whole in the context."
    return call_id, [item["archive_ref"] for item in reversed(Notes(state).accepted)]


def _page(text: str, offset: int, limit: int, pattern: str | None) -> str:
    """Return one page of the text, or of its matching lines, and say what follows."""
    offset, limit = max(0, offset), max(1, min(limit, _MOST))
    if pattern:
        words = [word.casefold() for word in pattern.split("|") if word]
        lines = text.splitlines()
        hits = [
            f"{number}: {line}"
            for number, line in enumerate(lines, start=1)
            if any(word in line.casefold() for word in words)
        ]
        head = f"{len(hits)} of {len(lines)} lines match"
        return _cut(head, "\n".join(hits[offset:]), 0, limit)
    return _cut(f"{len(text)} characters in all", text, offset, limit)


def _cut(head: str, text: str, offset: int, limit: int) -> str:
    page = text[offset : offset + limit]
    end = offset + len(page)
    more = f"; continue with offset={end}" if end < len(text) else ""
    return f"[{head}; characters {offset} to {end}{more}]\n{page}"
