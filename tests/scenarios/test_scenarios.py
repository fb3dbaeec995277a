"""Both scenarios against the embedded model, a scripted one, and servers on loopback."""

from __future__ import annotations

import pytest

from agentscope_compaction import Action, EmbeddedDecisionModel, JevDecisionModel
from agentscope_compaction.testing import ScriptedDecisionModel
from tests.scenarios.checks import (
    QUESTIONS_PER_REQUEST,
    check_judgement,
    check_mechanics,
    propose,
)
from tests.scenarios.payment_retry import payment_retry
from tests.scenarios.replication_lag import replication_lag
from tests.scenarios.scenario import Scenario
from tests.servers import Running, script_server

pytestmark = pytest.mark.anyio

KEY = "sk-test-0123456789abcdef"
MODEL = "jev-1.13.0"
SCENARIOS = [
    pytest.param(payment_retry, id="payment-retry"),
    pytest.param(replication_lag, id="replication-lag"),
]


@pytest.fixture(params=SCENARIOS)
def scenario(request: pytest.FixtureRequest) -> Scenario:
    """Each of the two histories."""
    built: Scenario = request.param()
    return built


def test_a_scenario_is_the_same_every_time(scenario: Scenario) -> None:
    """Its size is as described, and nothing in it depends on the day or the process."""
    assert 40_000 <= scenario.chars <= 50_000
    again = payment_retry() if scenario.name == "payment-retry" else replication_lag()
    assert again == scenario


async def test_the_embedded_model_clears_a_side_track(scenario: Scenario) -> None:
    """Without a network, what the goal needs stays and something irrelevant goes."""
    proposal = await propose(scenario, EmbeddedDecisionModel())
    check_mechanics(scenario, proposal)
    check_judgement(scenario, proposal)


async def test_a_model_that_knows_clears_every_side_track(scenario: Scenario) -> None:
    """Low answers remove all finished work, in several batches, and nothing else."""
    model = ScriptedDecisionModel(scenario.script)
    proposal = await propose(scenario, model)
    check_mechanics(scenario, proposal)
    check_judgement(scenario, proposal)
    removed = {d.call_id for d in proposal.decisions if d.action is Action.DROP_CALL}
    assert removed == set(scenario.side_calls)
    assert proposal.stats["chars_after"] < proposal.stats["chars_before"] * 0.5
    assert proposal.stats["requests"] == 5
    assert all(len(asked) <= QUESTIONS_PER_REQUEST for _, asked in model.requests)


async def test_a_server_that_knows_is_asked_in_batches(scenario: Scenario) -> None:
    """The bundled client brings the same answers home; no output body travels."""
    with script_server(scenario.script) as (url, seen):
        async with JevDecisionModel(KEY, url, MODEL) as model:
            proposal = await propose(scenario, model, keep_threshold=None)
    check_mechanics(scenario, proposal)
    check_judgement(scenario, proposal)
    asked = [name for body in seen for name in body["questions"]]
    assert len(seen) == proposal.stats["requests"] == 5
    assert len(asked) == len(set(asked)) == proposal.stats["questions"] == 26
    assert all(body["state"] == seen[0]["state"] for body in seen)
    assert all("output" not in record for record in seen[0]["state"]["calls"].values())
    assert proposal.stats["thresholds"] == {"call": 0.1, "result": 0.2}


@pytest.mark.parametrize("failure", ["fail", "keep"])
async def test_meaningless_answers_do_no_harm(scenario: Scenario, failure: str) -> None:
    """The reference server answers with hashes: whatever goes, everything else holds."""
    with Running() as server:
        async with JevDecisionModel("", server.url, MODEL) as model:
            proposal = await propose(scenario, model, on_batch_failure=failure)
    check_mechanics(scenario, proposal)
    assert proposal.stats["requests"] == 5
    assert proposal.stats["model"] == "jevcompat-mock-0.1"
