"""The decorator: a class (or one agent) that compacts itself, by overriding public methods only.

AgentScope calls ``self.compress_context()`` before every model call and ``reply`` or
``reply_stream`` for every reply, so a subclass needs no private attribute and leaves ``__init__``
alone.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Collection
from typing import Any, ClassVar, TypeVar, overload

from agentscope.agent import Agent
from agentscope.event import CustomEvent, ReplyStartEvent

from agentscope_compaction.agents.driver import Driver
from agentscope_compaction.agents.hook import EVENT
from agentscope_compaction.agents.notes import Notes
from agentscope_compaction.agents.recall import RECALL_TOOL
from agentscope_compaction.agents.reviewers import Review
from agentscope_compaction.agents.settings import Settings
from agentscope_compaction.compactor import Compactor
from agentscope_compaction.core.types import CompactionProposal
from agentscope_compaction.errors import ConfigurationError

__all__ = ["CompactionMixin", "with_compaction"]

_log = logging.getLogger("agentscope_compaction")

AnyAgent = TypeVar("AnyAgent", bound=Agent)


class CompactionMixin(Agent):
    """What a decorated agent can do; inherit it for type-checked calls.

    ``@with_compaction(compactor)`` adds this to any agent class. A class may define
    ``review_compaction(self, proposal)``, sync or async, to decide about proposals.
    """

    compaction_driver: ClassVar[Driver | None] = None
    """Set by :func:`with_compaction`."""
    pending_proposal: CompactionProposal | None = None
    """The newest proposal that waits for a decision in this process."""

    async def propose_compaction(
        self, goal: str | None = None, **options: Any
    ) -> CompactionProposal:
        """Archive the context, ask, and propose; the context is left alone.

        Args:
            goal: What the agent does next; None = its open tasks and the newest user message.
            **options: Keywords of :meth:`Compactor.propose`.

        Raises:
            CompactionError: As :meth:`Compactor.propose`.
        """
        proposal = await self._compactor.propose(self, goal=goal, **options)
        self.pending_proposal = proposal if proposal.changed else None
        return proposal

    async def accept_compaction(
        self, proposal: CompactionProposal, calls: Collection[str] | None = None
    ) -> tuple[str, ...]:
        """Apply a proposal, or only some calls of it; see :meth:`Compactor.accept`."""
        done = await self._compactor.accept(self, proposal, calls, decided_by=self.name)
        await self._offer_recall()
        return done

    async def reject_compaction(
        self, proposal: CompactionProposal, reason: str | None = None
    ) -> None:
        """Record that a proposal was rejected; see :meth:`Compactor.reject`."""
        await self._compactor.reject(self, proposal, reason, decided_by=self.name)

    async def restore_compaction(
        self, proposal: CompactionProposal | None = None
    ) -> tuple[str, ...]:
        """Undo a proposal (None = the last accepted); see :meth:`Compactor.restore`."""
        return await self._compactor.restore(self, proposal)

    async def reply(self, *args: Any, **kwargs: Any) -> Any:
        """Look, then reply as the undecorated agent, which may have a signature of its own."""
        await self._before_reply(_inputs(args, kwargs))
        try:
            return await super().reply(*args, **kwargs)
        finally:
            if self.compaction_driver is not None:
                self.compaction_driver.events(self)  # nobody listens; not for a later stream

    async def reply_stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        """Look, then reply as the undecorated agent; announce proposals as custom events."""
        started = await self._before_reply(_inputs(args, kwargs))
        async for item in super().reply_stream(*args, **kwargs):
            yield item
            started = started or isinstance(item, ReplyStartEvent)
            if started and self.compaction_driver is not None:
                for value in self.compaction_driver.events(self):
                    yield CustomEvent(name=EVENT, value=value)

    async def compress_context(self, *args: Any, **kwargs: Any) -> None:
        """Look, then let AgentScope's own compression count what is left."""
        if self.compaction_driver is not None:
            await self.compaction_driver.before_model_call(self)
            await self._offer_recall()
        await super().compress_context(*args, **kwargs)

    @property
    def _compactor(self) -> Compactor:
        if self.compaction_driver is None:
            raise ConfigurationError("decorate the class with with_compaction(compactor) first")
        return self.compaction_driver.compactor

    async def _before_reply(self, inputs: object) -> bool:
        """Look; return whether the reply has started before."""
        if self.compaction_driver is None:
            return False
        resumed = await self.compaction_driver.before_reply(self, inputs)
        await self._offer_recall()
        return resumed

    async def _offer_recall(self) -> None:
        """Add the recall tool once something was cut; a toolkit that refuses it only warns."""
        try:
            if Notes(self.state).accepted and await self.toolkit.get_tool(RECALL_TOOL) is None:
                await self.toolkit.add_tool(self._compactor.recall_tool())
        except Exception as exc:
            _log.warning("the recall tool could not be added: %s", type(exc).__name__)


def _inputs(args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    """Return what a reply is given, by AgentScope's position or name."""
    return args[0] if args else kwargs.get("inputs")


class _WithCompaction:
    """The decorator :func:`with_compaction` returns."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    @overload
    def __call__(self, target: type[AnyAgent]) -> type[AnyAgent]: ...
    @overload
    def __call__(self, target: AnyAgent) -> AnyAgent: ...
    def __call__(self, target: Any) -> Any:
        """Decorate an agent class, or one agent."""
        if isinstance(target, type) and issubclass(target, Agent):
            return self._subclass(target)
        if isinstance(target, Agent):
            target.__class__ = self._subclass(type(target))
            return target
        raise TypeError("with_compaction decorates AgentScope's Agent, its subclasses or instances")

    def _subclass(self, cls: type[Agent]) -> type[Agent]:
        bases = (cls,) if issubclass(cls, CompactionMixin) else (CompactionMixin, cls)
        names = ("__module__", "__qualname__", "__doc__")
        body = {name: getattr(cls, name) for name in names}
        return type(cls.__name__, bases, {**body, "compaction_driver": self._driver})


def with_compaction(
    compactor: Compactor,
    *,
    review: Review | None = None,
    trigger_ratio: float = 0.6,
    trigger_tokens: int | None = None,
    target_ratio: float = 0.4,
    target_tokens: int | None = None,
    min_growth_ratio: float = 0.1,
    before_reply: bool = True,
    during_reply: bool = True,
    goal: str | None = None,
) -> _WithCompaction:
    """Return a decorator for an ``Agent`` class, any subclass, or one agent.

    ``@with_compaction(compactor)`` above a class, or ``with_compaction(compactor)(agent)``. A class
    that defines ``review_compaction(self, proposal)`` decides itself, unless ``review`` is given.
    Decorating twice, or a base and its subclass, compacts once, with the outermost settings. The
    class's name then stands for a subclass of it, so the class calls ``super()`` without arguments:
    ``super(Coder, self)`` would find ``Coder`` itself. A class has no public sight of the prompt it
    sends: where that is long, the middleware counts it, and here ``trigger_ratio`` has to.

    Args:
        compactor: Decision model, archive and options.
        review: As for :class:`CompactionMiddleware`, and so are the other keywords.
        trigger_ratio: See there.
        trigger_tokens: See there.
        target_ratio: See there.
        target_tokens: See there.
        min_growth_ratio: See there.
        before_reply: See there.
        during_reply: See there.
        goal: See there.

    Raises:
        ConfigurationError: A number is out of bounds.
        TypeError: The decorated object is no AgentScope ``Agent`` (``A2AAgent`` and
            ``RealtimeAgent`` are not, and keep no context here).
    """
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
    return _WithCompaction(Driver(compactor, settings))
