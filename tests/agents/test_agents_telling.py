"""What is told about proposals and outcomes: spans, log lines and notes; never content."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from agentscope.agent import Agent
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agentscope_compaction import (
    ArchiveError,
    CompactionOptions,
    StaleProposalError,
    Thresholds,
    accept_all,
    with_compaction,
)
from agentscope_compaction.testing import ScriptedDecisionModel

pytestmark = pytest.mark.anyio

_SPANS = InMemorySpanExporter()


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """Collect spans; the provider of a process can be set only once."""
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(_SPANS))
        trace.set_tracer_provider(provider)
    _SPANS.clear()
    yield _SPANS
    _SPANS.clear()


def _ours(spans: InMemorySpanExporter) -> list[Any]:
    return [s for s in spans.get_finished_spans() if s.name.startswith("compaction ")]


async def test_one_span_and_one_line_each(
    lab: Any, spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    """Every proposal and outcome is one span and one structured log line, without content."""
    agent = await lab.worked()
    with caplog.at_level(logging.INFO, "agentscope_compaction"):
        proposal = await agent.propose_compaction(goal="find the SECRET code")
        await agent.accept_compaction(proposal)
        await agent.restore_compaction(proposal)
        await agent.reject_compaction(proposal)
        agent.state.context[0].content.clear()
        with pytest.raises(StaleProposalError):
            await agent.accept_compaction(proposal)
    names = [span.name.removeprefix("compaction ") for span in _ours(spans)]
    assert names == ["propose", "accept", "restore", "reject", "accept"]
    assert _ours(spans)[0].attributes["agentscope.compaction.drop_result"] == 5
    assert _ours(spans)[0].attributes["gen_ai.conversation.id"] == agent.state.session_id
    assert _ours(spans)[-1].attributes["error.type"] == "StaleProposalError"
    lines = [r.getMessage() for r in caplog.records if r.name == "agentscope_compaction"]
    kinds = [line.split(" ", 2)[1] for line in lines]
    assert kinds == ["proposed", "accepted", "restored", "rejected", "stale"]
    told = "".join(lines) + "".join(span.to_json() for span in _ours(spans))
    assert all(json.loads(line.split(" ", 2)[2])["proposal_id"] for line in lines)
    assert "SECRET" not in told and "code of page" not in told


async def test_a_failed_span_names_the_error_only(lab: Any, spans: InMemorySpanExporter) -> None:
    """A failure is told by its type: its words and traceback may quote content."""

    class Broken:
        async def save(self, *args: Any, **kwargs: Any) -> str:
            raise ArchiveError("SECRET-7")

    agent = await lab.worked()
    compactor = lab.compactor()
    compactor._archive = Broken()
    with pytest.raises(ArchiveError):
        await compactor.propose(agent, goal="x")
    (span,) = _ours(spans)
    assert span.attributes["error.type"] == "ArchiveError"
    assert "SECRET" not in span.to_json()


async def test_notes_are_small_json(lab: Any) -> None:
    """After many passes the notes are still a small JSON object of ids and numbers."""
    agent = await lab.worked()
    for n in range(40):
        agent.model.turns += lab.script(2, f"x{n}-", 100 + 10 * n)
        await agent.reply(lab.user(f"question {n}"))
        await agent.accept_compaction(await agent.propose_compaction(goal="sum up"))
    notes = agent.state.middle_context
    text = json.dumps(notes)
    assert list(notes) == ["agentscope_compaction"] and len(text) < 8_000
    assert "question" not in text and "page" not in text


_ODD = [{"decision": True}, {"proposal_id": 1, "archive_ref": "a", "decision": True}, "x", [1], 7]


@pytest.mark.parametrize("odd", _ODD, ids=str)
@pytest.mark.parametrize("key", ["pending", "accepted", "accepted item", "judged_tokens", None])
async def test_notes_of_another_form_are_no_notes(lab: Any, key: str | None, odd: Any) -> None:
    """A state that something else wrote into still compacts, recalls and restores."""
    compactor = lab.compactor()
    cls = with_compaction(compactor, review=accept_all, trigger_tokens=2_000)(Agent)
    agent = lab.agent(lab.script(4), cls=cls)
    wrapped = {"accepted": [odd]} if key == "accepted item" else {key: odd}
    agent.state.middle_context["agentscope_compaction"] = odd if key is None else wrapped
    chunk = await compactor.recall_tool()(call_id="c0", _agent_state=agent.state)
    assert "No archived output is known" in chunk.content[0].text
    assert await agent.restore_compaction() == ()
    await agent.reply(lab.user("look"))
    assert lab.cut(agent)
    while await agent.restore_compaction():
        pass
    assert lab.cut(agent) == []


async def test_unchanged_calls_are_not_asked_again(lab: Any) -> None:
    """For the same goal only new candidates are asked."""
    agent = await lab.worked()
    await agent.propose_compaction(goal="sum up")
    asked = len(lab.judge.asked)
    proposal = await agent.propose_compaction(goal="sum up")
    assert len(lab.judge.asked) == asked and proposal.stats["reused"] == 5
    await agent.propose_compaction(goal="another")
    assert len(lab.judge.asked) == 2 * asked


async def test_answers_from_before_count_as_asked(lab: Any) -> None:
    """A model that told nothing apart is not believed later, when only few calls are new."""
    judge = ScriptedDecisionModel({"call": 0.05, "result": 0.05})
    agent = await lab.worked(8, judge=judge, require_signal=True)
    for calls, expected in ((0, 14), (2, 4), (0, 0)):
        if calls:
            await agent.reply(lab.user("go on"))
        asked = len(judge.asked)
        proposal = await agent.propose_compaction(goal="sum up")
        assert len(judge.asked) - asked == expected == proposal.stats["questions"]
        assert (proposal.reason, proposal.changed) == ("no_signal", False)


async def test_answers_from_before_keep_their_model(lab: Any) -> None:
    """Thresholds and figures go by who answered, also when that was an earlier proposal."""
    judge = _Versions()
    agent = await lab.worked(4, judge=judge)
    thresholds = []
    for version in ("v-1", "v-2", "v-2"):
        judge.name = version
        proposal = await agent.propose_compaction(goal="sum up")
        thresholds.append((proposal.stats["model"], proposal.stats["thresholds"]["result"]))
        if version == "v-1":
            await agent.reply(lab.user("go on"))
    assert thresholds == [("v-1", 0.3), ("v-1 + v-2", 0.01), ("v-1 + v-2", 0.01)]


async def test_more_evidence_is_a_new_question(lab: Any) -> None:
    """Answers given without seeing the outputs do not stand in for answers that saw them."""
    agent = await lab.worked(4)
    await agent.propose_compaction(goal="sum up")
    asked = len(lab.judge.asked)
    options = CompactionOptions.for_agents(evidence_chars=500, preserve_recent_calls=1)
    await agent.propose_compaction(goal="sum up", options=options)
    assert len(lab.judge.asked) == 2 * asked


class _Versions(ScriptedDecisionModel):
    """A model whose thresholds depend on the version that answered; it knows only ``v-1``."""

    def __init__(self) -> None:
        super().__init__({"call": 0.9, "result": 0.0})

    def thresholds_for(self, answered: str) -> Thresholds:
        """Return the thresholds of a version."""
        return Thresholds(0.1, 0.3 if answered == "v-1" else 0.01)
