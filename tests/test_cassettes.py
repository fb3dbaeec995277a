"""Cassettes answer below the real client, and never hold a key."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from agentscope.classifier import BinaryQuestion, ClassifierResponse

from agentscope_compaction.errors import DecisionHTTPError
from agentscope_compaction.models.jev import JevDecisionModel
from agentscope_compaction.testing.cassettes import (
    Cassette,
    CassetteError,
    CassetteMissError,
    request_digest,
)

pytestmark = pytest.mark.anyio

KEY = "sk-test-0123456789abcdef"
REPLY = {
    "model": "jev-1.13.0",
    "answers": {"call_t1": {"type": "noul", "noul": 0.25}},
    "usage": {"input_tokens": 9, "output_tokens": 1},
}


class Service(httpx.AsyncBaseTransport):
    """Answers every request and counts them."""

    def __init__(self, status: int = 200, content: bytes | None = None) -> None:
        self.status = status
        self.content = json.dumps(REPLY).encode() if content is None else content
        self.requests = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Give the same response again."""
        self.requests += 1
        return httpx.Response(self.status, content=self.content)


async def ask(cassette: Cassette, goal: str = "x", model: str = "jev-1.13.0") -> ClassifierResponse:
    """One call of the real client through the cassette."""
    async with httpx.AsyncClient(transport=cassette) as client:
        jev = JevDecisionModel(KEY, model=model, http_client=client, max_retries=0)
        return await jev({"goal": goal}, {"call_t1": BinaryQuestion(instructions="Is it?")})


async def test_what_was_recorded_is_replayed(tmp_path: Path) -> None:
    """The replayed response equals the recorded one, without a service."""
    path = tmp_path / "deep" / "one.jevl"
    service = Service()
    recorded = await ask(Cassette(path, "record", inner=service))
    tape = Cassette(path, "replay")
    replayed = await ask(tape)
    assert replayed.content == recorded.content
    assert (replayed.model, service.requests, tape.unplayed) == ("jev-1.13.0", 1, [])
    record = json.loads(path.read_text())
    assert record["v"] == 1
    assert record["answers"] == REPLY["answers"]
    assert record["usage"] == REPLY["usage"]
    assert record["meta"] == {"requested_model": "jev-1.13.0"}
    assert record["id"] == request_digest(record["request"])


async def test_no_secret_is_stored(tmp_path: Path) -> None:
    """Headers are not stored at all, and secrets in the judged history are taken out."""
    path = tmp_path / "one.jevl"
    await ask(Cassette(path, "record", inner=Service()), goal="use password=hunter2 here")
    assert KEY not in path.read_text()
    assert "authorization" not in path.read_text().lower()
    assert "password=[redacted] here" in path.read_text()
    await ask(Cassette(path), goal="use password=hunter2 here")


async def test_a_miss_is_a_failure_that_says_how_to_record(tmp_path: Path) -> None:
    """Replay never asks; the failure names the digest, the command and the test, and no content."""
    with pytest.raises(CassetteMissError) as caught:
        await ask(Cassette(tmp_path / "none.jevl"), goal="content-marker")
    message = str(caught.value)
    assert "none.jevl holds no answer for sha256:" in message
    assert "AGENTSCOPE_COMPACTION_CASSETTES=auto python -m pytest" in message
    assert "test_a_miss_is_a_failure" in message
    assert "content-marker" not in message
    assert isinstance(caught.value, AssertionError)


async def test_auto_asks_only_what_is_missing(tmp_path: Path) -> None:
    """Known requests replay, new ones are added behind them."""
    path, service = tmp_path / "one.jevl", Service()
    for goal in ("a", "b", "a"):
        await ask(Cassette(path, "auto", inner=service), goal)
    assert service.requests == 2
    assert len(path.read_text().splitlines()) == 2


