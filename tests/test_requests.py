"""Requests and options: every bound, and which error a bad one gives."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from agentscope_compaction import (
    CompactionError,
    CompactionOptions,
    CompactionRequest,
    InvalidSnapshotError,
    compact_context,
)
from agentscope_compaction.testing import HistoryBuilder, ScriptedDecisionModel

pytestmark = pytest.mark.anyio

NAN, INF = float("nan"), float("inf")
SHARES = ["keep_threshold", "keep_call_threshold", "keep_result_threshold", "facts_ratio"]
COUNTS = [
    *("preserve_recent_messages", "preserve_recent_calls", "truncate_head_chars"),
    *("truncate_tail_chars", "facts_max_chars", "evidence_chars", "min_saved_chars"),
]
POSITIVE = ["max_state_tokens", "max_request_tokens", "target_tokens"]
NAMES = {
    "on_batch_failure": ["fail", "keep"],
    "call_removal": ["safe", "never", "always"],
    "reused_ids": ["keep", "pair"],
}

ILLEGAL: list[tuple[str, object]] = [
    *((name, bad) for name in SHARES for bad in (NAN, INF, True, "0.5", 1.01, -0.1, [0.5])),
    *((name, bad) for name in COUNTS for bad in (-1, 1.0, True, "3", None, NAN)),
    *((name, bad) for name in POSITIVE for bad in (0, -1, 10.0, True, "3", NAN)),
    *(("total_timeout_seconds", bad) for bad in (0, -1, NAN, INF, True, "3", None, 10**400)),
    *(("max_concurrency", bad) for bad in (0, 33, True, 2.0, "4")),
    *(("max_questions_per_request", bad) for bad in (0, 1, 3, -2, True, 2.0, "64")),
    *((name, bad) for name in NAMES for bad in ("", "FAIL", None, True, 1)),
    *((name, bad) for name in ("dedupe", "require_signal") for bad in (1, 0, "true", None)),
    ("unknown_option", 1),
]
LEGAL: list[tuple[str, object]] = [
    *((name, good) for name in SHARES for good in (0, 1, 0.0, 1.0, 0.3)),
    *((name, None) for name in SHARES[:3]),
    *((name, good) for name in COUNTS for good in (0, 7)),
    *((name, 1) for name in POSITIVE),
    ("target_tokens", None),
    *(("total_timeout_seconds", good) for good in (0.001, 1, 10**6)),
    *(("max_concurrency", good) for good in (1, 32)),
    *(("max_questions_per_request", good) for good in (2, 64, 1_000)),
    *((name, good) for name, values in NAMES.items() for good in values),
]


@pytest.mark.parametrize(("name", "value"), ILLEGAL)
async def test_illegal_option(name: str, value: object) -> None:
    """An option out of bounds is refused: as a model by pydantic, in a request by our error."""
    with pytest.raises(ValidationError):
        CompactionOptions.model_validate({name: value})
    options: dict[str, Any] = {name: value}
    request = HistoryBuilder().user("x").request(**options)
    with pytest.raises(InvalidSnapshotError, match=name):
        await compact_context(request, ScriptedDecisionModel())


@pytest.mark.parametrize(("name", "value"), LEGAL)
def test_legal_option(name: str, value: object) -> None:
    """The bounds themselves are legal, and so is zero where it means none."""
    assert getattr(CompactionOptions.model_validate({name: value}), name) == value


def test_options_are_frozen_and_documented_defaults() -> None:
    """Options cannot be edited, and the defaults are those of the contract."""
    options = CompactionOptions()
    with pytest.raises(ValidationError):
        options.keep_threshold = 0.1  # type: ignore[misc]
    assert options.model_dump(mode="json") == {
        "keep_threshold": 0.5,
        "keep_call_threshold": None,
        "keep_result_threshold": None,
        "preserve_recent_messages": 6,
        "preserve_recent_calls": 0,
        "max_state_tokens": 25_000,
        "max_request_tokens": 30_000,
        "max_questions_per_request": 64,
        "truncate_head_chars": 300,
        "truncate_tail_chars": 0,
        "facts_ratio": 0.0,
        "facts_max_chars": 4_000,
        "max_concurrency": 4,
        "total_timeout_seconds": 30.0,
        "evidence_chars": 0,
        "on_batch_failure": "fail",
        "target_tokens": None,
        "call_removal": "safe",
        "dedupe": False,
        "reused_ids": "keep",
        "require_signal": False,
        "min_saved_chars": 0,
    }


def test_options_for_agents() -> None:
    """Live agents count recency in calls, keep on doubt, and may override each default."""
    options = CompactionOptions.for_agents(preserve_recent_calls=2)
    assert options.preserve_recent_messages == 0
    assert options.preserve_recent_calls == 2
    assert CompactionOptions.for_agents().preserve_recent_calls == 8
    assert (options.keep_threshold, options.facts_ratio) == (None, 0.2)
    assert (options.dedupe, options.require_signal, options.call_removal) == (True, True, "safe")
    with pytest.raises(ValidationError):
        CompactionOptions.for_agents(nonsense=1)


BLOCK = {"type": "text", "text": "x"}
BAD_REQUESTS: dict[str, Any] = {
    "no messages": {"goal": "g"},
    "no goal": {"messages": []},
    "blank goal": {"messages": [], "goal": " \n"},
    "goal not a string": {"messages": [], "goal": 3},
    "messages not a list": {"messages": "hello", "goal": "g"},
    "message not an object": {"messages": ["hello"], "goal": "g"},
    "no role": {"messages": [{"content": []}], "goal": "g"},
    "unknown role": {"messages": [{"role": "tool", "content": []}], "goal": "g"},
    "odd role": {"messages": [{"role": ["user"], "content": []}], "goal": "g"},
    "content a string": {"messages": [{"role": "user", "content": "hi"}], "goal": "g"},
    "content missing": {"messages": [{"role": "user"}], "goal": "g"},
    "block not an object": {"messages": [{"role": "user", "content": ["hi"]}], "goal": "g"},
    "unknown field": {"messages": [], "goal": "g", "nonsense": 1},
    "tools a string": {"messages": [], "goal": "g", "eligible_tool_names": "Read"},
    "tools not strings": {"messages": [], "goal": "g", "eligible_tool_names": [1]},
    "refs not strings": {"messages": [], "goal": "g", "source_refs": {"a": 1}},
    "options not an object": {"messages": [], "goal": "g", "options": 3},
    "key not a string": {"messages": [{"role": "user", "content": [], 3: 4}], "goal": "g"},
}


@pytest.mark.parametrize("request_", BAD_REQUESTS.values(), ids=BAD_REQUESTS)
async def test_bad_request(request_: dict[str, Any]) -> None:
    """A malformed request is one documented error, and building the model is pydantic's."""
    with pytest.raises(ValidationError):
        CompactionRequest.model_validate(request_)
    with pytest.raises(InvalidSnapshotError) as caught:
        await compact_context(request_, ScriptedDecisionModel())
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, CompactionError)


