"""Properties over random histories, answers and options, through the public function."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentscope_compaction import CompactionProposal, ObservationBudgetError, compact_context
from agentscope_compaction.core.estimate import estimate_tokens
from agentscope_compaction.core.jsontext import compact
from agentscope_compaction.testing import ScriptedDecisionModel, check_proposal

JSON = dict[str, Any]
IDS = st.sampled_from([f"c{n}" for n in range(12)])
TOOLS = st.sampled_from(["Read", "Grep", "Edit"])
TEXTS = st.sampled_from(["", "ok", "\ud83d\n", "漢字" * 90, "x" * 700, "fact /srv/a.py\n" * 40])
OUTPUTS = TEXTS | st.lists(
    st.fixed_dictionaries({"type": st.sampled_from(["text", "text", "data"]), "text": TEXTS}),
    max_size=3,
)
INPUTS = st.sampled_from(
    ["{}", '{"a": 1}', '{"a":1.0}', "[]", '{"a": NaN}', '{"b": "' + "i" * 300 + '"}']
)
OTHERS = st.one_of(
    st.builds(lambda t: {"type": "text", "text": t}, TEXTS),
    st.builds(lambda t: {"type": "thinking", "thinking": t}, TEXTS),
    st.builds(lambda t: {"type": "thinking", "thinking": t, "signature": "s"}, TEXTS),
    st.builds(lambda t: {"type": "hint", "hint": t}, TEXTS),
    st.just({"type": "future", "x": 1}),
)
ROLES = st.sampled_from(["assistant", "assistant", "user", "system"])


@st.composite
def healthy(draw: st.DrawFn) -> list[JSON]:
    """A history whose ids are used once each; results follow anywhere behind their calls."""
    blocks: list[JSON] = []
    waiting: list[JSON] = []
    for n in range(draw(st.integers(1, 12))):
        name = draw(TOOLS)
        blocks.append(draw(OTHERS))
        state = draw(st.sampled_from(["finished"] * 5 + ["asking"]))
        call = {"type": "tool_call", "id": f"c{n}", "name": name, "input": draw(INPUTS)}
        blocks.append({**call, "state": state})
        state = draw(st.sampled_from(["success"] * 5 + ["error"]))
        result = {"type": "tool_result", "id": f"c{n}", "name": name, "output": draw(OUTPUTS)}
        waiting.append({**result, "state": state, "metadata": {}})
        while waiting:
            if draw(st.booleans()):
                break
            blocks.append(waiting.pop(draw(st.integers(0, len(waiting) - 1))))
    return draw(divided(blocks + waiting))


@st.composite
def divided(draw: st.DrawFn, blocks: list[JSON]) -> list[JSON]:
    """Divide blocks into messages."""
    messages: list[JSON] = [
        {"role": "user", "content": [{"type": "text", "text": "task"}], "id": "m0"},
        {"role": "assistant", "content": [], "id": "m1"},
    ]
    for block in blocks:
        if draw(st.integers(0, 3)) == 0:
            messages.append({"role": draw(ROLES), "content": [], "id": f"m{len(messages)}"})
        messages[-1]["content"].append(block)
    return messages


@st.composite
def wild(draw: st.DrawFn) -> list[JSON]:
    """A history in which ids are missing, repeated, reversed and half."""
    calls = st.fixed_dictionaries(
        {"type": st.just("tool_call"), "id": IDS | st.none(), "name": TOOLS, "input": INPUTS}
    ).map(lambda b: {**b, "state": "finished"})
    results = st.fixed_dictionaries(
        {"type": st.just("tool_result"), "id": IDS, "name": TOOLS, "output": OUTPUTS}
    ).map(lambda b: {**b, "state": "success"})
    return draw(divided(draw(st.lists(calls | results | OTHERS, max_size=40))))


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "preserve_recent_messages": st.integers(0, 4),
        "preserve_recent_calls": st.integers(0, 3),
        "truncate_head_chars": st.integers(0, 300),
        "truncate_tail_chars": st.integers(0, 300),
        "facts_ratio": st.sampled_from([0, 0.2, 1.0]),
        "max_state_tokens": st.integers(300, 4_000),
        "max_request_tokens": st.integers(900, 6_000),
        "max_questions_per_request": st.sampled_from([2, 4, 64]),
        "evidence_chars": st.sampled_from([0, 9, 400]),
        "target_tokens": st.none() | st.integers(1, 3_000),
        "call_removal": st.sampled_from(["safe", "never", "always"]),
        "dedupe": st.booleans(),
        "require_signal": st.booleans(),
        "min_saved_chars": st.sampled_from([0, 100, 2_000]),
    },
).map(lambda options: {"preserve_recent_messages": 1, **options})
ANSWERS = st.lists(st.sampled_from([0.0, 0.2, 0.49, 0.5, 0.9]), min_size=1, max_size=7)


def propose(
    messages: list[JSON], options: JSON, answers: list[float]
) -> tuple[CompactionProposal | None, ScriptedDecisionModel]:
    """Ask a model that answers by question name; None where the budget is too small."""
    model = ScriptedDecisionModel(lambda name, _: answers[sum(map(ord, name)) % len(answers)])
    tools = ["Read", "Grep"]
    request = {"messages": messages, "goal": "go", "eligible_tool_names": tools, "options": options}
    try:
        return asyncio.run(compact_context(request, model)), model
    except ObservationBudgetError:
        return None, model


CASES = settings(max_examples=120, deadline=None)


@CASES
@given(messages=healthy(), options=OPTIONS, answers=ANSWERS)
def test_invariants(messages: list[JSON], options: JSON, answers: list[float]) -> None:
    """Input unchanged; only decided outputs change; no orphan; never larger; within budget."""
    before = copy.deepcopy(messages)
    proposal, model = propose(messages, options, answers)
    assert messages == before
    if proposal is None:
        return
    check_proposal(before, proposal)
    assert proposal.stats["requests"] == len(model.requests)
    if model.requests:
        limit = options.get("max_state_tokens", 25_000)
        assert proposal.stats["state_tokens"] <= limit
        assert estimate_tokens(compact(model.requests[0][0])) <= proposal.stats["state_tokens"]
    asked = [name.partition("_")[2] for name in model.asked[::2]]
    asked_pairs = [d.id for d in proposal.decisions if d.keep_call is not None]
    assert sorted(asked, key=lambda i: int(i[1:])) == asked_pairs
    assert all(
        len(questions) <= options.get("max_questions_per_request", 64)
        for _, questions in model.requests
    )
    wire = json.loads(json.dumps(proposal.model_dump(mode="json")))
    assert CompactionProposal.model_validate(wire).messages == proposal.messages


@CASES
@given(messages=wild(), options=OPTIONS, answers=ANSWERS, reused=st.sampled_from(["keep", "pair"]))
def test_wild_histories(
    messages: list[JSON], options: JSON, answers: list[float], reused: str
) -> None:
    """Whatever the history, nothing raises, nothing grows, and all other blocks stay in order."""
    before = copy.deepcopy(messages)
    proposal, _ = propose(messages, {**options, "reused_ids": reused}, answers)
    assert messages == before
    if proposal is None:
        return
    others = [b for m in before for b in m["content"] if not b["type"].startswith("tool_")]
    kept = [b for m in proposal.messages for b in m["content"] if not b["type"].startswith("tool_")]
    assert kept == others
    assert len(compact(proposal.messages)) <= len(compact(before))
    assert tool_balance(proposal.messages) == tool_balance(before)


def tool_balance(messages: list[JSON]) -> dict[str, int]:
    """Calls minus results per id; whole pairs leave it as it is."""
    balance: dict[str, int] = {}
    for block in (b for m in messages for b in m["content"]):
        step = {"tool_call": 1, "tool_result": -1}.get(block["type"], 0)
        balance[str(block.get("id"))] = balance.get(str(block.get("id")), 0) + step
    return {key: value for key, value in balance.items() if value}


@CASES
@given(messages=healthy(), options=OPTIONS)
def test_keep_all_is_identity(messages: list[JSON], options: JSON) -> None:
    """Where every output is needed, nothing changes (repetitions aside)."""
    proposal, _ = propose(messages, {**options, "dedupe": False}, [1.0])
    if proposal is not None:
        assert proposal.messages == messages and not proposal.changed


@CASES
@given(messages=healthy(), options=OPTIONS, answer=st.sampled_from([0.0, 0.3]))
def test_second_run_is_idempotent(messages: list[JSON], options: JSON, answer: float) -> None:
    """A second run over its own output, with the same answers, changes nothing."""
    options = {**options, "keep_call_threshold": 0.2, "min_saved_chars": 0}
    first, _ = propose(messages, options, [answer])
    if first is None:
        return
    second, _ = propose(first.messages, options, [answer])
    assert second is not None
    assert second.messages == first.messages


@pytest.mark.parametrize("size", [1, 2, 3])
@CASES
@given(pairs=st.integers(1, 40))
def test_batches_are_an_ordered_partition(size: int, pairs: int) -> None:
    """The requests ask each candidate once, in order, both questions together."""
    messages: list[JSON] = [{"role": "user", "content": []}, {"role": "assistant", "content": []}]
    for n in range(pairs):
        call = {"type": "tool_call", "id": f"c{n}", "name": "Read", "input": "{}"}
        result = {"type": "tool_result", "id": f"c{n}", "name": "Read", "output": "x"}
        messages[1]["content"] += [{**call, "state": "finished"}, {**result, "state": "success"}]
    options = {"preserve_recent_messages": 0, "max_questions_per_request": 2 * size}
    options["max_concurrency"] = 1
    _, model = propose(messages, options, [1.0])
    expected = [f"{kind}_t{n}" for n in range(1, pairs + 1) for kind in ("call", "result")]
    assert model.asked == expected
    assert all(len(questions) <= 2 * size for _, questions in model.requests)
