"""Tell about proposals and outcomes: one span and one log line each; counts, never content."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import Status, StatusCode

from agentscope_compaction.core.types import Action, CompactionProposal
from agentscope_compaction.errors import CompactionError

__all__ = ["describe", "event_of", "log_event", "named", "span"]

_log = logging.getLogger("agentscope_compaction")
_COUNTED = (
    "candidates",
    "requests",
    "questions",
    "reused",
    "chars_before",
    "chars_after",
    "tokens_before",
    "tokens_after",
    "first_changed",
    "reread_tokens",
    "break_even_calls",
    "elapsed_ms",
)


def event_of(proposal: CompactionProposal) -> dict[str, Any]:
    """Return what may be told about a proposal: ids, counts and sizes."""
    acting = [d.action for d in proposal.decisions if d.applied]
    return {
        "proposal_id": proposal.proposal_id,
        "archive_ref": proposal.archive_ref,
        "reason": proposal.reason.value,
        "drop_result": acting.count(Action.DROP_RESULT),
        "drop_call": acting.count(Action.DROP_CALL),
        **{key: proposal.stats[key] for key in _COUNTED if proposal.stats.get(key) is not None},
    }


def log_event(name: str, event: dict[str, Any]) -> None:
    """Write one structured log line: the event's name and a JSON object."""
    _log.info("compaction %s %s", name, json.dumps(event, sort_keys=True))


@contextmanager
def span(name: str, session_id: str) -> Iterator[trace.Span]:
    """Open one OpenTelemetry span; does nothing without a tracer provider."""
    tracer = trace.get_tracer("agentscope_compaction")
    with tracer.start_as_current_span(
        f"compaction {name}", record_exception=False, set_status_on_exception=False
    ) as opened:
        if session_id:
            opened.set_attribute("gen_ai.conversation.id", session_id)
        try:
            yield opened
        except Exception as exc:  # by type only: messages and tracebacks may quote content
            opened.set_attribute("error.type", type(exc).__name__)
            opened.set_status(Status(StatusCode.ERROR, type(exc).__name__))
            raise


def describe(opened: trace.Span, event: dict[str, Any]) -> None:
    """Put an event's values on a span."""
    for key, value in event.items():
        if value is not None:
            opened.set_attribute(f"agentscope.compaction.{key}", value)


def named(exc: BaseException) -> str:
    """Name an exception for the log: our own with their words, others by type and place only."""
    name = type(exc).__name__
    if isinstance(exc, CompactionError):
        return f"{name}: {exc}"
    frames = traceback.extract_tb(exc.__traceback__, limit=-1)
    return (
        f"{name} in {frames[0].name} ({frames[0].filename}:{frames[0].lineno})" if frames else name
    )
