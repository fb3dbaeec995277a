"""Decision models that fail or take too long, and what a client is told."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from agentscope_compaction import (
    ConfigurationError,
    DecisionAnswerError,
    DecisionHTTPError,
    DecisionModelError,
    DecisionTimeoutError,
    ObservationBudgetError,
)
from tests.service.conftest import Start, error_of

FAILURES = [
    (DecisionModelError("it failed"), 502, "DecisionModelError"),
    (DecisionHTTPError("status 429", status=429), 502, "DecisionHTTPError"),
    (DecisionAnswerError("no answer"), 502, "DecisionAnswerError"),
    (DecisionTimeoutError("late"), 504, "DecisionTimeoutError"),
    (ObservationBudgetError("too large"), 422, "ObservationBudgetError"),
    (ConfigurationError("no such package"), 500, "InternalError"),
]


@pytest.mark.parametrize(("error", "status", "kind"), FAILURES)
def test_failing_model(
    start: Start, snapshot: dict[str, Any], error: Exception, status: int, kind: str
) -> None:
    """A model's failure is answered with the status of its kind."""

    async def model(state: object, questions: object) -> Any:
        raise error

    response = start(model).post("/compact_context", json=snapshot)
    assert error_of(response) == (status, kind)


def test_foreign_error_says_nothing(
    start: Start, snapshot: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """An unforeseen failure of a model never shows its text, to the client or in the log."""

    async def model(state: object, questions: object) -> Any:
        raise RuntimeError("the key is sk-123")

    with caplog.at_level(logging.DEBUG):
        response = start(model).post("/compact_context", json=snapshot)
    assert response.status_code == 502
    assert "sk-123" not in response.text + caplog.text


def test_deadline_is_504(start: Start, snapshot: dict[str, Any]) -> None:
    """The service's own deadline ends the work."""
    cancelled: list[bool] = []

    async def model(state: object, questions: object) -> Any:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    response = start(model, timeout_seconds=0.3).post("/compact_context", json=snapshot)
    assert error_of(response) == (504, "DeadlineExceeded")
    assert cancelled == [True]


def test_own_deadline_is_504(start: Start, snapshot: dict[str, Any]) -> None:
    """The deadline that the request's options set ends the work too."""

    async def model(state: object, questions: object) -> Any:
        await asyncio.sleep(60)

    snapshot["options"]["total_timeout_seconds"] = 0.1
    response = start(model).post("/compact_context", json=snapshot)
    assert error_of(response) == (504, "DecisionTimeoutError")
