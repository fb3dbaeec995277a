"""Propose, accept and reject by hand on real agents."""

from __future__ import annotations

from typing import Any

import pytest
from agentscope.agent import Agent
from agentscope.message import Msg
from agentscope.state import AgentState

from agentscope_compaction import ConfigurationError, with_compaction
from agentscope_compaction.testing import HistoryBuilder

pytestmark = pytest.mark.anyio


async def test_a_proposal_leaves_the_state_alone(lab: Any) -> None:
    """Proposing changes nothing of the agent's state."""
    agent = await lab.worked()
    before = agent.state.model_dump_json()
    proposal = await agent.propose_compaction(goal="sum up")
    assert proposal.changed
    assert agent.state.model_dump_json() == before
    assert agent.pending_proposal is proposal


async def test_accepting_cuts_and_marks_the_results(lab: Any) -> None:
    """An accepted cut keeps call, id, name and state, and says where the original is."""
    agent = await lab.worked()
    before = lab.results(agent)
    proposal = await agent.propose_compaction(goal="sum up")
    assert await agent.accept_compaction(proposal) == ("t1", "t2", "t3", "t4", "t5")
    after = lab.results(agent)
    for call in ("c0", "c1", "c2", "c3", "c4"):
        assert len(str(after[call].output)) < len(str(before[call].output))
        assert (after[call].name, after[call].state) == (before[call].name, before[call].state)
        assert after[call].metadata["compaction"] == {
            "archive_ref": proposal.archive_ref,
            "call_id": call,
            "chars": len(lab.page(int(call[1]))),
        }
    assert after["c5"] == before["c5"]
    assert agent.pending_proposal is None
    assert await lab.kinds(proposal.archive_ref) == ["proposed", "accepted"]


@pytest.mark.parametrize("calls", [["t2", "t3"], ["c1", "c2"], {"t2", "c2"}])
async def test_accepting_some_calls(lab: Any, calls: Any) -> None:
    """Only the named calls are cut, by decision id or call id; the rest can follow later."""
    agent = await lab.worked()
    proposal = await agent.propose_compaction(goal="sum up")
    assert await agent.accept_compaction(proposal, calls=calls) == ("t2", "t3")
    assert lab.cut(agent) == ["c1", "c2"]
    assert await lab.kinds(proposal.archive_ref) == ["proposed", "partly"]
    assert await agent.accept_compaction(proposal) == ("t1", "t4", "t5")
    assert lab.cut(agent) == ["c0", "c1", "c2", "c3", "c4"]


async def test_what_frees_little_can_be_accepted(lab: Any) -> None:
    """Whatever a proposal says it would cut can be cut, alone, by however few characters."""
    agent = await lab.worked(3)
    freed = []
    for size in range(380, 620, 8):
        lab.results(agent)["c0"].output[0].text = "é" * size
        proposal = await agent.propose_compaction(goal="sum up")
        decision = proposal.decisions[0]
        assert decision.action == "drop_result"
        carried_out = await agent.accept_compaction(proposal, calls=["t1"])
        assert carried_out == (("t1",) if decision.applied else ())
        assert lab.results(agent)["c0"].output[0].text == _text(proposal, "c0")
        if carried_out:
            freed.append(decision.chars_before - decision.chars_after)
            assert await agent.restore_compaction(proposal) == ("t1",)
    assert 0 < min(freed) < 20 and max(freed) > 100


def _text(proposal: Any, call_id: str) -> str:
    blocks = [block for message in proposal.messages for block in message["content"]]
    (result,) = (b for b in blocks if b["type"] == "tool_result" and b["id"] == call_id)
    return str(result["output"][0]["text"])


async def test_unknown_calls_are_refused(lab: Any) -> None:
    """A call the proposal does not know is an error, and nothing is applied."""
    agent = await lab.worked()
    proposal = await agent.propose_compaction(goal="sum up")
    for calls in (["t99"], "t1", b"t1", 1, [None]):
        with pytest.raises(ConfigurationError, match=r"calls|no call"):
            await agent.accept_compaction(proposal, calls=calls)
    assert lab.cut(agent) == []
    assert agent.pending_proposal is proposal


