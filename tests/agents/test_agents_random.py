"""Random live contexts: what is proposed can be carried out in parts, and undone to the byte."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from agentscope.agent import Agent
from agentscope.message import (
    AssistantMsg,
    HintBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolCallState,
    ToolResultBlock,
    ToolResultState,
)

from agentscope_compaction import with_compaction
from agentscope_compaction.testing import ScriptedDecisionModel

pytestmark = pytest.mark.anyio


def _blocks(rng: random.Random, count: int, numbers: Iterator[int], late: list[Any]) -> list[Any]:
    """Return blocks of a reply; results may come late, and thinking may be signed."""
    blocks: list[Any] = []
    for _ in range(count):
        match rng.randrange(10):
            case 0:
                blocks.append(TextBlock(text=rng.choice(["", "so", "then"])))
            case 1:
                signed = {"signature": "s"} if rng.random() < 0.3 else {}
                blocks.append(ThinkingBlock(thinking="hm", **signed))
            case 2:
                blocks.append(HintBlock(hint="h", source="s"))
            case 3 if late:
                blocks.append(late.pop(rng.randrange(len(late))))
            case _:
                call, result = _pair(rng, f"c{next(numbers)}")
                blocks.append(call)
                (blocks if rng.random() < 0.7 else late).append(result)
    return blocks


def _pair(rng: random.Random, call_id: str) -> tuple[ToolCallBlock, ToolResultBlock]:
    name = rng.choice(["look", "look", "TaskList", "other"])
    page = json.dumps({"page": rng.randrange(3)})
    call = ToolCallBlock(id=call_id, name=name, input=page, state=ToolCallState.FINISHED)
    texts = [TextBlock(text="l" * rng.randrange(1, 1_500)), TextBlock(text="k")]
    output: Any = rng.choice(["o" * rng.randrange(2_000), texts])
    state = rng.choice([ToolResultState.SUCCESS] * 5 + [ToolResultState.ERROR])
    return call, ToolResultBlock(id=call_id, name=name, output=output, state=state)


def _context(rng: random.Random, lab: Any) -> list[Msg]:
    """Return messages of which some share an id, as where a middleware splits a reply."""
    numbers, late, context = iter(range(1_000)), list[Any](), list[Msg]()
    for number in range(rng.randint(2, 6)):
        if rng.random() < 0.35:
            context.append(lab.user(f"text {number}"))
            continue
        blocks = _blocks(rng, rng.randrange(9), numbers, late)
        message_id = rng.choice([f"m{number}", f"m{number}", "a", "running"])
        context.append(AssistantMsg(name="worker", content=blocks, id=message_id))
    return [*context, AssistantMsg(name="worker", content=late, id="late")] if late else context


def _without_notes(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    bare = copy.deepcopy(messages)
    for block in (block for message in bare for block in message["content"]):
        if block["type"] == "tool_result":
            block["metadata"].pop("compaction", None)
    return bare


@pytest.mark.parametrize("seed", range(120))
async def test_a_random_context(lab: Any, seed: int) -> None:
    """Accepted in two parts it is the proposal; a third time does nothing; all comes back."""
    rng = random.Random(seed)
    judge = ScriptedDecisionModel(lambda name, state: rng.choice([0.0, 0.0, 0.0, 0.9]))
    compactor = lab.compactor(
        judge,
        preserve_recent_calls=rng.choice([0, 0, 1]),
        keep_threshold=0.5,
        dedupe=rng.random() < 0.5,
    )
    compactor.eligible_tool_names = ("look", "TaskList")
    agent = lab.agent([], cls=with_compaction(compactor)(Agent))
    agent.state.reply_id = "running"
    agent.state.context = _context(rng, lab)
    before = lab.dump(agent)
    proposal = await agent.propose_compaction(goal="go on")
    assert lab.dump(agent) == before
    acting = [d.id for d in proposal.decisions if d.applied and d.action != "keep"]
    some = rng.sample(acting, rng.randint(0, len(acting)))
    done = await agent.accept_compaction(proposal, calls=some)
    assert sorted(done) == sorted(some)
    agent.state.context.append(lab.user("meanwhile"))
    later = lab.dump(agent)[-1:]
    done += await agent.accept_compaction(proposal)
    assert sorted(done) == sorted(acting)
    assert _without_notes(lab.dump(agent)) == _without_notes(proposal.messages) + later
    assert await agent.accept_compaction(proposal) == ()
    assert sorted(await agent.restore_compaction(proposal)) == sorted(acting)
    assert lab.dump(agent) == before + later
