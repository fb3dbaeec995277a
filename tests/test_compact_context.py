"""``compact_context`` from outside: what goes in, what comes out, and what never changes."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from agentscope_compaction import Action, CompactionRequest, DecisionReason, InvalidSnapshotError
from agentscope_compaction.testing import HistoryBuilder, check_proposal
from tests.compacting import history, propose

pytestmark = pytest.mark.anyio

STATS = {
    *("messages_before", "messages_after", "chars_before", "chars_after"),
    *("tokens_before", "tokens_after", "tokenizer", "candidates", "protected", "skipped"),
    *("state_tokens", "state_stage", "requests", "questions", "usage", "elapsed_ms"),
    *("first_changed", "model", "redactions", "thresholds"),
    *("options", "reused"),
}


@pytest.mark.parametrize(
    ("call", "result", "action", "reason"),
    [
        (0.0, 0.5, Action.KEEP, DecisionReason.RESULT_NEEDED),
        (1.0, 1.0, Action.KEEP, DecisionReason.RESULT_NEEDED),
        (0.5, 0.49, Action.DROP_RESULT, DecisionReason.RESULT_NOT_NEEDED),
        (0.49, 0.49, Action.DROP_CALL, DecisionReason.CALL_NOT_NEEDED),
        (0.0, 0.0, Action.DROP_CALL, DecisionReason.CALL_NOT_NEEDED),
    ],
)
async def test_seed_rule(
    call: float, result: float, action: Action, reason: DecisionReason
) -> None:
    """A needed result keeps all, a needed call keeps itself, else both go."""
    builder = history()
    proposal, _ = await propose(builder.request(), {"call": call, "result": result})
    check_proposal(builder.messages, proposal)
    assert {(d.action, d.reason) for d in proposal.decisions} == {(action, reason)}
    assert {(d.keep_call, d.keep_result) for d in proposal.decisions} == {(call, result)}


async def test_keep_all_is_identity() -> None:
    """With every output needed the proposal equals the input and says that nothing changed."""
    builder = history()
    proposal, _ = await propose(builder.request(), 1.0)
    assert proposal.messages == builder.messages
    assert (proposal.changed, proposal.reason) == (False, "no_change")
    assert proposal.stats["first_changed"] is None


async def test_removed_pairs_leave_all_other_blocks() -> None:
    """Removing every call leaves text and thinking of the same message byte for byte."""
    builder = history()
    proposal, _ = await propose(builder.request(), 0.0)
    assert [b["type"] for b in proposal.messages[1]["content"]] == ["thinking", "text", "text"]
    assert [d.chars_after for d in proposal.decisions] == [0, 0, 0]
    assert proposal.stats["first_changed"] == 1


async def test_a_message_left_without_blocks_goes() -> None:
    """A message goes only when removal emptied it; one that was empty before stays."""
    builder = HistoryBuilder().user("task").reply().call("Read", {}, "x" * 900)
    builder.message("assistant", [])
    for n in range(6):
        builder.user(f"{n}")
    proposal, _ = await propose(builder.request())
    check_proposal(builder.messages, proposal)
    assert [m["role"] for m in proposal.messages[:2]] == ["user", "assistant"]
    assert (proposal.stats["messages_before"], proposal.stats["messages_after"]) == (9, 8)


async def test_statistics_are_complete() -> None:
    """Every documented figure is present, and the plain ones are right."""
    builder = history()
    proposal, model = await propose(builder.request(), {"result": 0.0, "call": 1.0})
    stats = proposal.stats
    assert STATS <= set(stats)
    assert (stats["candidates"], stats["protected"], stats["questions"]) == (3, 0, 6)
    assert (stats["requests"], stats["state_stage"], stats["model"]) == (1, "full", "scripted-1")
    assert stats["usage"] == {"input_tokens": 100, "output_tokens": 6}
    assert (stats["messages_before"], stats["messages_after"], stats["first_changed"]) == (8, 8, 1)
    assert [d.chars_before for d in proposal.decisions] == [2_002] * 3
    check_proposal(builder.messages, proposal)
    assert stats["tokens_after"] < stats["tokens_before"]
    assert model.asked[:2] == ["call_t1", "result_t1"]


async def test_nothing_eligible_asks_nothing() -> None:
    """An empty allow-list means that no call is ever compacted and no model is asked."""
    builder = history()
    proposal, model = await propose(builder.request(tools=[]))
    assert (proposal.reason, model.requests) == ("no_candidates", [])
    assert proposal.messages == builder.messages
    assert STATS <= set(proposal.stats)


@pytest.mark.parametrize("messages", [[], [{"role": "user", "content": []}]])
async def test_tiny_histories(messages: list[dict[str, Any]]) -> None:
    """No message, or one without blocks and without any optional field, is legal."""
    proposal, _ = await propose({"messages": messages, "goal": "go", "eligible_tool_names": ["A"]})
    assert (proposal.messages, proposal.reason) == (messages, "no_candidates")


@pytest.mark.parametrize("form", ["mapping", "model", "text", "bytes"])
async def test_forms_of_a_request(form: str) -> None:
    """A mapping, a model, JSON text and JSON bytes give the same proposal."""
    request = history().request()
    forms = {
        "mapping": request,
        "model": CompactionRequest(**request),
        "text": json.dumps(request),
        "bytes": json.dumps(request, ensure_ascii=False).encode(),
    }
    proposal, _ = await propose(forms[form])
    expected, _ = await propose(request)
    assert proposal.proposal_id == expected.proposal_id
    assert proposal.messages == expected.messages


async def test_ids_name_what_they_identify() -> None:
    """The same request and answers give the same ids; another answer or option another one."""
    first, _ = await propose(history().request())
    again, _ = await propose(history().request())
    other_answer, _ = await propose(history().request(), 0.1)
    other_option, _ = await propose(history().request(truncate_head_chars=10))
    same = {"elapsed_ms", "usage"}
    assert first.model_dump(exclude={"stats"}) == again.model_dump(exclude={"stats"})
    assert {k: v for k, v in first.stats.items() if k not in same} == {
        k: v for k, v in again.stats.items() if k not in same
    }
    ids = {first.proposal_id, other_answer.proposal_id, other_option.proposal_id}
    assert len(ids) == 3
    assert first.snapshot_digest == other_option.snapshot_digest
    assert first.archive_ref is None


async def test_input_is_unchanged_and_unshared() -> None:
    """Editing every part of the proposal leaves the caller's request alone, and vice versa."""
    builder = history()
    request = builder.request()
    before = copy.deepcopy(request)
    proposal, _ = await propose(request, 1.0)
    for message in proposal.messages:
        for block in message["content"]:
            block.clear()
        message.clear()
    assert request == before
    proposal, _ = await propose(request, 1.0)
    for message in request["messages"]:
        message["content"].clear()
        message.clear()
    assert proposal.messages == before["messages"]


