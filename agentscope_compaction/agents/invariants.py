"""What an edit of a live context must never break, each a named check.

The sources are AgentScope's own readers of ``agent.state.context``; a violated check refuses the
edit, nothing is repaired silently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from pydantic import ValidationError

from agentscope_compaction.agents.limits import TASK_TOOLS
from agentscope_compaction.core.jsontext import compact
from agentscope_compaction.core.types import JSONObject
from agentscope_compaction.errors import StaleProposalError

__all__ = ["CHECKS", "check"]

Context = Sequence[JSONObject]
_TOOL_TYPES = ("tool_call", "tool_result")


def check(before: Context, after: Context, *, shrinking: bool) -> None:
    """Run every check on a context and its edited form.

    Args:
        before: The live context, as JSON.
        after: What it is to become.
        shrinking: Whether the edit must make what a model is sent of it smaller (accepting) or
            not (restoring).

    Raises:
        StaleProposalError: Naming the first violated check.
    """
    for name, holds in CHECKS.items():
        if not holds(before, after):
            raise StaleProposalError(f"refused: the edit would break {name}")
    if shrinking and _sent_chars(after) >= _sent_chars(before):
        raise StaleProposalError("refused: the edit would not make the context smaller")


def _sent_chars(context: Context) -> int:
    """Measure a context without the results' metadata: no formatter sends it to a model.

    The note about a cut output is kept there; where the output is hardly longer than its stub, the
    note alone would let the saved state look larger.
    """
    sent = [
        {key: value for key, value in block.items() if key != "metadata"}
        if block.get("type") == "tool_result"
        else block
        for block in _blocks(context)
    ]
    return len(compact(sent))


def _blocks(context: Context, *kinds: str) -> list[JSONObject]:
    return [b for m in context for b in m["content"] if not kinds or b.get("type") in kinds]


def _unpaired(context: Context) -> Counter[tuple[str, str]]:
    """Calls and results that are not one call followed by one result."""
    calls: Counter[str] = Counter()
    odd: Counter[tuple[str, str]] = Counter()
    for block in _blocks(context, *_TOOL_TYPES):
        key = str(block.get("id"))
        if block["type"] == "tool_call":
            calls[key] += 1
        elif calls[key]:
            calls[key] -= 1
        else:
            odd["tool_result", key] += 1
    odd.update({("tool_call", key): count for key, count in calls.items() if count})
    return odd


def pairs_intact(before: Context, after: Context) -> bool:
    """No orphan appears: a call without result freezes ``cur_iter`` or runs again."""
    return not _unpaired(after) - _unpaired(before)


def open_calls_kept(before: Context, after: Context) -> bool:
    """Calls that run or wait for the user stay, in place and state."""
    return _unpaired(after) == _unpaired(before)


def states_unchanged(before: Context, after: Context) -> bool:
    """Every call and result left keeps its state: PENDING calls are executed."""
    old = Counter(_state(b) for b in _blocks(before, *_TOOL_TYPES))
    return not Counter(_state(b) for b in _blocks(after, *_TOOL_TYPES)) - old


def _state(block: JSONObject) -> tuple[str, str, str, str]:
    return (block["type"], str(block.get("id")), str(block.get("name")), str(block.get("state")))


def tail_unchanged(before: Context, after: Context) -> bool:
    """All human-in-the-loop logic looks at the tail message by role, name and id."""
    if not before or not after:
        return not before and not after
    return all(before[-1].get(key) == after[-1].get(key) for key in ("id", "role", "name"))


def conversation_unchanged(before: Context, after: Context) -> bool:
    """Texts, thinking, hints and data stay byte for byte and in order."""
    return _conversation(before) == _conversation(after)


def _conversation(context: Context) -> list[JSONObject]:
    return [block for block in _blocks(context) if block.get("type") not in _TOOL_TYPES]


def order_unchanged(before: Context, after: Context) -> bool:
    """What is left stands in its old order, so that repeated errors are still recognised."""
    old = map(_key, _blocks(before))  # one pass over both: ids may occur more than once
    return all(key in old for key in map(_key, _blocks(after)))


def _key(block: JSONObject) -> tuple[str, str]:
    return (str(block.get("type")), str(block.get("id")))


def no_empty_output(before: Context, after: Context) -> bool:
    """No output becomes empty: providers refuse empty text."""
    empty = Counter(_key(b) for b in _blocks(before, "tool_result") if not b.get("output"))
    return (
        not Counter(_key(b) for b in _blocks(after, "tool_result") if not b.get("output")) - empty
    )


def no_lonely_thinking(before: Context, after: Context) -> bool:
    """Nothing but thinking is left between two results or hints: providers refuse it."""
    return _lonely_thinking(after) <= _lonely_thinking(before)


def _lonely_thinking(context: Context) -> int:
    """Count the assistant messages of only thinking that formatters would make of a context."""
    lonely = 0
    for message in context:
        group: set[object] = set()
        for kind in [*(block.get("type") for block in message["content"]), "hint"]:
            if kind in ("tool_result", "hint"):
                lonely += group == {"thinking"}
                group = set()
            else:
                group.add(kind)
    return lonely


def task_call_kept(before: Context, after: Context) -> bool:
    """A task call stays if there was one, or AgentScope injects its hint in every iteration."""
    return _has_task_call(after) or not _has_task_call(before)


def _has_task_call(context: Context) -> bool:
    return any(block.get("name") in TASK_TOOLS for block in _blocks(context, "tool_call"))


def messages_valid(before: Context, after: Context) -> bool:
    """Every changed message is one AgentScope can load (assignment alone validates nothing)."""
    from agentscope.message import Msg

    known = {id(message) for message in before}
    try:
        for message in after:
            if id(message) not in known and message not in before:
                Msg.model_validate(message)
    except ValidationError:
        return False
    return True


CHECKS: Mapping[str, Callable[[Context, Context], bool]] = {
    function.__name__: function
    for function in (
        pairs_intact,
        open_calls_kept,
        states_unchanged,
        tail_unchanged,
        conversation_unchanged,
        order_unchanged,
        no_empty_output,
        no_lonely_thinking,
        task_call_kept,
        messages_valid,
    )
}
"""Every check by name."""
