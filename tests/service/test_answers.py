"""What the service answers when all is well."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentscope_compaction import CompactionProposal
from agentscope_compaction.core.jsontext import MAX_DEPTH
from agentscope_compaction.testing import ScriptedDecisionModel
from tests.service.conftest import Start


def test_proposal_is_answered(start: Start, snapshot: dict[str, Any]) -> None:
    """A ReMe user's request is answered with the proposal and its statistics."""
    response = start().post("/compact_context", json=snapshot)
    body = response.json()
    assert response.status_code == 200
    assert body["success"] is True
    proposal = CompactionProposal.model_validate(body["answer"])
    assert proposal.changed
    assert body["metadata"] == {"compaction": body["answer"]["stats"]}
    assert body["answer"] == json.loads(json.dumps(proposal.model_dump(mode="json")))


def test_embedded_model_is_the_default(start: Start, snapshot: dict[str, Any]) -> None:
    """Without a model the embedded one answers, offline."""
    from tests.service.conftest import running

    with running(None) as address:
        import httpx

        body = httpx.post(f"{address}/compact_context", json=snapshot, trust_env=False).json()
    assert body["success"] is True
    assert body["answer"]["stats"]["questions"] == 2


def test_lone_surrogates_come_back(start: Start, snapshot: dict[str, Any]) -> None:
    """A lone surrogate in the history comes back as it was, in ASCII bytes."""
    snapshot["messages"][0]["content"][0]["text"] = "broken \ud83d emoji, café"
    sent = json.dumps(snapshot).encode()
    response = start().post(
        "/compact_context", content=sent, headers={"Content-Type": "application/json"}
    )
    assert response.content.isascii()
    message = response.json()["answer"]["messages"][0]
    assert message == snapshot["messages"][0]


def test_surrogate_in_call_id(start: Start, snapshot: dict[str, Any]) -> None:
    """A call id with a lone surrogate, which names a decision, can be answered too."""
    for block in snapshot["messages"][1]["content"]:
        block["id"] = "call\ud800"
    response = start().post(
        "/compact_context",
        content=json.dumps(snapshot).encode(),
        headers={"Content-Type": "application/json; charset=utf-8"},
    )
    assert response.json()["answer"]["decisions"][0]["call_id"] == "call\ud800"


def test_deep_history(start: Start, snapshot: dict[str, Any]) -> None:
    """A field nested about as deep as a history may be comes back unchanged."""
    deep: Any = 1
    for _ in range(MAX_DEPTH - 10):
        deep = [deep]
    snapshot["messages"][0]["extra"] = deep
    body = start().post("/compact_context", json=snapshot).json()
    assert body["answer"]["messages"][0]["extra"] == deep


def test_health_is_open(start: Start) -> None:
    """``/health`` needs no token and asks no model."""
    model = ScriptedDecisionModel()
    response = start(model, token="secret").get("/health")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})
    assert not model.requests


def test_schema_describes_request_and_answers(start: Start) -> None:
    """The schema names the request's fields, every status, and nothing a proposal leaves out."""
    schema = start(token="secret").get("/openapi.json").json()
    operation = schema["paths"]["/compact_context"]["post"]
    components = schema["components"]["schemas"]
    assert components["CompactionRequest"]["required"] == ["messages", "goal"]
    assert "keep_threshold" in components["CompactionOptions"]["properties"]
    statuses = "200 400 401 408 413 415 422 500 502 503 504".split()
    assert sorted(operation["responses"]) == statuses
    assert operation["security"] == [{"token": []}]
    assert "observation" not in components["CompactionProposal"]["properties"]


def test_schema_without_token(start: Start) -> None:
    """A service without a token documents no 401."""
    schema = start().get("/openapi.json").json()
    assert "401" not in schema["paths"]["/compact_context"]["post"]["responses"]


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
def test_no_page_loads_scripts_from_elsewhere(start: Start, path: str) -> None:
    """FastAPI's documentation pages, which load scripts from a CDN, are not there."""
    assert start().get(path).status_code == 404
