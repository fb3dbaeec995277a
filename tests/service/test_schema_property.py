"""Schemathesis over the service's own schema: nothing it says may go in gives a 5xx."""

from __future__ import annotations

from typing import Any

import pytest

schemathesis = pytest.importorskip("schemathesis")

from hypothesis import HealthCheck, settings  # noqa: E402
from schemathesis.specs.openapi.checks import positive_data_acceptance  # noqa: E402

from agentscope_compaction.service import create_app  # noqa: E402
from agentscope_compaction.testing import ScriptedDecisionModel  # noqa: E402

schema: Any = schemathesis.openapi.from_asgi(
    "/openapi.json", create_app(ScriptedDecisionModel(), max_body_bytes=100_000)
)


@schema.parametrize()
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)
def test_schema_holds(case: Any) -> None:
    """Every generated request is answered with a documented status, form and no 5xx."""
    response = case.call()
    assert response.status_code < 500
    # JSON Schema calls 6.0 an integer; the options, which are strict, do not.
    case.validate_response(response, excluded_checks=[positive_data_acceptance])
