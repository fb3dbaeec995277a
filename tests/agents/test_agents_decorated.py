"""What a decorated class keeps of its own, and who may be decorated."""

from __future__ import annotations

from typing import Any

import pytest
from agentscope.agent import A2AAgent, Agent
from agentscope.message import UserMsg

from agentscope_compaction import (
    CompactionMiddleware,
    CompactionMixin,
    CompactionProposal,
    ConfigurationError,
    accept_all,
    with_compaction,
)
from agentscope_compaction.testing.chat import say
from tests.agents.forms import build

pytestmark = pytest.mark.anyio


async def test_the_class_decides(lab: Any) -> None:
    """``review_compaction`` of a decorated class, or of its subclass, decides; sync or async."""

    @with_compaction(lab.compactor(), trigger_tokens=2_000)
    class Base(Agent):
        def review_compaction(self, proposal: CompactionProposal) -> list[str]:
            return ["t1"]

    class Child(Base):
        async def review_compaction(  # type: ignore[override]
            self, proposal: CompactionProposal
        ) -> bool:
            return False

    agent, child = lab.agent(lab.script(4), cls=Base), lab.agent(lab.script(4), cls=Child)
    await agent.reply(lab.user("look"))
    await child.reply(lab.user("look"))
    assert lab.cut(agent) and lab.cut(child) == []
    assert child.pending_proposal is None


class _Asked(Agent):
    """An agent whose replies have a signature of their own."""

    async def reply(self, question: str, *, loud: bool = False) -> Any:  # type: ignore[override]
        return await super().reply(UserMsg(name="user", content=question.upper()))

    async def reply_stream(self, question: str, *, loud: bool = False) -> Any:  # type: ignore[override]
        async for item in super().reply_stream(UserMsg(name="user", content=question.upper())):
            yield item


@pytest.mark.parametrize("form", ["class", "instance", "mixin"])
@pytest.mark.parametrize("args", [(("look",), {}), ((), {"question": "look", "loud": True})])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_signature_of_its_own_is_kept(
    lab: Any, form: str, args: tuple[Any, Any], stream: bool
) -> None:
    """A class that takes something else than AgentScope's inputs is called as it says."""
    given, named = args
    keywords = {"trigger_tokens": 2_000, "review": accept_all, "during_reply": False}
    turns = [*lab.script(4), [say("end")]]
    agent = build(lab, form, lab.compactor(), turns, base=_Asked, **keywords)
    for _ in range(2):
        if stream:
            assert [item async for item in agent.reply_stream(*given, **named)]
        else:
            await agent.reply(*given, **named)
    assert [message.get_text_content() for message in agent.state.context[::2]] == ["LOOK"] * 2
    assert lab.cut(agent)  # it was looked at before the second reply


async def test_base_and_subclass_decorated_work_once(lab: Any) -> None:
    """A decorated subclass of a decorated class asks once, with its own settings."""
    base = with_compaction(lab.compactor(), trigger_tokens=10)(Agent)

    @with_compaction(lab.compactor(), trigger_tokens=2_000, review=accept_all)
    class Child(base):  # type: ignore[misc, valid-type]
        pass

    agent = lab.agent(lab.script(5), cls=Child)
    await agent.reply(lab.user("look"))
    calls = [name for name in lab.judge.asked if name.startswith("call_")]
    assert calls and len(calls) == len(set(calls))


def test_only_agents_can_be_decorated(lab: Any) -> None:
    """Anything that is no ``Agent`` is a ``TypeError``; bad numbers are told at once."""
    decorate: Any = with_compaction(lab.compactor())
    for target in (A2AAgent, object, 3):
        with pytest.raises(TypeError):
            decorate(target)
    for bad in ({"trigger_ratio": 1.5}, {"target_tokens": 0}, {"min_growth_ratio": True}):
        with pytest.raises(ConfigurationError):
            with_compaction(lab.compactor(), **bad)
        with pytest.raises(ConfigurationError):
            CompactionMiddleware(lab.compactor(), **bad)


async def test_an_undecorated_mixin_says_so(lab: Any) -> None:
    """The typed mixin alone works as an agent and names what is missing."""
    agent = lab.agent([[say("hi")]], cls=CompactionMixin)
    assert (await agent.reply(lab.user("hi"))).get_text_content() == "hi"
    with pytest.raises(ConfigurationError):
        await agent.propose_compaction(goal="x")
