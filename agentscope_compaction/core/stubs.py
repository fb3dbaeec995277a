"""The text left in place of an omitted output, and how such text is recognised again.

A stub is a pure function of the output, so provider prompt caches stay valid. It says that the
call succeeded, how much is missing and where it is; it gives no orders (an agent told to run
again, or not to, does so for ever).
"""

from __future__ import annotations

from dataclasses import dataclass

from agentscope_compaction.core.facts import select_facts
from agentscope_compaction.core.jsontext import compact, digest
from agentscope_compaction.core.options import CompactionOptions
from agentscope_compaction.core.types import JSONObject

__all__ = ["MARKER", "Recovery", "handle_of", "is_compacted", "stub_text"]

MARKER = "[[compacted: "
"""How a stub's note begins."""
_HOST_MARKER = "<<<TRUNCATED>>>"
"""What AgentScope leaves when it cuts an oversized result (``agent/_agent.py``)."""
_LONGEST_HANDLE = 80


@dataclass(frozen=True, slots=True)
class Recovery:
    """Where the original of one output is."""

    call_id: str
    source_ref: str | None = None
    holder: str | None = None
    """Id of a later call that holds the same output."""


def handle_of(call_id: str) -> str:
    """Return a short name for a call id: itself, or a digest where a provider made it huge.

    Gemini stores a thought signature of thousands of characters inside the id.
    """
    if len(call_id) <= _LONGEST_HANDLE:
        return call_id
    return "sha256:" + digest(call_id)[:16]


def is_compacted(result: JSONObject, text: str) -> bool:
    """Whether this output is already a stub, ours or the host's."""
    metadata = result.get("metadata")
    if isinstance(metadata, dict) and metadata.get("compaction") is not None:
        return True
    return MARKER in text or _HOST_MARKER in text


def stub_text(text: str, recovery: Recovery, options: CompactionOptions) -> str:
    """Return the prefix, the note, the facts and the suffix that replace an output."""
    head = text[: _whole(text, options.truncate_head_chars)]
    tail_from = max(len(head), _whole(text, len(text) - options.truncate_tail_chars))
    tail = text[tail_from:]
    omitted = text[len(head) : tail_from]
    note = (
        f"{MARKER}{len(omitted)} of {len(text)} characters of this successful output omitted; "
        f"{_where(recovery)}]]"
    )
    facts = ""
    if recovery.holder is None:
        budget = min(int(len(omitted) * options.facts_ratio), options.facts_max_chars)
        facts = select_facts(omitted, budget, known=f"{head}\n{tail}") if budget else ""
    return "\n".join(part for part in (head, note, facts, tail) if part)


def _where(recovery: Recovery) -> str:
    call = f"call {compact(handle_of(recovery.call_id))}"
    if recovery.source_ref is not None:
        place = f"original archived as {compact(recovery.source_ref)}, {call}"
    else:
        place = f"original in the uncompacted history, {call}"
    if recovery.holder is None:
        return place
    return f"same output as later call {compact(handle_of(recovery.holder))}; {place}"


def _whole(text: str, cut: int) -> int:
    """Move a cut that would fall inside a surrogate pair before it."""
    inside = 0 < cut < len(text)
    if inside and "\ud800" <= text[cut - 1] <= "\udbff" and "\udc00" <= text[cut] <= "\udfff":
        return cut - 1
    return cut
