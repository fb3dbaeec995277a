"""When to propose, whom to ask, what to do then: the one engine behind hook and decorator.

Below the trigger a step costs next to nothing. Above it, at most one judging runs per agent, and
after it the history must grow before the next. Whatever goes wrong inside, the agent replies from
its original history and a warning says why.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agentscope_compaction.agents.announce import event_of
from agentscope_compaction.agents.gauge import Gauge
from agentscope_compaction.agents.notes import Notes
from agentscope_compaction.agents.reviewers import Review
from agentscope_compaction.agents.snapshot import goal_of
from agentscope_compaction.core.types import CompactionProposal
from agentscope_compaction.errors import ConfigurationError, StaleProposalError

if TYPE_CHECKING:
    from agentscope.agent import Agent

    from agentscope_compaction.compactor import Compactor

__all__ = ["Driver", "Settings"]

_log = logging.getLogger("agentscope_compaction")


@dataclass(frozen=True, slots=True)
class Settings:
    """When a hook or a decorated agent compacts, and who decides."""

    review: Review | None = None
    """Decides about a proposal; None = announce only."""
    trigger_ratio: float = 0.6
    """Share of ``model.context_size`` above which a proposal is made."""
    trigger_tokens: int | None = None
    """That size in tokens; instead of the ratio."""
    target_ratio: float = 0.4
    """Share of ``model.context_size`` at which compaction stops."""
    target_tokens: int | None = None
    """That size in tokens; instead of the ratio."""
    min_growth_ratio: float = 0.1
    """Growth since the last judging before the next."""
    before_reply: bool = True
    """Whether to look before each reply."""
    during_reply: bool = True
    """Whether to look before each model call of a reply."""
    goal: str | None = None
    """What the agent does next; None = the compactor's, else the agent's own."""
    review_timeout_seconds: float = 60.0
    """How long an asynchronous reviewer may take; then the proposal waits."""

    def __post_init__(self) -> None:
        for name in ("trigger_ratio", "target_ratio", "min_growth_ratio"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise ConfigurationError(f"{name} must be a number in [0, 1]")
        for name in ("trigger_tokens", "target_tokens"):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and value > 0
            if value is not None and not whole:
                raise ConfigurationError(f"{name} must be a positive integer")

    def trigger(self, context_size: int) -> int:
        """Return the trigger in tokens."""
        return self.trigger_tokens or int(self.trigger_ratio * context_size)

    def target(self, context_size: int) -> int:
        """Return the target in tokens; at least 1."""
        return self.target_tokens or max(1, int(self.target_ratio * context_size))


class Driver:
    """Runs the steps for one hook or decorated class; holds no content of any agent."""

    def __init__(self, compactor: Compactor, settings: Settings) -> None:
        self.compactor = compactor
        self.settings = settings
        self._gauge = Gauge()
        self._events: WeakKeyDictionary[Agent, list[dict[str, Any]]] = WeakKeyDictionary()

    async def before_reply(self, agent: Agent, inputs: object) -> None:
        """Apply a decision that was made meanwhile, then look; never raises."""
        if not self.settings.before_reply or _resumes(agent, inputs):
            return
        await self._guarded(agent, inputs, reply_over=True)

    async def before_model_call(self, agent: Agent) -> None:
        """Look before one model call of a running reply; never raises."""
        if self.settings.during_reply:
            await self._guarded(agent, None, reply_over=False)

    def events(self, agent: Agent) -> list[dict[str, Any]]:
        """Return, and forget, what is to be announced about an agent's proposals."""
        return self._events.pop(agent, [])

    async def _guarded(self, agent: Agent, inputs: object, *, reply_over: bool) -> None:
        busy = self.compactor.judging
        if agent in busy:
            return
        busy.add(agent)
        try:
            if reply_over:
                await self._apply_decided(agent)
            await self._step(agent, inputs, reply_over=reply_over)
        except Exception as exc:  # fail open: an exception here would kill the reply
            _log.warning("compaction skipped, the history is unchanged: %s", _named(exc))
        finally:
            busy.discard(agent)

    async def _step(self, agent: Agent, inputs: object, *, reply_over: bool) -> None:
        size = agent.model.context_size
        notes = Notes(agent.state)
        tokens = self._gauge.tokens(agent)
        if tokens < self.settings.trigger(size):
            return
        judged = notes.judged_tokens
        if judged is not None and judged <= tokens < judged * (1 + self.settings.min_growth_ratio):
            return
        notes.judged_tokens = tokens
        goal = self.settings.goal or self.compactor.goal or goal_of(agent.state, inputs)
        proposal = await self.compactor.propose(
            agent, goal=goal, target_tokens=self.settings.target(size), reply_over=reply_over
        )
        if not proposal.changed:
            return
        self._events.setdefault(agent, []).append(event_of(proposal))
        Notes(agent.state).set_pending(proposal.proposal_id, proposal.archive_ref or "")
        agent.pending_proposal = proposal  # type: ignore[attr-defined]
        await self._decide(agent, proposal, reply_over=reply_over)
        notes.judged_tokens = self._gauge.tokens(agent)

    async def _decide(
        self, agent: Agent, proposal: CompactionProposal, *, reply_over: bool
    ) -> None:
        """Let the reviewer decide; without a decision the proposal stays pending."""
        review = self.settings.review
        if review is None:
            return
        verdict: object = review(agent, proposal)
        if inspect.isawaitable(verdict):
            async with asyncio.timeout(self.settings.review_timeout_seconds):
                verdict = await verdict
        name = getattr(review, "__qualname__", type(review).__qualname__)
        await self._carry_out(agent, proposal, verdict, name, reply_over=reply_over)

    async def _carry_out(
        self,
        agent: Agent,
        proposal: CompactionProposal,
        verdict: object,
        decided_by: str,
        *,
        reply_over: bool,
    ) -> None:
        if verdict is False:
            await self.compactor.reject(agent, proposal, decided_by=decided_by)
            return
        if verdict is not True and not _is_ids(verdict):
            _log.warning("a reviewer returned %s, nothing was applied", type(verdict).__name__)
            return
        calls = None if verdict is True else list(verdict)  # type: ignore[call-overload]
        await self.compactor.accept(
            agent, proposal, calls, decided_by=decided_by, reply_over=reply_over
        )

    async def _apply_decided(self, agent: Agent) -> None:
        """Carry out what a person decided between two replies, if it still fits."""
        pending = Notes(agent.state).pending
        if pending is None or "decision" not in pending:
            return
        try:
            proposal = await self.compactor.load_proposal(
                pending["proposal_id"], pending["archive_ref"]
            )
            await self._carry_out(
                agent, proposal, pending["decision"], "pending decision", reply_over=True
            )
        except StaleProposalError as exc:
            _log.warning("a decided proposal no longer fits: %s", exc)
        finally:
            Notes(agent.state).clear_pending(pending["proposal_id"])


def _is_ids(verdict: object) -> bool:
    return (
        isinstance(verdict, Collection)
        and not isinstance(verdict, str | bytes)
        and all(isinstance(name, str) for name in verdict)
    )


def _resumes(agent: Agent, inputs: object) -> bool:
    """Whether this call resumes a parked reply instead of starting one."""
    from agentscope.message import Msg

    given = inputs if isinstance(inputs, list) else [inputs]
    if inputs is not None and not all(isinstance(item, Msg) for item in given):
        return True
    return bool(agent.state.has_awaiting_tool_calls(agent.name))


def _named(exc: Exception) -> str:
    """Name an exception for the log: our own with their words, others by type only."""
    from agentscope_compaction.errors import CompactionError

    return f"{type(exc).__name__}: {exc}" if isinstance(exc, CompactionError) else repr(type(exc))
