"""What a live context must not lose, beyond the stateless rules; each rule names its reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentscope_compaction.core.pairing import Pair, find_pairs
from agentscope_compaction.core.rules import removal_unsafe, signed_messages
from agentscope_compaction.core.types import JSONObject

__all__ = ["TASK_TOOLS", "finished_from", "unremovable", "untouchable"]

TASK_TOOLS = frozenset({"TaskCreate", "TaskGet", "TaskList", "TaskUpdate"})
"""AgentScope injects its task hint anew whenever no call of these is in the context."""


def finished_from(messages: Sequence[JSONObject], reply_id: str, reply_over: bool | None) -> int:
    """Return how many leading messages belong to finished replies.

    AgentScope does not mark a reply's end in the context. A reply is over when another began, when
    the caller knows (``reply_over``), or when its message ends in text with no call left open. The
    caller cannot know where a call is open: another reply of the same agent may be carrying it out.
    """
    if reply_over is True and not (messages and _open_calls(messages[-1])):
        return len(messages)
    for index, message in enumerate(messages):
        if message.get("id") == reply_id and message["role"] == "assistant":
            over = reply_over is None and _ends_in_text(messages[-1])
            return len(messages) if over else index
    return len(messages)


def _ends_in_text(message: JSONObject) -> bool:
    content = message["content"]
    ends = bool(content) and content[-1].get("type") == "text"
    return ends and not _open_calls(message)


def _open_calls(message: JSONObject) -> set[object]:
    """Return the ids of a message's calls without a result."""
    content = message["content"]
    calls = {b.get("id") for b in content if b.get("type") == "tool_call"}
    return calls - {b.get("id") for b in content if b.get("type") == "tool_result"}


def untouchable(messages: Sequence[JSONObject], finished: int) -> list[str]:
    """Return ids of calls that must stay whole while a reply runs.

    The last pair of the running reply is what team and SOP middlewares look for, and whatever
    follows an open call in the tail message belongs to the batch being executed.
    """
    if finished >= len(messages):
        return []
    tail = messages[-1]["content"]
    results = {b.get("id") for b in tail if b.get("type") == "tool_result"}
    calls = [b.get("id") for b in tail if b.get("type") == "tool_call"]
    first_open = next((n for n, call in enumerate(calls) if call not in results), len(calls))
    return [call for call in {*calls[-1:], *calls[first_open:]} if isinstance(call, str)]


def unremovable(messages: Sequence[JSONObject], finished: int) -> Callable[[Pair], bool]:
    """Return the check whether removing a pair could break the agent or its provider.

    Each message is looked at once, however many calls it holds.
    """
    signed = signed_messages(messages)
    whole = {index for index, message in enumerate(messages) if _would_think_alone(message)}
    if messages and _has_only_calls(messages[-1]):
        whole.add(len(messages) - 1)  # the tail message must not vanish

    def check(pair: Pair) -> bool:
        homes = {pair.call_at[0], pair.result_at[0]}
        return (
            max(homes) >= finished  # AgentScope's loop scans the running reply for its calls
            or pair.tool_name in TASK_TOOLS
            or removal_unsafe(pair, signed)
            or not homes.isdisjoint(whole)
        )

    return check


def _has_only_calls(message: JSONObject) -> bool:
    return all(block.get("type") in ("tool_call", "tool_result") for block in message["content"])


def _would_think_alone(message: JSONObject) -> bool:
    """Whether some thinking needs these calls: no text follows it before a hint or the end.

    Formatters send what stands between two results or hints as one assistant message, and
    providers refuse one that holds nothing but thinking.
    """
    kinds = [block.get("type") for block in message["content"]]
    spoken = [kind for kind in kinds if kind not in ("tool_call", "tool_result")]
    return any(
        kind == "thinking" and following in ("hint", None)
        for kind, following in zip(spoken, [*spoken[1:], None], strict=False)  # none: no pairs
    )


def oldest_only(messages: Sequence[JSONObject], limit: int, tools: frozenset[str]) -> list[str]:
    """Return ids of all eligible calls but the oldest ``limit``: a view holds only so many."""
    pairs = [pair for pair in find_pairs(messages).pairs if pair.tool_name in tools]
    return [pair.call_id for pair in pairs[limit:]]
