"""Each named check refuses the violation it is there for, and lets an honest cut pass."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from agentscope_compaction import StaleProposalError
from agentscope_compaction.agents.invariants import CHECKS, check
from agentscope_compaction.testing import HistoryBuilder

Messages = list[dict[str, Any]]


def _history() -> Messages:
    built = HistoryBuilder().user("go").think("hm").say("I look.")
    built.call("Read", {"p": 1}, "x" * 900, "a").call("TaskCreate", {"s": 1}, "made", "t")
    built.call("Read", {"p": 2}, "y" * 900, "b").say("done").user("more")
    built.reply().think("now").call("Read", {"p": 3}, "z" * 900, "c")
    return built.start("Run", {}, "open", "asking").messages


def _drop(messages: Messages, kind: str, call: str) -> None:
    for message in messages:
        message["content"] = [b for b in message["content"] if (b["type"], b["id"]) != (kind, call)]


def _orphan(m: Messages) -> None:
    _drop(m, "tool_result", "a")


def _without_open(m: Messages) -> None:
    _drop(m, "tool_call", "open")


def _pending(m: Messages) -> None:
    next(b for b in m[1]["content"] if b["id"] == "a")["state"] = "pending"


def _tail(m: Messages) -> None:
    m[-1]["id"] = "other"


def _text(m: Messages) -> None:
    m[1]["content"][1]["text"] = "I looked."


def _order(m: Messages) -> None:
    content = m[1]["content"]
    content[2:4], content[6:8] = content[6:8], content[2:4]


def _empty(m: Messages) -> None:
    next(b for b in m[1]["content"] if b["type"] == "tool_result")["output"] = ""


def _lonely(m: Messages) -> None:
    _drop(m, "tool_call", "c")
    _drop(m, "tool_result", "c")
    _drop(m, "tool_call", "open")


def _taskless(m: Messages) -> None:
    _drop(m, "tool_call", "t")
    _drop(m, "tool_result", "t")


def _invalid(m: Messages) -> None:
    next(b for b in m[1]["content"] if b["type"] == "tool_result")["output"] = 7


VIOLATIONS: dict[str, Callable[[Messages], None]] = {
    "pairs_intact": _orphan,
    "open_calls_kept": _without_open,
    "states_unchanged": _pending,
    "tail_unchanged": _tail,
    "conversation_unchanged": _text,
    "order_unchanged": _order,
    "no_empty_output": _empty,
    "no_lonely_thinking": _lonely,
    "task_call_kept": _taskless,
    "messages_valid": _invalid,
}


def test_every_check_has_a_violation() -> None:
    """No check without its test."""
    assert VIOLATIONS.keys() == CHECKS.keys()


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_violation_is_refused(name: str) -> None:
    """The check sees its violation, and the edit is refused as a whole."""
    before = _history()
    after = copy.deepcopy(before)
    VIOLATIONS[name](after)
    assert not CHECKS[name](before, after)
    with pytest.raises(StaleProposalError, match="refused"):
        check(before, after, shrinking=False)


def test_a_cut_and_a_whole_removal_pass() -> None:
    """Shortening an output and removing a whole pair break nothing."""
    before = _history()
    after = copy.deepcopy(before)
    next(b for b in after[1]["content"] if b["type"] == "tool_result")["output"] = "x"
    _drop(after, "tool_call", "b")
    _drop(after, "tool_result", "b")
    check(before, after, shrinking=True)


def test_an_edit_that_frees_nothing_is_refused() -> None:
    """Accepting must make the context smaller."""
    with pytest.raises(StaleProposalError, match="smaller"):
        check(_history(), _history(), shrinking=True)


def test_the_note_about_a_cut_does_not_count() -> None:
    """Metadata is kept in the state and sent to no model, so it is not what must get smaller."""
    before = _history()
    after = copy.deepcopy(before)
    result = next(b for b in after[1]["content"] if b["type"] == "tool_result")
    result["output"] = "x" * 899
    result["metadata"] = {"compaction": {"call_id": "a" * 200}}
    check(before, after, shrinking=True)


def test_ids_used_twice_are_no_barrier() -> None:
    """Providers that reuse an id in every reply do not make every edit look like a reordering."""
    built = HistoryBuilder().user("go").call("Read", {"p": 1}, "x" * 900, "call_0").say("one")
    built.user("more").reply().call("Read", {"p": 2}, "y" * 900, "call_0").say("two")
    after = copy.deepcopy(built.messages)
    after[1]["content"][1]["output"] = "x"
    check(built.messages, after, shrinking=True)
