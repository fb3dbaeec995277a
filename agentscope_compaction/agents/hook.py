"""The memory hook: an AgentScope middleware that compacts before replies and model calls."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from agentscope.event import CustomEvent, ReplyStartEvent
from agentscope.middleware import MiddlewareBase

from agentscope_compaction.agents.driver import Driver
from agentscope_compaction.agents.notes import KEY
from agentscope_compaction.agents.reviewers import Review
from agentscope_compaction.agents.settings import Settings
from agentscope_compaction.compactor import Compactor

if TYPE_CHECKING:
    from agentscope.agent import Agent
    from agentscope.tool import ToolBase

__all__ = ["EVENT", "CompactionMiddleware", "compaction_middlewares"]

EVENT = "compaction_proposed"
"""Name of the ``CustomEvent`` that announces a proposal."""


class CompactionMiddleware(MiddlewareBase):
    """Proposes compactions as an agent's context grows; ``review`` decides.

    Stateless between replies (what is remembered is in ``agent.state``), so one instance may serve
    many agents, and a new instance may take over.

    Args:
        compactor: Decision model, archive and options.
        review: The agent's own code: returns True, False, or the ids to accept, sync or async; what
            is awaited has the options' ``total_timeout_seconds``. None = the agent's method
            ``review_compaction``, if it has one; else proposals are archived and announced, never
            applied.
        trigger_ratio: Share of ``model.context_size`` above which a proposal is made.
        trigger_tokens: That size in tokens; instead of the ratio.
        target_ratio: Share of ``model.context_size`` at which compaction stops.
        target_tokens: That size in tokens; instead of the ratio.
        min_growth_ratio: Growth since the last judging before the next.
        before_reply: Whether to look before each reply.
        during_reply: Whether to look before each model call of a reply.
        goal: What the agent does next; None = its open tasks and the newest user message.

    Raises:
        ConfigurationError: A number is out of bounds.
    """

    def __init__(
        self,
        compactor: Compactor,
        review: Review | None = None,
        *,
        trigger_ratio: float = 0.6,
        trigger_tokens: int | None = None,
        target_ratio: float = 0.4,
        target_tokens: int | None = None,
        min_growth_ratio: float = 0.1,
        before_reply: bool = True,
        during_reply: bool = True,
        goal: str | None = None,
    ) -> None:
        settings = Settings(
            review=review,
            trigger_ratio=trigger_ratio,
            trigger_tokens=trigger_tokens,
            target_ratio=target_ratio,
            target_tokens=target_tokens,
            min_growth_ratio=min_growth_ratio,
            before_reply=before_reply,
            during_reply=during_reply,
            goal=goal,
        )
        self.compactor = compactor
        self._driver = Driver(compactor, settings)

    def __deepcopy__(self, memo: object) -> CompactionMiddleware:
        """Return the hook itself, which serves a copied agent as well."""
        return self

    async def on_reply(
        self,
        agent: Agent,
        input_kwargs: dict[str, Any],
        next_handler: Callable[..., AsyncGenerator[Any, None]],
    ) -> AsyncGenerator[Any, None]:
        """Look before the reply; announce proposals once it has started."""
        started = await self._driver.before_reply(agent, input_kwargs.get("inputs"))
        async for item in next_handler(**input_kwargs):
            yield item
            started = started or isinstance(item, ReplyStartEvent)
            if started:
                for value in self._driver.events(agent):
                    yield CustomEvent(name=EVENT, value=value)

    async def on_compress_context(
        self,
        agent: Agent,
        input_kwargs: dict[str, Any],
        next_handler: Callable[..., Awaitable[None]],
    ) -> None:
        """Look before a model call; AgentScope's own compression then counts what is left."""
        await self._driver.before_model_call(agent)
        await next_handler(**input_kwargs)

    async def on_system_prompt(self, agent: Agent, current_prompt: str) -> str:
        """Leave the prompt alone; its size counts toward the trigger, as it does in AgentScope."""
        self._driver.saw_prompt(agent, current_prompt)
        return current_prompt

    async def list_tools(self) -> list[ToolBase]:
        """Offer the recall tool; AgentScope's app adds it to the toolkit by itself."""
        return [self.compactor.recall_tool()]

    async def get_middleware_key(self) -> str:
        """Return the key of this package's notes in ``state.middle_context``."""
        return KEY


def compaction_middlewares(
    compactor: Compactor, review: Review | None = None, **settings: Any
) -> Callable[..., Awaitable[list[MiddlewareBase]]]:
    """Return a factory for ``create_app(extra_agent_middlewares=...)`` of AgentScope's service.

    The service builds middlewares anew for every run; they share the compactor.

    Args:
        compactor: Shared by all agents of the service.
        review: As for :class:`CompactionMiddleware`.
        **settings: Keywords of :class:`CompactionMiddleware`.
    """

    async def factory(
        user_id: str, agent_id: str, session_id: str, workspace: Any = None
    ) -> list[MiddlewareBase]:
        return [CompactionMiddleware(compactor, review, **settings)]

    return factory
