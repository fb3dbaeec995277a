"""Exact repetitions: which are stubs without being asked, and what their stubs say."""

from __future__ import annotations

from typing import Any

import pytest

from agentscope_compaction import CompactionProposal, DecisionReason, compact_context
from agentscope_compaction.testing import HistoryBuilder, ScriptedDecisionModel, check_proposal

pytestmark = pytest.mark.anyio

BIG = "same text " * 200
R = DecisionReason


async def dedupe(
    builder: HistoryBuilder, changes: dict[str, Any] | None = None, **options: Any
) -> tuple[CompactionProposal, ScriptedDecisionModel]:
    """Propose with a model that needs everything it is asked about."""
    model = ScriptedDecisionModel(1.0)
    options = {"dedupe": True, "preserve_recent_messages": 0, **options}
    builder.user("go on")
    request = {**builder.request(**options), **(changes or {})}
    proposal = await compact_context(request, model)
    check_proposal(builder.messages, proposal)
    return proposal, model


def reads(*calls: tuple[object, str]) -> HistoryBuilder:
    """A history of ``Read`` calls c0, c1, ... with inputs and outputs."""
    builder = HistoryBuilder().user("task")
    for n, (arguments, output) in enumerate(calls):
        builder.call("Read", arguments, output, f"c{n}")
    return builder


async def test_only_the_newest_copy_is_asked() -> None:
    """Earlier copies become stubs that name the holder and the archive; the newest is asked."""
    builder = reads(({"p": 1}, BIG), ({"p": 1}, BIG), ({"p": 1}, BIG))
    proposal, model = await dedupe(builder, {"source_refs": {"c0": "ref-0"}})
    assert model.asked == ["call_t3", "result_t3"]
    assert [d.reason for d in proposal.decisions] == [R.DUPLICATE, R.DUPLICATE, R.RESULT_NEEDED]
    assert [d.keep_result for d in proposal.decisions] == [None, None, 1.0]
    stub = proposal.messages[1]["content"][1]["output"]
    assert '"c2"' in stub and '"ref-0"' in stub and '"c0"' in stub
    assert proposal.stats["candidates"] == 3


async def test_stub_stays_true_when_the_holder_goes() -> None:
    """The stub of a copy names the archive too, so removing the holder leaves a way back."""
    builder = reads(({"p": 1}, BIG), ({"p": 1}, BIG)).user("go on")
    request = builder.request(dedupe=True, preserve_recent_messages=1)
    proposal = await compact_context(request, ScriptedDecisionModel(0.0))
    check_proposal(builder.messages, proposal)
    assert [d.action for d in proposal.decisions] == ["drop_result", "drop_call"]
    assert "uncompacted history" in proposal.messages[1]["content"][1]["output"]


async def test_off_by_default() -> None:
    """Without the option every copy is asked about."""
    _, model = await dedupe(reads(({"p": 1}, BIG), ({"p": 1}, BIG)), dedupe=False)
    assert len(model.asked) == 4


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ('{"a": 1, "b": [2, {"c": 3}]}', '{"b":[2,{"c":3}],"a":1}', True),
        ('{"a": 1}', '{"a": 1.0}', True),
        ('{"a": 100}', '{"a": 1e2}', True),
        ('{"a": "\\u00e9"}', '{"a": "é"}', True),
        ('{"a": 1}', '{"a": "1"}', False),
        ('{"a": 1}', '{"a": true}', False),
        ('{"a": 0}', '{"a": false}', False),
        ('{"a": null}', "{}", False),
        ('{"a": [1, 2]}', '{"a": [2, 1]}', False),
        ('{"offset": 1, "limit": 100}', '{"offset": 101, "limit": 100}', False),
        ('{"a": "é"}', '{"a": "e\u0301"}', False),
        ('{"a": 9007199254740993}', '{"a": 9007199254740992}', False),
        ('{"a": 1, "a": 2}', '{"a": 2}', False),
    ],
)
async def test_same_input_means_same_json(first: str, second: str, same: bool) -> None:
    """Inputs are compared as JSON values: key order, blanks and 1 versus 1.0 do not count."""
    proposal, _ = await dedupe(reads((first, BIG), (second, BIG)))
    assert (proposal.decisions[0].reason == R.DUPLICATE) is same


