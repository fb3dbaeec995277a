"""Propose, accept, reject and restore by hand on real agents."""

from __future__ import annotations

from typing import Any

import pytest
from agentscope.agent import Agent
from agentscope.message import Msg, TextBlock, ToolCallBlock, ToolCallState
from agentscope.state import AgentState
from agentscope.tool import FunctionTool

from agentscope_compaction import (
    CompactionMiddleware,
    ConfigurationError,
    StaleProposalError,
    accept_all,
    with_compaction,
)
from agentscope_compaction.testing import HistoryBuilder, ScriptedDecisionModel
from agentscope_compaction.testing.chat import say, use

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
        with pytest.raises(ConfigurationError):
            await agent.accept_compaction(proposal, calls=calls)
    assert lab.cut(agent) == []


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
    with pytest.raises(ConfigurationError):
        await agent.accept_compaction(None)
    with pytest.raises(ConfigurationError):
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


async def test_accepted_late_keeps_what_came_since(lab: Any) -> None:
    """Messages and blocks appended after the proposal survive its acceptance."""
    agent = await lab.worked()
    proposal = await agent.propose_compaction(goal="sum up")
    agent.state.context[-1].content.append(TextBlock(text="an afterthought"))
    await agent.reply(lab.user("go on"))
    since = lab.dump(agent)
    assert await agent.accept_compaction(proposal)
    now = lab.dump(agent)
    assert now[2:] == since[2:]
    assert now[1]["content"][-1] == since[1]["content"][-1]
    assert lab.cut(agent) == ["c0", "c1", "c2", "c3", "c4"]


def _edit(context: list[Any]) -> None:
    context[1].content[-1].text = "other words"


def _edit_result(context: list[Any]) -> None:
    block = next(b for b in context[1].content if b.type == "tool_result")
    block.output = "other output"


def _edit_unproposed(context: list[Any]) -> None:
    next(b for b in context[1].content if b.id == "c5").input = '{"page": 6}'


def _swap_tail(context: list[Any]) -> None:
    del context[1].content[:2]
    context[1].content += [TextBlock(text="a"), TextBlock(text="b")]


def _drop_message(context: list[Any]) -> None:
    context.append(context.pop(0))


def _clear(context: list[Any]) -> None:
    context.clear()


@pytest.mark.parametrize(
    "change", [_edit, _edit_result, _edit_unproposed, _swap_tail, _drop_message, _clear]
)
async def test_any_other_change_is_stale(lab: Any, change: Any) -> None:
    """An edit in place, or as many deleted as appended, refuses the whole proposal."""
    agent = await lab.worked()
    proposal = await agent.propose_compaction(goal="sum up")
    change(agent.state.context)
    before = agent.state.model_dump_json()
    with pytest.raises(StaleProposalError):
        await agent.accept_compaction(proposal)
    assert agent.state.model_dump_json() == before
    assert agent.pending_proposal is None
    assert await lab.kinds(proposal.archive_ref) == ["proposed", "stale"]


async def test_another_agent_is_stale(lab: Any) -> None:
    """A proposal about one agent's history does not fit another's."""
    agent, other = await lab.worked(), await lab.worked()
    proposal = await agent.propose_compaction(goal="sum up")
    before = other.state.model_dump_json()
    with pytest.raises(StaleProposalError):
        await other.accept_compaction(proposal)
    assert other.state.model_dump_json() == before


async def test_rejecting_is_recorded(lab: Any) -> None:
    """A rejection leaves the context alone and keeps its reason."""
    agent = await lab.worked()
    proposal = await agent.propose_compaction(goal="sum up")
    before = lab.dump(agent)
    await agent.reject_compaction(proposal, reason="keep the logs")
    assert lab.dump(agent) == before
    record = (await lab.archive.history(proposal.archive_ref))[-1]
    assert (record.outcome.kind, record.outcome.reason) == ("rejected", "keep the logs")


async def test_removal_in_finished_replies_and_back(lab: Any) -> None:
    """Removed pairs go whole, and restoring brings back the very bytes."""
    agent = await lab.worked(judge=lab.remover())
    before = lab.dump(agent)
    proposal = await agent.propose_compaction(goal="sum up")
    await agent.accept_compaction(proposal)
    assert list(lab.results(agent)) == ["c5"]
    await agent.reply(lab.user("go on"))
    assert lab.runs.total() == 8  # nothing ran again
    assert await agent.restore_compaction(proposal)
    assert lab.dump(agent)[:2] == before
    assert await agent.restore_compaction(proposal) == ()


@pytest.mark.parametrize("removing", [False, True])
@pytest.mark.parametrize("calls", [None, ["t1", "t4"]])
async def test_restore_in_a_new_process(lab: Any, removing: bool, calls: Any) -> None:
    """With only the archive and the saved state, the old context comes back byte for byte."""
    agent = await lab.worked(judge=lab.remover() if removing else None)
    before = lab.dump(agent)
    await agent.accept_compaction(await agent.propose_compaction(goal="sum up"), calls=calls)
    assert lab.dump(agent) != before
    state = AgentState.model_validate_json(agent.state.model_dump_json())
    fresh = lab.agent([], cls=with_compaction(lab.compactor())(Agent), state=state)
    assert await fresh.restore_compaction()
    assert lab.dump(fresh) == before