async def test_stale_entries_are_reported_and_dropped_by_recording(tmp_path: Path) -> None:
    """What no request asks for any more is listed; recording again leaves it out."""
    path = tmp_path / "one.jevl"
    for goal in ("a", "b"):
        await ask(Cassette(path, "auto", inner=Service()), goal)
    first, second = (json.loads(line)["id"] for line in path.read_text().splitlines())
    tape = Cassette(path)
    assert tape.unplayed == [first, second]
    await ask(tape, "b")
    assert tape.unplayed == [first]
    await ask(Cassette(path, "record", inner=Service()), "b")
    assert Cassette(path).unplayed == [second]


async def test_another_model_is_another_request(tmp_path: Path) -> None:
    """Answers belong to the model they were asked of."""
    path = tmp_path / "one.jevl"
    await ask(Cassette(path, "record", inner=Service()))
    with pytest.raises(CassetteMissError):
        await ask(Cassette(path), model="jev-1.14.0")


@pytest.mark.parametrize("service", [Service(429), Service(200, b"<html>"), Service(200, b"[]")])
async def test_only_answers_are_recorded(tmp_path: Path, service: Service) -> None:
    """A failure passes through to the client and leaves no entry."""
    path = tmp_path / "one.jevl"
    with pytest.raises(Exception, match=r"429|object|model") as caught:
        await ask(Cassette(path, "record", inner=service))
    assert not path.exists()
    assert service.status == 200 or isinstance(caught.value, DecisionHTTPError)


async def test_the_mode_comes_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that a miss suggests works without touching a test."""
    monkeypatch.setenv("AGENTSCOPE_COMPACTION_CASSETTES", "auto")
    service = Service()
    await ask(Cassette(tmp_path / "one.jevl", inner=service))
    assert service.requests == 1
    monkeypatch.setenv("AGENTSCOPE_COMPACTION_CASSETTES", "sometimes")
    with pytest.raises(ValueError, match="sometimes"):
        Cassette(tmp_path / "one.jevl")


def record(**fields: Any) -> str:
    """One line of a cassette."""
    return json.dumps({"v": 1, "id": "sha256:0", "answers": {}} | fields)


@pytest.mark.parametrize(
    "line",
    ["{", "[]", "null", '{"v": 1}', record(id=3), record(v=2), record(v="1"), record(v=None)],
)
def test_a_bad_line_or_a_newer_format_is_refused(tmp_path: Path, line: str) -> None:
    """A cassette is never half read."""
    path = tmp_path / "one.jevl"
    path.write_text(f"{record()}\n\n{line}\n")
    with pytest.raises(CassetteError, match=r"one\.jevl:3"):
        Cassette(path)


async def test_unknown_keys_survive(tmp_path: Path) -> None:
    """Other tools keep labels in the same file."""
    path = tmp_path / "one.jevl"
    path.write_text(record(label={"call_t1": True}, other=[1]) + "\n")
    await ask(Cassette(path, "auto", inner=Service()))
    assert path.read_text().splitlines()[0] == json.dumps(
        json.loads(record(label={"call_t1": True}, other=[1])), separators=(",", ":")
    )


def test_the_digest_ignores_order_of_keys_and_other_fields() -> None:
    """Only what the model judges counts; values keep their order."""
    body = {"model": "m", "state": {"a": 1, "b": [1, 2]}, "questions": {"q": {}}}
    same = {"x": 1, "questions": {"q": {}}, "state": {"b": [1, 2], "a": 1}, "model": "m"}
    other = {**body, "state": {"a": 1, "b": [2, 1]}}
    assert request_digest(body) == request_digest(same) != request_digest(other)
    assert request_digest({"model": "m", "questions": {"q": {}}, "state": "é"}) == (
        "sha256:2b5842599b362992f1794f7b270658daf6b8b8d05e21add0a530ab4559b0d124"
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800"])
def test_what_has_no_canonical_form_has_no_digest(value: Any) -> None:
    """Better no cassette than one that matches by accident."""
    with pytest.raises(ValueError, match=r"."):
        request_digest({"state": value})
