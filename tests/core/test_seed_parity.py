"""With default options the decisions are those of the seed rules, reimplemented here in brief."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agentscope_compaction import compact_context
from agentscope_compaction.testing import ScriptedDecisionModel

JSON = dict[str, Any]
ANSWER = st.sampled_from([0.0, 0.3, 0.499999, 0.5, 0.7, 1.0])


def seed(request: JSON, answers: dict[str, float]) -> list[tuple[str, str]]:
    """The seed design's decisions: (call id, action) in order of the calls."""
    messages, places = request["messages"], defaultdict[str, list[tuple[int, int, JSON]]](list)
    for m, message in enumerate(messages):
        for b, block in enumerate(message["content"]):
            if block["type"] in ("tool_call", "tool_result"):
                places[block["id"]].append((m, b, block))
    decisions: list[tuple[str, str]] = []
    for call_id, found in places.items():
        if [block["type"] for _, _, block in found] != ["tool_call", "tool_result"]:
            continue
        (cm, _, call), (rm, _, result) = found
        if not isinstance(json.loads(call["input"]), dict):
            continue
        n = len(decisions) + 1
        free = 0 < cm and rm < len(messages) - 6 and call["name"] in request["eligible_tool_names"]
        free = free and call["state"] == "finished" and result["state"] == "success"
        free = free and result["name"] == call["name"] and isinstance(result["output"], str)
        free = free and not {messages[cm]["id"], messages[rm]["id"]} & {
            *request["protected_message_ids"]
        }
        free = free and call_id not in request["protected_call_ids"]
        free = free and "system" not in (messages[cm]["role"], messages[rm]["role"])
        if not free or answers[f"result_t{n}"] >= 0.5:
            decisions.append((call_id, "keep"))
        else:
            kind = "drop_result" if answers[f"call_t{n}"] >= 0.5 else "drop_call"
            decisions.append((call_id, kind))
    return decisions


@st.composite
def requests(draw: st.DrawFn) -> JSON:
    """A request whose blocks are mostly sound pairs, mixed with every other kind."""
    odds = st.integers(0, 9)
    blocks: list[JSON] = []
    for n in range(draw(st.integers(0, 15))):
        call_id = f"c{n if draw(odds) else max(0, n - 1)}"
        name = draw(st.sampled_from(["Read", "Grep", "Edit"]))
        call: JSON = {"type": "tool_call", "id": call_id, "name": name, "input": "{}"}
        call["state"] = "finished" if draw(odds) else "allowed"
        call["input"] = '{"p": 1}' if draw(odds) else "[]"
        result: JSON = {"type": "tool_result", "id": call_id, "output": "x" * 900}
        result["name"] = name if draw(odds) else "Other"
        result["state"] = "success" if draw(odds) else "error"
        result["output"] = "x" * 900 if draw(odds) else [{"type": "data"}]
        both = [call, result] if draw(odds) else [result, call]
        blocks += both if draw(odds) else both[:1]
        if draw(odds) < 3:
            blocks.append({"type": "text", "text": "then"})
    messages: list[JSON] = []
    for block in blocks:
        if not messages or draw(odds) < 4:
            role = draw(st.sampled_from(["user", "assistant", "assistant", "assistant", "system"]))
            messages.append({"role": role, "id": f"m{len(messages)}", "content": []})
        messages[-1]["content"].append(block)
    for _ in range(draw(st.integers(0, 6))):
        messages.append({"role": "user", "id": f"m{len(messages)}", "content": []})
    return {
        "messages": messages,
        "goal": "go",
        "eligible_tool_names": ["Read", "Grep"],
        "protected_message_ids": draw(st.lists(st.sampled_from(["m1", "m2", "m3"]), max_size=1)),
        "protected_call_ids": draw(st.lists(st.sampled_from(["c1", "c2", "c5"]), max_size=1)),
    }


@settings(max_examples=250, deadline=None)
@given(request=requests(), values=st.lists(ANSWER, min_size=30, max_size=30))
def test_seed_parity(request: JSON, values: list[float]) -> None:
    """On random histories and answers our decisions are the seed's, one for one."""
    names = [f"{kind}_t{n}" for n in range(1, 16) for kind in ("call", "result")]
    answers = dict(zip(names, values, strict=True))
    proposal = asyncio.run(compact_context(request, ScriptedDecisionModel(answers)))
    assert [(d.call_id, d.action.value) for d in proposal.decisions] == seed(request, answers)
