"""Triggers, targets and growth, as numbers."""

from __future__ import annotations

from typing import Any

import pytest
from agentscope.agent import Agent
from agentscope.message import TextBlock
from agentscope.middleware import MiddlewareBase
from agentscope.model import ChatModelBase
from agentscope.tool import FunctionTool

from agentscope_compaction import (
    CompactionMiddleware,
    Compactor,
    ConfigurationError,
    accept_all,
    decide_pending,
    with_compaction,
)
from agentscope_compaction.agents.gauge import Gauge
from agentscope_compaction.agents.settings import Settings
from agentscope_compaction.testing.chat import ScriptedChatModel


@pytest.mark.parametrize(
    ("given", "beside", "trigger", "target"),
    [
        ({}, 0, 6_000, 4_000),
        ({}, 1_500, 4_500, 2_500),  # AgentScope counts prompt and tools, so we leave them room
        ({}, 4_500, 1_500, 1_000),
        ({}, 9_000, 1_000, 666),
        ({"trigger_tokens": 900}, 1_500, 900, 600),  # a target above the trigger never acts
        ({"trigger_tokens": 900, "target_tokens": 5_000}, 0, 900, 5_000),  # unless asked for
        ({"trigger_ratio": 0.0}, 0, 0, 1),
        ({"trigger_ratio": 0.3}, 0, 3_000, 2_000),
    ],
)
def test_triggers_and_targets(given: Any, beside: int, trigger: int, target: int) -> None:
    """For a window of 10,000 tokens."""
    settings = Settings(**given)
    assert settings.trigger(10_000, beside) == trigger
    assert settings.target(10_000, beside) == target


@pytest.mark.parametrize(
    ("ratio", "tokens", "judged", "grown"),
    [
        (0.1, 1_000, None, True),
        (0.1, 1_099, 1_000, False),
        (0.1, 1_100, 1_000, True),
        (0.1, 999, 1_000, True),  # it was cut or cleared since, so the old figure means nothing
        (0.0, 1_000, 1_000, False),
        (0.0, 1_001, 1_000, True),
    ],
)
def test_growth(ratio: float, tokens: int, judged: int | None, grown: bool) -> None:
    """At most one judging per growth step."""
    assert Settings(min_growth_ratio=ratio).grown(tokens, judged) is grown


@pytest.mark.anyio
async def test_the_size_is_agentscopes_own(lab: Any) -> None:
    """The cheap count equals AgentScope's, also after blocks were replaced."""
    agent, gauge = await lab.worked(), Gauge()
    for text in ("short", "长文本" * 50):
        agent.state.context[-1].content[-1] = TextBlock(text=text)
        own = await agent.model.count_tokens(list(agent.state.context), None)
        assert abs(await gauge.tokens(agent) - own) <= 1


@pytest.mark.anyio
async def test_a_model_that_counts_itself_is_asked(lab: Any) -> None:
    """Triggers, target and figures follow a model's own ``count_tokens``."""

    class Dense(ScriptedChatModel):
        async def count_tokens(self, messages: Any, tools: Any) -> int:
            return 3 * await ChatModelBase.count_tokens(self, messages, tools)

    agent = lab.agent([], middlewares=[CompactionMiddleware(lab.compactor(), accept_all)])
    agent.model = Dense(lab.script(8), context_size=16_000)
    await agent.reply(lab.user("look"))
    assert lab.cut(agent)  # by AgentScope's rule the window would not be half full
    assert agent.model.summaries == 0


class _Prompting(MiddlewareBase):
    async def on_system_prompt(self, agent: Any, current_prompt: str) -> str:
        return current_prompt + "Mind the rules. " * 2_500


def _long_tool() -> FunctionTool:
    def act() -> Any:
        return "done"

    act.__doc__ = "Act. " * 8_000
    return FunctionTool(act, name="act", is_read_only=True)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("form", "beside"),
    [("hook", "prompt"), ("hook", "middleware"), ("hook", "tool"), ("class", "tool")],
)
async def test_what_is_sent_beside_the_context_counts(lab: Any, form: str, beside: str) -> None:
    """We come before AgentScope's own summary, whatever else fills the window."""
    compactor, more = lab.compactor(), dict[str, Any]()
    middlewares: list[Any] = [_Prompting()] if beside == "middleware" else []
    if form == "hook":
        middlewares.append(CompactionMiddleware(compactor, accept_all))
    else:
        more["cls"] = with_compaction(compactor, review=accept_all)(Agent)
    agent = lab.agent(
        lab.script(8),
        middlewares=middlewares,
        tools=[_long_tool()] if beside == "tool" else [],
        context_size=16_000,
        system_prompt="Mind the rules. " * 2_500 if beside == "prompt" else "You work.",
        **more,
    )
    await agent.reply(lab.user("look"))
    assert lab.cut(agent)
    assert agent.model.summaries == 0


@pytest.mark.anyio
@pytest.mark.parametrize("text", ["look", "", b"look", 5])
async def test_one_text_is_no_list_of_names(lab: Any, text: Any) -> None:
    """A name given alone is refused: its letters would protect, allow or accept nothing."""
    agent = await lab.worked(3)
    before = lab.dump(agent)
    compactor = lab.compactor()
    with pytest.raises(ConfigurationError, match="eligible_tool_names"):
        Compactor(eligible_tool_names=text)
    for setting in ("protected_message_ids", "protected_call_ids"):
        with pytest.raises(ConfigurationError, match=setting):
            await compactor.propose(agent, **{setting: text})
    with pytest.raises(ConfigurationError):
        decide_pending(agent.state, text)
    assert lab.dump(agent) == before and await lab.archive.list() == []
    proposal = await compactor.propose(agent, protected_call_ids={"c0": 1}.keys())
    assert proposal.decisions[0].reason == "protected_call"
