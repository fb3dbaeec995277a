"""Both scenarios against the real decision service; opt-in, and nothing is faked."""

from __future__ import annotations

import os

import pytest

from agentscope_compaction import JevDecisionModel
from tests.scenarios.checks import check_judgement, check_mechanics, propose
from tests.scenarios.payment_retry import payment_retry
from tests.scenarios.replication_lag import replication_lag
from tests.scenarios.scenario import Scenario

_KEY = os.environ.get("DECISION_MODEL_API_KEY") or os.environ.get("TYPESAFE_API_KEY")
_LIVE = os.environ.get("AGENTSCOPE_COMPACTION_LIVE") == "1"

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.live,
    pytest.mark.skipif(not (_LIVE and _KEY), reason="needs AGENTSCOPE_COMPACTION_LIVE=1 and a key"),
]


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(payment_retry(), id="payment-retry"),
        pytest.param(replication_lag(), id="replication-lag"),
    ],
)
async def test_the_real_service_clears_a_side_track(scenario: Scenario) -> None:
    """Real answers, the service's own thresholds: needed outputs stay, finished work goes."""
    async with JevDecisionModel(timeout=30) as model:
        proposal = await propose(
            scenario, model, keep_threshold=None, evidence_chars=400, total_timeout_seconds=120
        )
    check_mechanics(scenario, proposal)
    check_judgement(scenario, proposal)
    assert proposal.stats["requests"] == 5
    assert str(proposal.stats["model"]).startswith("jev-")
