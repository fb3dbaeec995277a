"""What holds of a proposal for a scenario: mechanics always, judgement where a model judges."""

from __future__ import annotations

import copy
import json
from typing import Any

from agentscope_compaction import Action, CompactionOptions, CompactionProposal, Compactor
from agentscope_compaction.archive import InMemoryArchive
from agentscope_compaction.models.seam import DecisionModel
from agentscope_compaction.testing import check_proposal
from tests.scenarios.scenario import Scenario

__all__ = ["QUESTIONS_PER_REQUEST", "check_judgement", "check_mechanics", "propose"]

QUESTIONS_PER_REQUEST = 6

Block = dict[str, Any]


async def propose(
    scenario: Scenario, model: DecisionModel | None, **options: Any
) -> CompactionProposal:
    """Propose with an archive; check that neither the input nor the archive changed."""
    chosen: dict[str, Any] = {
        "preserve_recent_messages": 4,
        "max_questions_per_request": QUESTIONS_PER_REQUEST,
    }
    archive = InMemoryArchive()
    compactor = Compactor(
        model,
        archive,
        CompactionOptions.model_validate(chosen | options),
        eligible_tool_names=scenario.tools,
        goal=scenario.goal,
    )
    given = copy.deepcopy(scenario.messages)
    proposal = await compactor.propose(
        given,
        protected_message_ids=scenario.protected_messages,
        protected_call_ids=scenario.protected_calls,
    )
    assert given == scenario.messages
    assert proposal.archive_ref is not None
    assert await archive.load(proposal.archive_ref) == scenario.messages
    made = proposal.model_copy(deep=True)
    for message in proposal.messages:  # a proposal is a copy, so nothing follows its changes
        message["content"].clear()
        message["name"] = "overwritten"
    assert given == scenario.messages
    assert await archive.load(proposal.archive_ref) == scenario.messages
    return made


def check_mechanics(scenario: Scenario, proposal: CompactionProposal) -> None:
    """Protected records and all conversation text are whole, whatever was answered."""
    check_proposal(scenario.messages, proposal)
    assert _texts(proposal.messages) == _texts(scenario.messages)
    before, after = _results(scenario.messages), _results(proposal.messages)
    spared = [d.call_id for d in proposal.decisions if d.keep_call is None]
    broken = [call for call in before if call.endswith(("-failed", "-running", "-twice", "-chart"))]
    assert len(broken) == 4
    for call in (*scenario.protected_calls, *spared, *broken, "receipt-1", "recent-1"):
        assert after[call] == before[call]
    kept = {message["id"]: message for message in proposal.messages}
    for message in scenario.messages:
        if message["id"] in scenario.protected_messages or message in scenario.messages[-4:]:
            assert kept[message["id"]] == message
    asked = [d.call_id for d in proposal.decisions if d.keep_call is not None]
    assert sorted(asked) == sorted([*scenario.side_calls, *scenario.key_calls])
    assert proposal.stats["candidates"] == len(asked)


def check_judgement(scenario: Scenario, proposal: CompactionProposal) -> None:
    """Key candidates are whole, a side track was removed or cut, and the history shrank."""
    before, after = _results(scenario.messages), _results(proposal.messages)
    for call in scenario.key_calls:
        assert after[call] == before[call]
    actions = {d.call_id: d.action for d in proposal.decisions if d.applied}
    gone = [call for call in scenario.side_calls if actions.get(call) is not Action.KEEP]
    assert gone
    assert proposal.reason == "compacted"
    text = json.dumps(proposal.messages, ensure_ascii=False, separators=(",", ":"))
    assert len(text) == proposal.stats["chars_after"] < proposal.stats["chars_before"]


def _texts(messages: list[Block]) -> list[Block]:
    """Everything that is not a call or its result, in order."""
    blocks = (block for message in messages for block in message["content"])
    return [block for block in blocks if block["type"] in ("text", "thinking", "hint")]


def _results(messages: list[Block]) -> dict[str, list[Block]]:
    """Results by call id; several where an id was used twice."""
    found: dict[str, list[Block]] = {}
    for message in messages:
        for block in message["content"]:
            if block["type"] == "tool_result":
                found.setdefault(block["id"], []).append(block)
    return found
