"""Histories no agent would write: whatever they hold, the service has an answer below 500."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentscope_compaction.testing import ScriptedDecisionModel
from tests.service.conftest import running

_TEXT = st.text(st.characters(), max_size=20) | st.sampled_from(["", "\ud800", "c1", "{}", "\x00"])
_LEAF = st.none() | st.booleans() | st.integers() | st.floats() | _TEXT
_JSON = _LEAF | st.lists(_LEAF, max_size=2) | st.dictionaries(_TEXT, _LEAF, max_size=2)
_STATE = st.sampled_from(["finished", "success", "error", "running"]) | _JSON
_BLOCK = st.fixed_dictionaries(
    {"type": st.sampled_from(["tool_call", "tool_result", "text", "thinking"]) | _JSON},
    optional={
        "id": st.sampled_from(["c1", "c2"]) | _JSON,
        "name": st.just("Read") | _JSON,
        "input": st.just("{}") | _JSON,
        "output": st.just("long " * 200) | _JSON,
        "state": _STATE,
        "text": _JSON,
        "metadata": _JSON,
    },
)
_MESSAGE = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system"]),
        "content": st.lists(_BLOCK, max_size=4),
    },
    optional={"id": _JSON, "metadata": _JSON},
)
_NUMBER = st.sampled_from([0, 1, 2, 10**30, 1e300, 1e-300, -1, 0.5])
_NAMES = (
    "keep_threshold preserve_recent_messages preserve_recent_calls max_state_tokens "
    "max_request_tokens max_questions_per_request truncate_head_chars truncate_tail_chars "
    "facts_ratio facts_max_chars total_timeout_seconds evidence_chars target_tokens "
    "min_saved_chars"
).split()
_OPTIONS = st.dictionaries(st.sampled_from(_NAMES), _NUMBER, max_size=3)


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """One service and one connection for all examples."""
    with (
        running(ScriptedDecisionModel({"call": 0.2, "result": 0.1})) as address,
        httpx.Client(base_url=address, timeout=30, trust_env=False) as opened,
    ):
        yield opened


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(messages=st.lists(_MESSAGE, max_size=3), options=_OPTIONS, goal=_TEXT)
def test_odd_history_is_answered(
    client: httpx.Client, messages: list[Any], options: dict[str, Any], goal: str
) -> None:
    """Any blocks, ids, numbers and goals get a proposal or a refusal, in ASCII."""
    request = {
        "messages": messages,
        "goal": goal,
        "eligible_tool_names": ["Read"],
        "options": {"preserve_recent_messages": 0, **options},
    }
    response = client.post(
        "/compact_context",
        content=json.dumps(request).encode(),
        headers={"Content-Type": "application/json"},
    )
    assert response.status_code in (200, 400, 422, 504), response.text
    assert response.content.isascii()
    assert response.json()["success"] is (response.status_code == 200)
