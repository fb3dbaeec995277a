"""A proposal's wire form is JSON that reads back as the same proposal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentscope_compaction import CompactionProposal
from tests.compacting import history, propose

pytestmark = pytest.mark.anyio


async def test_wire_form_round_trips() -> None:
    """The wire form is JSON, leaves the observation out, and reads back as the same proposal."""
    builder = history()
    builder.messages[0]["extra"] = {"nested": [1, 2.5, None, True]}
    proposal, _ = await propose(builder.request(), {"result": 0.0, "call": 1.0})
    wire = proposal.model_dump(mode="json")
    assert "observation" not in wire and wire["schema_version"] == 1
    back = CompactionProposal.model_validate(json.loads(json.dumps(wire)))
    assert back.model_dump(mode="json") == wire
    assert proposal.observation["goal"] == "Do the next step"


async def test_the_wire_form_as_text() -> None:
    """The JSON text is the wire form, compact or indented; lone surrogates can be stored."""
    builder = history()
    builder.messages[0]["content"][0]["text"] = "漢字 \ud83d 👩\u200d💻"
    builder.messages[0]["\udc00"] = ["\\ud83d"]
    proposal, _ = await propose(builder.request(), {"result": 0.0, "call": 1.0})
    wire = proposal.model_dump(mode="json")
    forms: list[dict[str, Any]] = [{}, {"indent": 2}, {"ensure_ascii": True}]
    for options in [*forms, {"exclude": {"decisions"}}]:
        text = proposal.model_dump_json(**options)
        expected = {k: v for k, v in wire.items() if k not in options.get("exclude", ())}
        assert json.loads(text.encode()) == expected
        assert ("漢字" in text) is not options.get("ensure_ascii", False)
        assert ("\n" in text) is ("indent" in options)
    read = CompactionProposal.model_validate(json.loads(proposal.model_dump_json()))
    assert read.model_dump(mode="json") == wire


async def test_deep_nesting_survives_the_wire() -> None:
    """Fields nested deeper than pydantic serialises come out of the wire form as they went in."""
    builder = history()
    for _ in range(300):
        builder.messages[0]["extra"] = [builder.messages[0].get("extra")]
    proposal, _ = await propose(builder.request(), 1.0)
    wire = json.loads(json.dumps(proposal.model_dump(mode="json")))
    assert wire["messages"] == builder.messages
    assert json.loads(proposal.model_dump_json()) == wire
    assert "messages" not in proposal.model_dump(exclude={"messages"})
