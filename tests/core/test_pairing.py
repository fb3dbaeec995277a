"""Which blocks make a pair: by id, across the whole history; everything else is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from agentscope_compaction import CompactionProposal, DecisionReason, compact_context
from agentscope_compaction.testing import HistoryBuilder, ScriptedDecisionModel, check_proposal

pytestmark = pytest.mark.anyio

BIG = "x" * 1_000


async def drop_all(builder: HistoryBuilder, **options: Any) -> CompactionProposal:
    """Propose with a model that needs nothing; the last two messages are recent."""
    builder.user("go on").user("now")
    options = {"preserve_recent_messages": 2, **options}
    return await compact_context(builder.request(**options), ScriptedDecisionModel(0.0))


def task() -> HistoryBuilder:
    """A history that starts with a task."""
    return HistoryBuilder().user("task").reply()


async def test_results_may_come_late_and_anywhere() -> None:
    """A result far behind its call, behind other calls and texts, belongs to that call."""
    builder = task().start("A", {}, "a").say("meanwhile").start("A", {}, "b")
    builder.finish("A", BIG, "b").user("and?").finish("A", BIG, "a").say("done")
    proposal = await drop_all(builder)
    check_proposal(builder.messages, proposal)
    assert [(d.call_id, d.action) for d in proposal.decisions] == [
        ("a", "drop_call"),
        ("b", "drop_call"),
    ]


async def test_results_in_completion_order() -> None:
    """Parallel calls whose results arrive in another order are numbered in call order."""
    builder = task().start("A", {}, "1").start("A", {}, "2").start("A", {}, "3")
    for call_id in ("3", "1", "2"):
        builder.finish("A", BIG + call_id, call_id)
    proposal = await drop_all(builder, call_removal="never")
    assert [(d.id, d.call_id) for d in proposal.decisions] == [
        ("t1", "1"),
        ("t2", "2"),
        ("t3", "3"),
    ]
    assert all(d.action == "drop_result" for d in proposal.decisions)
    check_proposal(builder.messages, proposal)


ODD: dict[str, tuple[str, Any]] = {
    "call without result": ("no_result", lambda b: b.start("A", {}, "x")),
    "pending call": ("no_result", lambda b: b.start("A", {}, "x", state="asking")),
    "result without call": ("no_call", lambda b: b.finish("A", BIG, "x")),
    "denied stray result": ("no_call", lambda b: b.finish("A", BIG, "x", state="denied")),
    "result before call": ("reversed", lambda b: b.finish("A", BIG, "x").start("A", {}, "x")),
    "two calls": ("duplicate_id", lambda b: b.start("A", {}, "x").call("A", {}, BIG, "x")),
    "two results": ("duplicate_id", lambda b: b.call("A", {}, BIG, "x").finish("A", BIG, "x")),
    "interim result": (
        "duplicate_id",
        lambda b: (
            b.start("A", {}, "x").finish("A", BIG, "x", state="running").finish("A", BIG, "x")
        ),
    ),
    "aborted twin": (
        "duplicate_id",
        lambda b: b.call("A", {}, BIG, "x").finish("A", "aborted", "x", state="error"),
    ),
    "reused id": ("duplicate_id", lambda b: b.call("A", {}, BIG, "x").call("A", {}, BIG, "x")),
    **{
        f"input {raw!r:.20}": ("bad_input", lambda b, raw=raw: b.call("A", raw, BIG, "x"))
        for raw in (
            *("", "[]", '{"p": "a', "null", "3", '"s"', '{"x": NaN}', '{"x": 1e999}', "{} {}"),
            *('{"x": -Infinity}', "[" * 100_000, '{"a":' * 5_000 + "1" + "}" * 5_000),
            '{"x": ' + "9" * 5_000 + "}",
        )
    },
}


@pytest.mark.parametrize(("kind", "add"), ODD.values(), ids=ODD)
async def test_odd_blocks_are_counted_and_never_a_barrier(kind: str, add: Any) -> None:
    """What is no clean pair is untouched and counted by kind; fifty healthy pairs still go."""
    builder = task()
    add(builder)
    odd = [block for block in builder.messages[-1]["content"] if block.get("id") == "x"]
    for n in range(50):
        builder.call("A", {"n": n}, BIG)
    proposal = await drop_all(builder)
    assert proposal.stats["skipped"] == {kind: 1}
    assert [d.action for d in proposal.decisions] == ["drop_call"] * 50
    assert [b for m in proposal.messages for b in m["content"] if b.get("id") == "x"] == odd
    check_proposal(builder.messages, proposal)


@pytest.mark.parametrize("call_id", [None, 3, "", ["x"]], ids=repr)
async def test_calls_without_a_usable_id(call_id: Any) -> None:
    """Blocks whose id is no text or empty belong to nobody and stay."""
    builder = task().call("A", {}, BIG, "x").call("A", {}, BIG, "ok")
    for block in builder.messages[1]["content"][:2]:
        block["id"] = call_id
    proposal = await drop_all(builder)
    assert [d.call_id for d in proposal.decisions] == ["ok"]
    assert proposal.stats["skipped"] == {"no_call": 1, "no_result": 1}
    assert len(proposal.messages[1]["content"]) == 2


async def test_reused_ids_are_paired_on_request() -> None:
    """With ``reused_ids="pair"`` clean alternation is one decision per call, not per id."""
    builder = task().call("A", {"n": 1}, BIG + "1", "call_0").say("then")
    builder.call("A", {"n": 2}, BIG + "2", "call_0").reply().call("A", {"n": 3}, BIG, "call_0")
    request = builder.user("go on").request(preserve_recent_messages=1, reused_ids="pair")
    model = ScriptedDecisionModel({"result_t2": 1.0, "result": 0.0, "call": 1.0})
    proposal = await compact_context(request, model)
    assert [d.reason for d in proposal.decisions] == [
        DecisionReason.RESULT_NOT_NEEDED,
        DecisionReason.RESULT_NEEDED,
        DecisionReason.RESULT_NOT_NEEDED,
    ]
    outputs = [b["output"] for m in proposal.messages for b in m["content"] if "output" in b]
    assert outputs[1] == BIG + "2"
    assert "omitted" in outputs[0] and "omitted" in outputs[2]


@pytest.mark.parametrize(
    "order", ["ccrr", "crc", "crr", "rcrc", "crrc", "ccr", "rr"], ids=lambda order: order
)
async def test_unclean_alternation_is_never_paired(order: str) -> None:
    """Anything but call, result, call, result is left alone even when pairing was asked for."""
    builder = task()
    for step in order:
        builder.start("A", {}, "x") if step == "c" else builder.finish("A", BIG, "x")
    proposal = await drop_all(builder, reused_ids="pair")
    assert (proposal.decisions, proposal.stats["skipped"]) == ([], {"duplicate_id": 1})
    assert not proposal.changed


async def test_same_ids_without_the_option() -> None:
    """By default an id used twice is never touched (ids that providers reuse each turn)."""
    builder = task().call("A", {}, BIG, "call_0").call("A", {}, BIG, "call_0")
    proposal = await drop_all(builder)
    assert proposal.stats["skipped"] == {"duplicate_id": 1}
    assert proposal.messages == builder.messages


async def test_many_orphans_do_not_exhaust_the_budget() -> None:
    """Hundreds of abandoned calls with long inputs do not keep healthy pairs from being judged."""
    builder = task()
    for n in range(300):
        builder.start("A", {"text": "z" * 1_500}, f"dead{n}")
    builder.call("A", {}, BIG, "ok").start("A", {"wait": 1}, "pending", state="asking")
    proposal = await drop_all(builder, max_state_tokens=2_000)
    assert [d.action for d in proposal.decisions] == ["drop_call"]
    assert proposal.observation["open_calls"][-1]["state"] == "asking"
    assert proposal.observation["merged_calls"]["A (no result)"] > 200