@pytest.mark.parametrize("removing", [False, True])
@pytest.mark.parametrize("cuts", [(1, 2), (2, 4), (3, 7), (5, 6), (4, 8), (10, 11)])
async def test_a_reply_in_several_messages_of_one_id(
    lab: Any, removing: bool, cuts: tuple[int, int]
) -> None:
    """Where a middleware's message splits a reply, its parts are told apart and come back."""
    agent = await lab.worked(judge=lab.remover() if removing else None)
    task, whole = agent.state.context
    agent.state.context = [task]
    for start, end in ((0, cuts[0]), (cuts[0], cuts[1]), (cuts[1], None)):
        part = whole.model_copy(update={"content": whole.content[start:end]})
        agent.state.context += [part, lab.user("by the way")]
    before = lab.dump(agent)
    proposal = await agent.propose_compaction(goal="sum up")
    assert await agent.accept_compaction(proposal, calls=["t1", "t3"]) == ("t1", "t3")
    assert await agent.accept_compaction(proposal) == ("t2", "t4", "t5")
    assert await agent.accept_compaction(proposal) == ()
    assert len(await agent.restore_compaction(proposal)) == 5
    assert lab.dump(agent) == before
    assert await agent.restore_compaction(proposal) == ()


async def test_restore_passes_over_what_left_the_context(lab: Any) -> None:
    """Where the host dropped part of a message since, the rest is still restored."""
    agent = await lab.worked()
    proposal = await agent.propose_compaction(goal="sum up")
    await agent.accept_compaction(proposal)
    del agent.state.context[1].content[:4]
    assert await agent.restore_compaction(proposal) == ("t3", "t4", "t5")
    assert lab.cut(agent) == []


async def test_two_passes_and_back(lab: Any) -> None:
    """Stubs are not judged again, and passes are undone one by one."""
    agent = await lab.worked()
    first = lab.dump(agent)
    await agent.accept_compaction(await agent.propose_compaction(goal="sum up"))
    await agent.reply(lab.user("go on"))
    second = await agent.propose_compaction(goal="sum up")
    acting = [d.call_id for d in second.decisions if d.action != "keep"]
    assert acting == ["c5", "d0"]
    await agent.accept_compaction(second)
    assert await agent.restore_compaction() and await agent.restore_compaction()
    assert lab.dump(agent)[:2] == first
    assert await agent.restore_compaction() == ()


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


async def test_open_calls_are_untouched_and_accepting_goes_on(lab: Any) -> None:
    """A call that runs or waits keeps its place and state while a proposal is accepted."""
    agent = await lab.worked()
    waiting = ToolCallBlock(id="ask", name="look", input='{"page": 9}', state=ToolCallState.ASKING)
    agent.state.context[-1].content.append(waiting)
    proposal = await agent.propose_compaction(goal="sum up")
    assert "ask" not in {d.call_id for d in proposal.decisions}
    await agent.accept_compaction(proposal)
    assert agent.state.context[-1].content[-1] is waiting
    assert agent.state.has_awaiting_tool_calls("worker")


@pytest.mark.parametrize("removing", [False, True])
async def test_a_tool_of_the_agent_may_compact_it(lab: Any, removing: bool) -> None:
    """The call that compacts, and any beside it, keep their places and get their results."""
    agents: list[Any] = []

    async def tidy() -> Any:
        """Compact the context."""
        proposal = await agents[0].propose_compaction(goal="go on")
        return f"cut {len(await agents[0].accept_compaction(proposal))}"

    judge = lab.remover() if removing else None
    compactor = lab.compactor(judge, preserve_recent_calls=0)
    compactor.eligible_tool_names = ("look", "tidy")
    cls = with_compaction(compactor, before_reply=False, during_reply=False)(Agent)
    together = [use("look", "beside", page=8), use("tidy", "k"), use("look", "after", page=9)]
    turns = [*lab.turns(3), together, *lab.script(2, "d", 50)]
    tool = FunctionTool(tidy, name="tidy", is_read_only=True)
    agents.append(lab.agent(turns, cls=cls, tools=[tool]))
    answer = await agents[0].reply(lab.user("look, tidy up, look"))
    assert answer.get_text_content() == "done d"
    assert set(lab.runs.values()) == {1} and len(lab.runs) == 7
    assert set(lab.cut(agents[0])) >= {"c0", "c1", "c2"}
    blocks = [block for message in agents[0].state.context for block in message.content]
    calls = [block.id for block in blocks if block.type == "tool_call"]
    assert calls == ["c0", "c1", "c2", "beside", "k", "after", "d0", "d1"]
    assert sorted(calls) == sorted(lab.results(agents[0]))


async def test_the_agent_keeps_running(lab: Any) -> None:
    """After an acceptance the next reply runs its two calls once and ends."""
    agent = await lab.worked()
    await agent.accept_compaction(await agent.propose_compaction(goal="sum up"))
    answer = await agent.reply(lab.user("go on"))
    assert answer.get_text_content() == "done d"
    assert set(lab.runs.values()) == {1}
    assert len(agent.model.calls) == 10


