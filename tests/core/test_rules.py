"""What is protected whatever the probabilities, under which name, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from agentscope_compaction import CompactionProposal, DecisionReason, compact_context
from agentscope_compaction.testing import HistoryBuilder, ScriptedDecisionModel, check_proposal

pytestmark = pytest.mark.anyio

BIG = "x" * 1_000
R = DecisionReason


def base() -> HistoryBuilder:
    """First message with a call, a middle reply with call ``mid``, a recent one with ``end``."""
    builder = HistoryBuilder().reply().call("A", {}, BIG, "first")
    builder.user("task").reply().call("A", {}, BIG, "mid")
    return builder.user("more").reply().call("A", {}, BIG, "end")


def blocks(builder: HistoryBuilder, call_id: str = "mid") -> list[dict[str, Any]]:
    """The call and result of one id."""
    return [b for m in builder.messages for b in m["content"] if b.get("id") == call_id]


async def reasons(
    builder: HistoryBuilder, changes: dict[str, Any] | None = None, **options: Any
) -> dict[str, DecisionReason]:
    """Drop everything the rules allow; the reason per call id."""
    request = {**builder.request(**{"preserve_recent_messages": 1, **options}), **(changes or {})}
    proposal = await compact_context(request, ScriptedDecisionModel(0.0))
    check_proposal(builder.messages, proposal)
    return {d.call_id: d.reason for d in proposal.decisions}


async def test_positions() -> None:
    """The first message and the last ones are protected, between them the model decides."""
    assert await reasons(base()) == {
        "first": R.FIRST_MESSAGE,
        "mid": R.CALL_NOT_NEEDED,
        "end": R.RECENT_MESSAGE,
    }


@pytest.mark.parametrize(
    ("options", "end", "mid"),
    [
        ({"preserve_recent_messages": 0}, R.CALL_NOT_NEEDED, R.CALL_NOT_NEEDED),
        ({"preserve_recent_messages": 3}, R.RECENT_MESSAGE, R.RECENT_MESSAGE),
        ({"preserve_recent_messages": 99}, R.RECENT_MESSAGE, R.RECENT_MESSAGE),
        (
            {"preserve_recent_messages": 0, "preserve_recent_calls": 1},
            R.RECENT_CALL,
            R.CALL_NOT_NEEDED,
        ),
        ({"preserve_recent_messages": 0, "preserve_recent_calls": 2}, R.RECENT_CALL, R.RECENT_CALL),
    ],
)
async def test_recency(options: dict[str, Any], end: R, mid: R) -> None:
    """Recency counts messages, calls, or nothing."""
    found = await reasons(base(), **options)
    assert (found["end"], found["mid"]) == (end, mid)


async def test_recent_calls_count_every_call_block() -> None:
    """Calls without a result and ineligible ones use up recency too."""
    builder = base().start("B", {}, "pending", state="allowed")
    found = await reasons(builder, preserve_recent_messages=0, preserve_recent_calls=1)
    assert found["end"] == R.CALL_NOT_NEEDED


async def test_either_half_protects_the_pair() -> None:
    """A result in a recent message protects its old call."""
    builder = HistoryBuilder().user("task").start("A", {}, "a").user("wait").finish("A", BIG, "a")
    assert await reasons(builder) == {"a": R.RECENT_MESSAGE}


async def test_named_messages_and_calls() -> None:
    """Protected ids protect; ids of nothing do no harm."""
    builder = base()
    named = {"protected_message_ids": [builder.messages[2]["id"], "nobody"]}
    assert (await reasons(builder, named))["mid"] == R.PROTECTED_MESSAGE
    named = {"protected_call_ids": ["mid", "nobody"]}
    assert (await reasons(builder, named))["mid"] == R.PROTECTED_CALL


async def test_system_messages_are_protected() -> None:
    """Calls in a system message, as some hosts keep them, are never touched."""
    builder = base()
    builder.messages[2]["role"] = "system"
    assert (await reasons(builder))["mid"] == R.PROTECTED_MESSAGE


EDITS: dict[str, tuple[int, dict[str, Any], R]] = {
    "asking": (0, {"state": "asking"}, R.CALL_NOT_FINISHED),
    "no call state": (0, {"state": None}, R.CALL_NOT_FINISHED),
    "error": (1, {"state": "error"}, R.RESULT_NOT_SUCCESS),
    "denied": (1, {"state": "denied"}, R.RESULT_NOT_SUCCESS),
    "interrupted": (1, {"state": "interrupted"}, R.RESULT_NOT_SUCCESS),
    "running": (1, {"state": "running"}, R.RESULT_NOT_SUCCESS),
    "no result state": (1, {"state": None}, R.RESULT_NOT_SUCCESS),
    "empty list": (1, {"output": []}, R.NON_TEXT_OUTPUT),
    "no output": (1, {"output": None}, R.NON_TEXT_OUTPUT),
    "object": (1, {"output": {"a": BIG}}, R.NON_TEXT_OUTPUT),
    "image": (
        1,
        {"output": [{"type": "text", "text": BIG}, {"type": "data", "source": {}}]},
        R.NON_TEXT_OUTPUT,
    ),
    "text of no text": (1, {"output": [{"type": "text", "text": None}]}, R.NON_TEXT_OUTPUT),
    "other name": (1, {"name": "B"}, R.TOOL_NAME_MISMATCH),
    "no result name": (1, {"name": None}, R.TOOL_NAME_MISMATCH),
    "our marker": (1, {"output": "head\n[[compacted: 9 of 10 " + BIG}, R.ALREADY_COMPACTED),
    "host marker": (1, {"output": BIG + "<<<TRUNCATED>>>" + BIG}, R.ALREADY_COMPACTED),
    "metadata": (1, {"metadata": {"compaction": {"chars": 9}}}, R.ALREADY_COMPACTED),
    "empty metadata": (1, {"metadata": {"compaction": {}}}, R.ALREADY_COMPACTED),
    "marker in a list": (
        1,
        {"output": [{"type": "text", "text": BIG}, {"type": "text", "text": "<<<TRUNCATED>>>"}]},
        R.ALREADY_COMPACTED,
    ),
    "null metadata": (1, {"metadata": None}, R.CALL_NOT_NEEDED),
    "odd metadata": (1, {"metadata": ["compaction"]}, R.CALL_NOT_NEEDED),
    "blank text": (1, {"output": ""}, R.CALL_NOT_NEEDED),
}


@pytest.mark.parametrize(("half", "edit", "reason"), EDITS.values(), ids=EDITS)
async def test_state_and_shape(half: int, edit: dict[str, Any], reason: R) -> None:
    """A call that is not finished, failed, not text, mismatched or a stub is named as such."""
    builder = base()
    blocks(builder)[half].update(edit)
    assert (await reasons(builder))["mid"] == reason


async def test_tool_names() -> None:
    """Only tools on the allow-list are asked about; a call without a name is on no list."""
    builder = base()
    assert (await reasons(builder, {"eligible_tool_names": ["B"]}))["mid"] == R.TOOL_NOT_ELIGIBLE
    for block in blocks(builder):
        del block["name"]
    assert (await reasons(builder, {"eligible_tool_names": [""]}))["mid"] == R.TOOL_NAME_MISMATCH


async def test_first_rule_in_the_list_is_the_reason() -> None:
    """Where all rules hold, removing one after the other names them in the documented order."""
    builder = HistoryBuilder().reply()
    builder.start("A", {}, "x", state="asking")
    builder.finish("B", [{"type": "data"}], "x", state="error")
    call, result = blocks(builder, "x")
    request = builder.request(preserve_recent_calls=1)
    request["protected_message_ids"] = [builder.messages[0]["id"]]
    request["protected_call_ids"] = ["x"]
    request["eligible_tool_names"] = []
    options = request["options"]

    async def reason() -> DecisionReason:
        proposal = await compact_context(request, ScriptedDecisionModel(0.0))
        return proposal.decisions[0].reason

    seen = [await reason()]
    builder.messages.insert(0, HistoryBuilder().user("task").messages[0])
    seen.append(await reason())
    options["preserve_recent_messages"] = 0
    seen.append(await reason())
    options["preserve_recent_calls"] = 0
    seen.append(await reason())
    request["protected_message_ids"] = []
    seen.append(await reason())
    request["protected_call_ids"] = []
    seen.append(await reason())
    request["eligible_tool_names"] = ["A"]
    for block, edit in (
        (call, {"state": "finished"}),
        (result, {"state": "success"}),
        (result, {"output": "<<<TRUNCATED>>>"}),
        (result, {"name": "A"}),
    ):
        seen.append(await reason())
        block.update(edit)
    seen.append(await reason())
    assert seen == list(DecisionReason)[:11]


THINKING = {"type": "thinking", "thinking": "t", "id": "k", "created_at": "", "finished_at": None}


async def removal(
    extra: dict[str, Any], call_id: str = "mid", mode: str = "safe"
) -> tuple[R, CompactionProposal]:
    """Drop a call beside a thinking block with extra fields."""
    builder = HistoryBuilder().user("task").add({**THINKING, **extra})
    builder.call("A", {}, BIG, call_id).user("go on")
    request = builder.request(preserve_recent_messages=1, call_removal=mode)
    proposal = await compact_context(request, ScriptedDecisionModel(0.0))
    check_proposal(builder.messages, proposal)
    return proposal.decisions[0].reason, proposal


@pytest.mark.parametrize(
    ("extra", "unsafe"),
    [
        ({}, False),
        ({"signature": None}, False),
        ({"signature": ""}, False),
        ({"reasoning_item_id": []}, False),
        ({"signature": "EqQB"}, True),
        ({"redacted_thinking_data": "x"}, True),
        ({"reasoning_item_id": "rs_1"}, True),
        ({"anything_new": {"a": 1}}, True),
        ({"flag": False}, True),
    ],
)
async def test_provider_data_in_thinking(extra: dict[str, Any], unsafe: bool) -> None:
    """Beside thinking with provider data a call is cut, never removed."""
    reason, proposal = await removal(extra)
    action = proposal.decisions[0].action
    assert (reason, action) == (
        (R.REMOVAL_UNSAFE, "drop_result") if unsafe else (R.CALL_NOT_NEEDED, "drop_call")
    )


async def test_provider_signature_in_the_id() -> None:
    """A Gemini call that carries its signature in the id is cut, never removed."""
    reason, proposal = await removal({}, call_id="gemini_ts:" + "Q" * 3_000)
    assert (reason, proposal.decisions[0].action) == (R.REMOVAL_UNSAFE, "drop_result")
    assert proposal.decisions[0].chars_after < 600


@pytest.mark.parametrize(("mode", "action"), [("never", "drop_result"), ("always", "drop_call")])
async def test_other_removal_modes(mode: str, action: str) -> None:
    """``never`` always cuts and ``always`` always removes; the reason is the model's."""
    reason, proposal = await removal({"signature": "EqQB"}, mode=mode)
    assert (reason, proposal.decisions[0].action) == (R.CALL_NOT_NEEDED, action)