@pytest.mark.parametrize("request_", ["", "[]", "3", "{", b"\xff\xfe", 7, None, [], object()])
async def test_request_that_is_no_object(request_: Any) -> None:
    """Text that is no JSON, and anything that is no object, is an invalid snapshot."""
    with pytest.raises(InvalidSnapshotError):
        await compact_context(request_, ScriptedDecisionModel())


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", 1j], ids=type)
async def test_values_that_are_not_json(value: object) -> None:
    """A value JSON cannot hold is found before anything is asked."""
    messages = [{"role": "user", "content": [{**BLOCK, "x": value}]}]
    model = ScriptedDecisionModel()
    with pytest.raises(InvalidSnapshotError, match="not JSON"):
        await compact_context({"messages": messages, "goal": "g"}, model)
    assert model.requests == []


@pytest.mark.parametrize("depth", [500, 900, 20_000])
async def test_messages_nested_too_deeply(depth: int) -> None:
    """Nesting that Python's own stack may not carry is refused instead of failing later."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    messages = [{"role": "user", "content": [{**BLOCK, "x": value}]}]
    with pytest.raises(InvalidSnapshotError):
        await compact_context({"messages": messages, "goal": "g"}, ScriptedDecisionModel())


async def test_error_messages_quote_no_input() -> None:
    """What a validation error says names places, never values."""
    request = {"messages": [{"role": "secret-role", "content": []}], "goal": "g"}
    with pytest.raises(InvalidSnapshotError) as caught:
        await compact_context(request, ScriptedDecisionModel())
    assert "secret-role" not in str(caught.value) and "messages" in str(caught.value)
