"""The goal a model is told, where nobody gave one: the newest words of the user."""

from __future__ import annotations

from typing import Any

import pytest

from agentscope_compaction import CompactionMiddleware, accept_all
from agentscope_compaction.testing import ScriptedDecisionModel
from agentscope_compaction.testing.chat import say

pytestmark = pytest.mark.anyio


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