@pytest.mark.parametrize("given", ["t1", 3, {"proposal_id": "x"}, [], "without options"])
async def test_what_is_no_proposal_is_refused(lab: Any, given: Any) -> None:
    """Whatever else is accepted or restored is one clear error, and nothing changes."""
    agent = await lab.worked()
    proposal = await agent.propose_compaction(goal="sum up")
    if given == "without options":
        given = proposal.model_copy(update={"stats": {}})
    before = agent.state.model_dump_json()
    for decide in (agent.accept_compaction, agent.restore_compaction):
        with pytest.raises(ConfigurationError):
            await decide(given)
    with pytest.raises(ConfigurationError, match="a proposal is needed, not NoneType"):
        await agent.accept_compaction(None)
    with pytest.raises(ConfigurationError, match="a proposal is needed, not NoneType"):
        await agent.reject_compaction(None)
    assert agent.state.model_dump_json() == before
    assert agent.pending_proposal is proposal


@pytest.mark.parametrize("target", [0, -1, 1.5, "many"])
async def test_a_target_that_is_none_is_refused(lab: Any, target: Any) -> None:
    """A target is a positive number of tokens."""
    agent = await lab.worked()
    with pytest.raises(ConfigurationError, match="target_tokens"):
        await lab.compactor().propose(agent, target_tokens=target)


async def test_a_call_id_that_reads_like_a_decision_id(lab: Any) -> None:
    """``t2`` names the decision, not the call a provider happened to call so."""
    compactor = lab.compactor()
    agent = lab.agent(lab.script(4, "t"), cls=with_compaction(compactor)(Agent))
    await agent.reply(lab.user("look"))
    proposal = await agent.propose_compaction(goal="sum up")
    assert await agent.accept_compaction(proposal, calls=["t2"]) == ("t2",)
    assert lab.cut(agent) == ["t1"]


async def test_accepting_twice_changes_nothing(lab: Any) -> None:
    """The second acceptance returns nothing and leaves the state byte for byte."""
    agent = await lab.worked()
    proposal = await agent.propose_compaction(goal="sum up")
    await agent.accept_compaction(proposal)
    before = agent.state.model_dump_json()
    assert await agent.accept_compaction(proposal) == ()
    assert agent.state.model_dump_json() == before


async def test_rejecting_is_recorded(lab: Any) -> None:
    """A rejection leaves the context alone and keeps its reason."""
    agent = await lab.worked()
    proposal = await agent.propose_compaction(goal="sum up")
    before = lab.dump(agent)
    await agent.reject_compaction(proposal, reason="keep the logs")
    assert lab.dump(agent) == before
    record = (await lab.archive.history(proposal.archive_ref))[-1]
    assert (record.outcome.kind, record.outcome.reason) == ("rejected", "keep the logs")


async def test_read_cache_entries_of_cut_reads_go(lab: Any) -> None:
    """A file whose Read was cut must be read again before an edit; others stay cached."""
    compactor = lab.compactor()
    compactor.eligible_tool_names = ("Read",)
    agent = await lab.worked()
    for block in agent.state.context[1].content:
        if block.type in ("tool_call", "tool_result"):
            block.name = "Read"
        if block.type == "tool_call":
            block.input = f'{{"file_path": "/{block.id}"}}'
    fields = {"lines": ["x"], "updated_at": 0.0, "bytes": 1.0}
    entries = [{**fields, "file_path": path} for path in ("/c0", "/c5", "/elsewhere")]
    tools = {**agent.state.tool_context.model_dump(), "read_file_cache": entries}
    agent.state.tool_context = type(agent.state.tool_context).model_validate(tools)
    proposal = await compactor.propose(agent, goal="sum up")
    await compactor.accept(agent, proposal)
    left = [entry.file_path for entry in agent.state.tool_context.read_file_cache]
    assert left == ["/c5", "/elsewhere"]


async def test_the_tail_message_never_vanishes(lab: Any) -> None:
    """A finished reply of nothing but calls at the end is cut, not removed: hosts look there."""
    built = HistoryBuilder().user("look").reply().call("look", {"page": 1}, lab.page(1), "a")
    state = AgentState(context=[Msg.model_validate(message) for message in built.messages])
    compactor = lab.compactor(lab.remover(), preserve_recent_calls=0)
    agent = lab.agent([], cls=with_compaction(compactor)(Agent), state=state)
    proposal = await agent.propose_compaction(goal="sum up")
    assert [(d.action, d.reason) for d in proposal.decisions] == [("drop_result", "removal_unsafe")]
    assert await agent.accept_compaction(proposal) == ("t1",)