async def test_input_at_the_limit_of_nesting() -> None:
    """Deeply nested inputs that still parse are compared or left alone, never an error."""
    for depth in (200, 900, 980, 990):
        raw = '{"a":' * depth + "1" + "}" * depth
        proposal, _ = await dedupe(reads((raw, BIG), (raw, BIG)))
        assert {d.reason for d in proposal.decisions} <= {R.DUPLICATE, R.RESULT_NEEDED}


async def test_different_states_are_different() -> None:
    """A file read before and after an edit has two outputs, and both are asked about."""
    builder = reads(({"p": 1}, BIG + "old"))
    builder.call("Edit", {"p": 1}, "ok", "e").call("Read", {"p": 1}, BIG + "new", "c9")
    proposal, _ = await dedupe(builder)
    assert all(d.reason == R.RESULT_NEEDED for d in proposal.decisions)


async def test_other_tools_are_different() -> None:
    """The same text from another tool is no repetition."""
    builder = reads(({"p": 1}, BIG)).call("Cat", {"p": 1}, BIG, "c1")
    assert (await dedupe(builder))[0].stats["questions"] == 4


async def test_recurring_ids_do_not_mix() -> None:
    """Three different reads under one reused id are three outputs, not one."""
    builder = HistoryBuilder().user("task")
    for name in "abc":
        builder.call("Read", {"p": name}, BIG + name, "call_0")
    proposal, _ = await dedupe(builder, reused_ids="pair")
    assert [d.reason for d in proposal.decisions] == [R.RESULT_NEEDED] * 3


@pytest.mark.parametrize("lists", [(False, True), (True, False), (True, True)])
async def test_text_counts_not_form(lists: tuple[bool, bool]) -> None:
    """A string and a list of text blocks with the same text hold the same output."""
    builder = HistoryBuilder().user("task")
    for n, listed in enumerate(lists):
        builder.call("Read", {}, [builder.text_block(BIG)] if listed else BIG, f"c{n}")
    proposal, _ = await dedupe(builder)
    assert proposal.decisions[0].reason == R.DUPLICATE


async def test_protected_holder() -> None:
    """Where a protected pair holds the same output later, no copy is asked about."""
    builder = reads(({"p": 1}, BIG), ({"p": 1}, BIG), ({"p": 1}, BIG))
    proposal, model = await dedupe(builder, preserve_recent_calls=1)
    assert model.requests == []
    assert [d.reason for d in proposal.decisions] == [R.DUPLICATE, R.DUPLICATE, R.RECENT_CALL]
    assert proposal.reason == "compacted"
    assert '"c2"' in proposal.messages[1]["content"][1]["output"]


async def test_an_earlier_protected_copy_is_no_holder() -> None:
    """Only a later copy replaces an earlier one."""
    builder = reads(({"p": 1}, BIG), ({"p": 1}, BIG))
    proposal, _ = await dedupe(builder, {"protected_call_ids": ["c0"]})
    assert [d.reason for d in proposal.decisions] == [R.PROTECTED_CALL, R.RESULT_NEEDED]


@pytest.mark.parametrize(
    "edit",
    [
        {"state": "error"},
        {"output": [{"type": "data", "source": {}}]},
        {"metadata": {"compaction": {"chars": 1}}},
    ],
    ids=["failed", "binary", "stub"],
)
async def test_what_cannot_hold_a_copy(edit: dict[str, Any]) -> None:
    """A failed, binary or already compacted result holds nothing for others."""
    builder = reads(({"p": 1}, BIG), ({"p": 1}, BIG), ({"p": 2}, BIG))
    builder.messages[1]["content"][3].update(edit)
    proposal, _ = await dedupe(builder)
    assert proposal.decisions[0].reason == R.RESULT_NEEDED


async def test_short_repetitions_stay() -> None:
    """A repetition shorter than its stub is decided but not applied."""
    proposal, model = await dedupe(reads(({}, "ok"), ({}, "ok")))
    assert (proposal.decisions[0].reason, proposal.decisions[0].applied) == (R.DUPLICATE, False)
    assert model.asked == ["call_t2", "result_t2"]
    assert proposal.reason == "no_change"
