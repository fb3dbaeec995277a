"""The agent's way back to what was cut: a read-only tool over the archive.

The tool is given the agent's state with every call, so one tool serves any number of agents; it
finds the archive reference in the cut result's metadata, or, for removed calls, in the notes of
accepted proposals. Some providers use an id again in every reply; results that share one are told
apart by their other fields, and all that were cut are shown.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from agentscope_compaction.agents.bounded import bounded
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
_SILENT = "The archive does not answer now; the original is still stored there."

ArchiveOf = Callable[[], Archive]
OnRecall = Callable[[str, str], Awaitable[None]]


def recall_tool(archive_of: ArchiveOf, on_recall: OnRecall, seconds: float) -> FunctionTool:
    """Return the tool.

    Args:
        archive_of: Gives the archive, when first needed.
        on_recall: Told the reference and call id of every output recalled.
        seconds: Time for one recall; an archive that takes longer is said not to answer.
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
            offset: First character (with a pattern: first matching line, from 0) to return.
            limit: Most characters to return.
            pattern: Return only lines that contain this text, ignoring case; alternatives are
                separated by "|".
        """
        found: list[tuple[str] | str] = []
        recalling = _recall(archive_of, on_recall, _agent_state, call_id, found.append)
        failure = await bounded(recalling, seconds)
        if not found and isinstance(failure, Exception) and not isinstance(failure, TimeoutError):
            raise failure
        text = found[0] if found else _SILENT
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
    archive_of: ArchiveOf,
    on_recall: OnRecall,
    state: AgentState,
    call_id: str,
    tell: Callable[[tuple[str] | str], None],
) -> None:
    """Tell the original as a one-tuple, or a sentence that says why there is none; then count."""
    found = _where(state, call_id)
    if isinstance(found, str):
        return tell(found)
    for ref in found.refs:
        try:
            text = await _original_text(archive_of(), ref, found)
        except ArchiveNotFoundError:
            continue
        except ArchiveError as exc:
            why = f"The archive cannot be read now ({exc}); the original is still stored there."
            return tell(why)
        if text is not None:
            tell((text,))
            return await on_recall(ref, found.call_id)
    return tell(f"No archived output is known for call {call_id!r}.")


async def _original_text(archive: Archive, ref: str, found: _Found) -> str | None:
    if not found.shared:
        return result_text(await _original(archive, ref, found.call_id))
    blocks = [await _original_of(archive, block) for block in found.shared]
    texts = [result_text(block) or "" for block in blocks]
    if len(texts) == 1:
        return texts[0]
    parts = enumerate(texts, start=1)
    return "\n".join(f"[output {n} of {len(texts)} under this id]\n{text}" for n, text in parts)


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


async def _original_of(archive: Archive, block: JSONObject) -> JSONObject:
    """Load the original of one of several results that share an id, told apart by its fields."""
    visited: set[str] = set()
    while (ref := _archive_ref(block.get("metadata"))) is not None and ref not in visited:
        visited.add(ref)
        content = (other for message in await archive.load(ref) for other in message["content"])
        alike = [other for other in content if _fields(other) == _fields(block)]
        if not alike:
            raise ArchiveNotFoundError("the archived snapshot holds no such result")
        block = next((other for other in alike if _has_length(other, block)), alike[0])
    return block


def _fields(block: JSONObject) -> JSONObject:
    """All that a cut leaves as it is."""
    return {key: value for key, value in block.items() if key not in ("output", "metadata")}


def _has_length(original: JSONObject, cut: JSONObject) -> bool:
    chars: object = cut["metadata"]["compaction"].get("chars")
    return len(result_text(original) or "") == chars


def _archive_ref(metadata: object) -> str | None:
    note = metadata.get("compaction") if isinstance(metadata, dict) else None
    ref = note.get("archive_ref") if isinstance(note, dict) else None
    return ref if isinstance(ref, str) else None


@dataclass(frozen=True, slots=True)
class _Found:
    """What is known about a call: its full id and the references to try, newest first."""

    call_id: str
    refs: Sequence[str]
    shared: Sequence[JSONObject] = ()
    """The cut results, where the context holds several results under this id."""


def _where(state: AgentState, call_id: str) -> _Found | str:
    blocks = (block for message in state.context for block in message.content)
    here = [b for b in blocks if b.type == "tool_result" and call_id in (b.id, handle_of(b.id))]
    cut = [block for block in here if _archive_ref(block.metadata) is not None]
    if cut:
        refs = [ref for block in cut if (ref := _archive_ref(block.metadata)) is not None]
        shared = [block.model_dump(mode="json") for block in cut] if len(here) > 1 else ()
        return _Found(cut[0].id, refs[:1], shared)
    if here:
        return f"The output of call {call_id!r} was not compacted; it is whole in the context."
    return _Found(call_id, [item["archive_ref"] for item in reversed(Notes(state).accepted)])


def _page(text: str, offset: int, limit: int, pattern: str | None) -> str:
    """Return one page of the text, or of its matching lines, and say what follows.

    Models send whole numbers as ``5.0``, too, and a JSON Schema lets them.
    """
    offset, limit = max(0, int(offset)), max(1, min(int(limit), _MOST))
    if pattern:
        return _matching(text, offset, limit, pattern)
    page = text[offset : offset + limit]
    end = offset + len(page)
    more = f"; continue with offset={end}" if end < len(text) else ""
    return f"[{len(text)} characters in all; characters {offset} to {end}{more}]\n{page}"


def _matching(text: str, offset: int, limit: int, pattern: str) -> str:
    """Return whole matching lines from the match ``offset`` on, as many as fit; at least one.

    A line longer than a page is cut; the head says so, and where the whole of it can be read.
    """
    words = [word.casefold() for word in pattern.split("|") if word]
    lines = text.splitlines(keepends=True)
    starts = accumulate((len(line) for line in lines), initial=0)
    hits = [
        (f"{number}: {line.splitlines()[0]}", start)
        for number, (line, start) in enumerate(zip(lines, starts, strict=False), start=1)
        if any(word in line.casefold() for word in words)
    ]
    page, notes = hits[offset : offset + 1], ""
    if page and len(page[0][0]) > limit:
        notes = f"; a long line is cut: read it without pattern from offset={page[0][1]}"
    room = limit - sum(len(line) for line, _ in page)
    for line, start in hits[offset + 1 :]:
        room -= len(line) + 1
        if room < 0:
            break
        page.append((line, start))
    if offset + len(page) < len(hits):
        notes += f"; continue with offset={offset + len(page)}"
    head = f"[{len(hits)} of {len(lines)} lines match; {len(page)} shown{notes}]"
    return "\n".join([head, *(line[:limit] for line, _ in page)])