async def test_removal_is_refused_in_a_running_reply(lab: Any) -> None:
    """Within the running reply a removal becomes a cut."""
    seen: list[Any] = []

    class Watcher(Agent):
        async def compress_context(self, *args: Any, **kwargs: Any) -> None:
            if len(self.model.calls) == 4:  # type: ignore[attr-defined]
                seen.append(await self.propose_compaction(goal="go on"))  # type: ignore[attr-defined]
                await self.accept_compaction(seen[0])  # type: ignore[attr-defined]
            await super().compress_context(*args, **kwargs)

    cls = with_compaction(lab.compactor(lab.remover()), during_reply=False)(Watcher)
    agent = lab.agent(lab.script(6), cls=cls)
    await agent.reply(lab.user("look"))
    done = [d for d in seen[0].decisions if d.action != "keep"]
    assert {(d.action, d.reason) for d in done} == {("drop_result", "removal_unsafe")}
    assert lab.cut(agent) == ["c0", "c1", "c2"]
    assert set(lab.runs.values()) == {1} and len(lab.runs) == 6


async def test_a_message_of_only_calls_can_be_judged(lab: Any) -> None:
    """A reply that never said a word is judged like any other, and may vanish when it is over."""
    built = HistoryBuilder().user("look").reply()
    built.call("look", {"page": 1}, lab.page(1), "a").user("and?").say("nothing")
    state = AgentState(context=[Msg.model_validate(message) for message in built.messages])
    compactor = lab.compactor(lab.remover(), preserve_recent_calls=0)
    agent = lab.agent([], cls=with_compaction(compactor)(Agent), state=state)
    before = lab.dump(agent)
    proposal = await agent.propose_compaction(goal="sum up")
    assert await agent.accept_compaction(proposal) == ("t1",)
    assert len(agent.state.context) == 3
    assert await agent.restore_compaction(proposal) == ("t1",)
    assert lab.dump(agent) == before


async def test_the_tail_message_never_vanishes(lab: Any) -> None:
    """A finished reply of nothing but calls at the end is cut, not removed: hosts look there."""
    built = HistoryBuilder().user("look").reply().call("look", {"page": 1}, lab.page(1), "a")
    state = AgentState(context=[Msg.model_validate(message) for message in built.messages])
    compactor = lab.compactor(lab.remover(), preserve_recent_calls=0)
    agent = lab.agent([], cls=with_compaction(compactor)(Agent), state=state)
    proposal = await agent.propose_compaction(goal="sum up")
    assert [(d.action, d.reason) for d in proposal.decisions] == [("drop_result", "removal_unsafe")]
    assert await agent.accept_compaction(proposal) == ("t1",)


@pytest.mark.parametrize("pasted", ["fault 17 in a log\n" * 30_000, "日志" * 30_000, "x" * 500_000])
@pytest.mark.parametrize("form", ["hook", "agent", "messages"])
async def test_a_message_that_holds_a_log_is_a_goal(lab: Any, pasted: str, form: str) -> None:
    """However much a user pastes, what is asked of a remote model fits; a local one is told all."""
    key = "sk-" + "4f9a" * 8
    text = f"Find the fault. {'so ' * 1_990}{key} {pasted} Then mend page 3."
    local = ScriptedDecisionModel({"call": 0.9, "result": 0.0}, local=True)
    for judge in (lab.judge, local):
        compactor = lab.compactor(judge)
        hook = CompactionMiddleware(compactor, accept_all, trigger_tokens=100, during_reply=False)
        turns = [*lab.script(4), [say("end")]]
        agent = lab.agent(turns, middlewares=[hook] if form == "hook" else [])
        await agent.reply(lab.user("look"))
        if form == "hook":
            await agent.reply(lab.user(text))
        else:
            agent.state.context.append(lab.user(text))
            await compactor.propose(agent if form == "agent" else agent.state.context)
    (sent,), (told,) = ([state["goal"] for state, _ in j.requests] for j in (lab.judge, local))
    assert told == text
    assert sent.startswith("Find the fault.") and sent.endswith("Then mend page 3.")
    assert len(sent) < 10_000 and "sk-" not in sent


@pytest.mark.parametrize("form", ["Msg", "JSON"])
async def test_messages_tell_their_own_goal(lab: Any, form: str) -> None:
    """Messages without an agent are judged by their newest user message, unless a goal is given."""
    agent = await lab.worked(4)
    agent.state.context.append(lab.user("now fix page 3"))
    agent.state.context.append(lab.user(" "))
    messages = lab.dump(agent) if form == "JSON" else list(agent.state.context)
    compactor = lab.compactor()
    await compactor.propose(messages)
    await compactor.propose(messages, goal="something else")
    await compactor.propose([{"role": "user", "content": []}, *messages[1:2]])
    goals = [state["goal"] for state, _ in lab.judge.requests]
    assert goals == ["now fix page 3", "something else", "Continue the current task."]
