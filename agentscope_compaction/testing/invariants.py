"""What must hold of every proposal, whatever the decision model answered; for tests.

Written apart from the code it checks: it pairs, compares and counts on its own.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from agentscope_compaction.core.types import Action, CompactionProposal

__all__ = ["check_proposal"]

Block = dict[str, Any]
Message = dict[str, Any]


def check_proposal(before: list[Message], proposal: CompactionProposal) -> None:
    """Check a proposal against the history it was made for.

    Only outputs of decided calls changed and only whole decided pairs went; everything else is
    byte for byte the same and in the same order; no call or result lost its partner; the history
    did not grow; the decisions and statistics say what was done. Call ids must be used once each.

    Raises:
        AssertionError: Something of that does not hold.
    """
    after = proposal.messages
    stubbed, removed = Counter[str](), Counter[str]()
    for decision in proposal.decisions:
        if decision.action is Action.DROP_CALL:
            removed[decision.call_id] += 1
        elif decision.action is Action.DROP_RESULT and decision.applied:
            stubbed[decision.call_id] += 1
    _check_blocks(before, after, stubbed, removed)
    assert _orphans(after) <= _orphans(before), "a call or result lost its partner"
    assert proposal.changed == (after != before)
    assert proposal.changed == (proposal.reason == "compacted")
    assert proposal.changed == bool(stubbed or removed)
    _check_numbers(before, proposal)


def _check_blocks(
    before: list[Message], after: list[Message], stubbed: Counter[str], removed: Counter[str]
) -> None:
    rest = iter(after)
    for message in before:
        kept = [block for block in message["content"] if not _is_tool(block, removed)]
        if not kept and message["content"]:
            continue
        new = next(rest)
        assert {**new, "content": []} == {**message, "content": []}, "a message field changed"
        assert len(new["content"]) == len(kept), "blocks went that no decision names"
        for old_block, new_block in zip(kept, new["content"], strict=True):
            if old_block != new_block:
                assert _is_tool(old_block, stubbed), "a block changed that no decision names"
                _check_stub(old_block, new_block)
    assert next(rest, None) is None, "a message appeared"


def _check_stub(old: Block, new: Block) -> None:
    assert old["type"] == "tool_result", "only results may be cut"
    assert {**new, "output": None} == {**old, "output": None}, "only the output may change"
    assert len(_text(new)) < len(_text(old)), "a stub must be shorter"
    assert _text(new), "an output must not be empty"
    if isinstance(old["output"], list):
        (block,) = new["output"]
        assert {**block, "text": ""} == {**old["output"][0], "text": ""}


def _is_tool(block: Block, ids: Counter[str]) -> bool:
    return block.get("type") in ("tool_call", "tool_result") and ids[block.get("id", "")] > 0


def _text(result: Block) -> str:
    output = result["output"]
    return output if isinstance(output, str) else "\n".join(block["text"] for block in output)


def _orphans(messages: list[Message]) -> Counter[tuple[str, str]]:
    """Calls without a later result and results without an earlier call, by kind and id."""
    waiting, orphans = Counter[str](), Counter[tuple[str, str]]()
    for message in messages:
        for block in message["content"]:
            name = repr(block.get("id"))
            if block.get("type") == "tool_call":
                waiting[name] += 1
            elif block.get("type") == "tool_result":
                if waiting[name]:
                    waiting[name] -= 1
                else:
                    orphans["result", name] += 1
    orphans.update({("call", name): count for name, count in waiting.items() if count})
    return orphans


def _check_numbers(before: list[Message], proposal: CompactionProposal) -> None:
    stats = proposal.stats
    assert stats["messages_before"] == len(before)
    assert stats["messages_after"] == len(proposal.messages)
    assert stats["chars_before"] == _size(before)
    assert stats["chars_after"] == _size(proposal.messages)
    assert stats["chars_after"] <= stats["chars_before"], "the history grew"
    assert (stats["chars_after"] < stats["chars_before"]) == proposal.changed
    assert [d.id for d in proposal.decisions] == [
        f"t{n + 1}" for n in range(len(proposal.decisions))
    ]
    for decision in proposal.decisions:
        if decision.action is Action.KEEP or not decision.applied:
            assert decision.chars_after == decision.chars_before
        else:
            assert decision.chars_after < max(1, decision.chars_before)
    first = stats["first_changed"]
    assert (first is None) == (not proposal.changed)
    if first is not None:
        assert before[:first] == proposal.messages[:first]
        assert before[first : first + 1] != proposal.messages[first : first + 1]


def _size(messages: list[Message]) -> int:
    return len(json.dumps(messages, ensure_ascii=False, separators=(",", ":")))