async def test_caller_may_change_its_history_while_the_model_is_asked() -> None:
    """The proposal is made of the snapshot at the time of the call, whatever happens meanwhile."""
    builder = history()
    before = copy.deepcopy(builder.messages)
    request = builder.request()

    def vandal(name: str, state: dict[str, Any]) -> float:
        builder.messages[1]["content"].clear()
        builder.messages.append({"role": "user", "content": []})
        request["options"]["keep_threshold"] = 1.0
        return 0.6

    proposal, _ = await propose(request, vandal)
    assert proposal.messages == before
    check_proposal(before, proposal)


async def test_request_model_that_was_damaged_later() -> None:
    """A request model whose lists were changed into nonsense is an invalid snapshot."""
    request = CompactionRequest(**history().request())
    request.messages[0]["content"] = None
    with pytest.raises(InvalidSnapshotError):
        await propose(request)


async def test_second_run_changes_nothing() -> None:
    """A proposal's history, proposed again with the same answers, is left as it is."""
    builder = history(6)
    builder.messages[1]["content"][3]["output"] = "kept " * 200
    answers = {"call_t2": 0.0, "call_t3": 0.0, "result_t1": 1.0, "result": 0.0, "call": 1.0}
    first, _ = await propose(builder.request(facts_ratio=0.2), answers)
    again = {"messages": first.messages, "goal": "g", "eligible_tool_names": ["Read"]}
    second, model = await propose(again, {"result_t1": 1.0, "result": 0.0, "call": 1.0})
    assert first.changed and second.reason == "no_change"
    assert second.messages == first.messages
    assert set(model.asked) == {"call_t1", "result_t1"}
    assert {d.reason for d in second.decisions[1:]} == {DecisionReason.ALREADY_COMPACTED}


async def test_unknown_blocks_and_fields_survive() -> None:
    """Block types and fields of the future stay as they are and never raise."""
    builder = history()
    builder.messages[1]["content"][2]["future"] = {"a": [1]}
    odd: list[dict[str, Any]] = [
        {"type": "future", "x": 1},
        {"type": "hint", "hint": [{"type": "text", "text": "h"}, {"type": "data", "source": {}}]},
        {"type": ["text"], "text": 3},
        {"text": "no type"},
        {},
    ]
    builder.messages[1]["content"] += odd
    proposal, _ = await propose(builder.request(), {"result": 0.0, "call": 1.0})
    check_proposal(builder.messages, proposal)
    assert proposal.messages[1]["content"][-5:] == odd
    assert proposal.messages[1]["content"][2]["future"] == {"a": [1]}
