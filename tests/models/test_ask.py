"""Asking: which requests are made, how many at a time, and what they see."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from agentscope.classifier import (
    BinaryQuestion,
    ClassifierResponse,
)

from agentscope_compaction import Thresholds
from agentscope_compaction.testing import ScriptedDecisionModel
from tests.asking import Questions, number, propose, reply

pytestmark = pytest.mark.anyio


async def test_a_plain_function_is_a_model() -> None:
    """Any async function of (state, questions) will do, and its questions are AgentScope's."""
    seen: list[BinaryQuestion] = []

    async def model(state: dict[str, Any], questions: Questions) -> ClassifierResponse:
        seen.extend(questions.values())
        return reply(questions)

    proposal = await propose(model)
    assert proposal.stats["model"] == "m-1" and proposal.stats["requests"] == 3
    assert all(isinstance(q, BinaryQuestion) and isinstance(q.instructions, str) for q in seen)
    assert len(seen) == 6


async def test_batches_ask_each_pair_once_and_together() -> None:
    """Both questions of a call travel together, in order, within the limit, each once."""
    model = ScriptedDecisionModel(1.0)
    await propose(model, calls=7, max_questions_per_request=4)
    batches = [list(questions) for _, questions in model.requests]
    expected = [f"{kind}_t{n}" for n in range(1, 8) for kind in ("call", "result")]
    assert [name for batch in batches for name in batch] == expected
    assert [len(batch) for batch in batches] == [4, 4, 4, 2]


async def test_each_request_sees_the_same_state_of_its_own() -> None:
    """Every request gets an equal state, and what a model does to its copy reaches nobody."""
    states = []

    async def model(state: dict[str, Any], questions: Questions) -> ClassifierResponse:
        states.append(repr(state))
        state["calls"].clear()
        state["goal"] = "mine"
        return reply(questions)

    proposal = await propose(model, calls=5, max_concurrency=1)
    assert len(states) == 5 and len(set(states)) == 1
    assert repr(dict(proposal.observation)) == states[0]


@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_concurrency_is_bounded(limit: int) -> None:
    """Never more than ``max_concurrency`` requests are in flight, and as many as that."""
    running = peak = 0

    async def model(state: dict[str, Any], questions: Questions) -> ClassifierResponse:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        for _ in range(3):
            await asyncio.sleep(0)
        running -= 1
        return reply(questions)

    await propose(model, calls=9, max_concurrency=limit)
    assert peak == limit


async def test_usage_is_summed_and_may_be_unknown() -> None:
    """Reported tokens add up over requests; what is not reported stays unknown."""
    proposal = await propose(ScriptedDecisionModel(0.0))
    assert proposal.stats["usage"] == {"input_tokens": 300, "output_tokens": 6}

    async def silent(state: dict[str, Any], questions: Questions) -> ClassifierResponse:
        return reply(questions)

    proposal = await propose(silent)
    assert proposal.stats["usage"] == {"input_tokens": None, "output_tokens": None}


async def test_models_that_share_a_proposal_are_named_together() -> None:
    """Requests answered by different versions are held against what no single version knows."""
    asked: list[str] = []

    class Rolling:
        """A service that is updated between two requests."""

        async def __call__(self, state: Any, questions: Questions) -> ClassifierResponse:
            response = reply(questions, 0.15)
            versions = {1: "v-1", 2: "v-2", 3: "v-1"}
            return dataclasses.replace(response, model=versions[number(questions)])

        def thresholds_for(self, answered: str) -> Thresholds:
            asked.append(answered)
            return Thresholds(0.1, 0.2 if answered == "v-1" else 0.1)

    proposal = await propose(Rolling(), keep_threshold=None, max_concurrency=1)
    assert proposal.stats["model"] == "v-1 + v-2" and asked == ["v-1 + v-2"]
    assert [d.reason for d in proposal.decisions] == ["result_needed"] * 3
