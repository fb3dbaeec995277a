"""Complexity is guarded by counting work: blocks visited, characters read, copies made."""

from __future__ import annotations

from typing import Any

import pytest

from agentscope_compaction import (
    CompactionRequest,
    JevDecisionModel,
    Thresholds,
    compact_context,
)
from agentscope_compaction.agents.limits import unremovable
from agentscope_compaction.core.conclude import Evidence, conclude
from agentscope_compaction.core.decisions import Answer
from agentscope_compaction.core.plan import inspect, plan, take_snapshot
from agentscope_compaction.models.copies import Copies
from agentscope_compaction.testing import HistoryBuilder, ScriptedDecisionModel

pytestmark = pytest.mark.anyio

_NO_BUDGET: dict[str, Any] = {"max_state_tokens": 10**9, "max_request_tokens": 10**9}


class Visited(dict[str, Any]):
    """A block that counts how often something is looked up in it."""

    count = 0

    def get(self, key: str, default: Any = None) -> Any:
        """Look up, and count."""
        Visited.count += 1
        return super().get(key, default)


def one_reply(calls: int) -> HistoryBuilder:
    """A task and one long reply with so many calls, as AgentScope keeps it."""
    builder = HistoryBuilder().user("task").think("first", signature="")
    for n in range(calls):
        builder.say(f"step {n}").call("Read", {"n": n}, f"line {n} " * 90)
    return builder.user("go on")


def visits(calls: int) -> int:
    """Look-ups in blocks during one whole proposal that removes every call."""
    request = CompactionRequest.model_validate(
        one_reply(calls).request(preserve_recent_messages=1, **_NO_BUDGET)
    )
    for message in request.messages:
        message["content"] = [Visited(block) for block in message["content"]]
    Visited.count = 0
    guard = unremovable(request.messages, len(request.messages))
    planned = plan(inspect(take_snapshot(request), guard), str)
    answers = {pair.id: Answer(0.0, 0.0) for pair in planned.inspection.asked}
    evidence = Evidence(answers, Thresholds(0.5, 0.5))
    proposal = conclude(planned, evidence, lambda messages: len(messages), 10**6)
    assert [d.action.value for d in proposal.decisions] == ["drop_call"] * calls
    return Visited.count


def test_blocks_are_visited_a_fixed_number_of_times() -> None:
    """Four times the calls in one reply is four times the looking, not sixteen times."""
    few, many = visits(50), visits(200)
    assert many <= 4.4 * few
    assert many <= 60 * 200


async def test_every_string_is_redacted_once() -> None:
    """What passes the redactor grows with the history, evidence included."""

    async def read(calls: int) -> int:
        seen: list[int] = []

        def redact(text: str) -> str:
            seen.append(len(text))
            return text

        request = one_reply(calls).request(
            preserve_recent_messages=1, evidence_chars=200, **_NO_BUDGET
        )
        await compact_context(request, ScriptedDecisionModel(1.0), redact=redact)
        return sum(seen)

    assert await read(200) <= 4.4 * await read(50)


@pytest.mark.parametrize("limit", [1, 3])
async def test_copies_of_the_state_follow_concurrency(limit: int) -> None:
    """Requests without number share as many copies as are in flight at once."""
    model = ScriptedDecisionModel(1.0)
    request = one_reply(60).request(
        preserve_recent_messages=1,
        max_questions_per_request=2,
        max_concurrency=limit,
        **_NO_BUDGET,
    )
    await compact_context(request, model)
    assert len(model.requests) == 60
    assert len({id(state) for state, _ in model.requests}) <= limit


async def test_a_model_that_only_reads_gets_no_copy() -> None:
    """The bundled client declares it, so a request costs nothing in the length of the view."""

    class Reader(ScriptedDecisionModel):
        reads_only = True

    model = Reader(1.0)
    request = one_reply(6).request(preserve_recent_messages=1, max_questions_per_request=2)
    await compact_context(request, model)
    assert len(model.requests) == 6
    assert len({id(state) for state, _ in model.requests}) == 1
    assert JevDecisionModel.reads_only


def test_a_changed_copy_is_not_used_again() -> None:
    """A model may do what it likes with its copy, at any depth."""
    planned = plan(
        inspect(
            take_snapshot(
                CompactionRequest.model_validate(one_reply(2).request(preserve_recent_messages=1))
            )
        ),
        str,
    )
    copies = Copies(planned.observation)
    first = copies.take()
    copies.give_back(first)
    assert copies.take() is first
    first["calls"]["t1"]["tool"] = "Scribble"
    copies.give_back(first)
    second = copies.take()
    assert second is not first
    assert second == planned.observation
    assert second["calls"]["t1"] is not planned.observation["calls"]["t1"]


def test_the_repr_of_a_proposal_holds_no_history() -> None:
    """A task is printed with its result: that must cost nothing and show no content."""
    history = one_reply(3)
    request = CompactionRequest.model_validate(history.request(goal="secret plan"))
    planned = plan(inspect(take_snapshot(request)), str)
    proposal = conclude(planned, Evidence({}, Thresholds(0.5, 0.5)), len, 9)
    assert "step 0" not in repr(proposal)
    assert "step 0" not in repr(request)
    assert len(repr(proposal)) < 3_000
