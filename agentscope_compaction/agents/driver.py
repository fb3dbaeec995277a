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
from typing import TYPE_CHECKING, Any, cast

from agentscope_compaction.agents.announce import event_of, named
from agentscope_compaction.agents.bounded import bounded, stops_asked
from agentscope_compaction.agents.by_agent import ByAgent
from agentscope_compaction.agents.gauge import Gauge
from agentscope_compaction.agents.notes import Notes
from agentscope_compaction.agents.settings import Settings
from agentscope_compaction.agents.snapshot import goal_of
from agentscope_compaction.core.types import CompactionProposal
from agentscope_compaction.errors import (
    ArchiveIntegrityError,
    ArchiveNotFoundError,
    ConfigurationError,
    StaleProposalError,
)

if TYPE_CHECKING:
    from agentscope.agent import Agent

    from agentscope_compaction.compactor import Compactor

__all__ = ["Driver"]

_log = logging.getLogger("agentscope_compaction")
_DEADLINES = 3
"""A step archives, judges and reviews; each may take ``total_timeout_seconds``."""
_FOR_GOOD = (
    StaleProposalError,
    ArchiveNotFoundError,
    ArchiveIntegrityError,
    ConfigurationError,
)
"""What makes a stored decision worthless; anything else may pass, so the decision waits."""


class Driver:
    """Runs the steps for one hook or decorated class; holds no content of any agent."""

    def __init__(self, compactor: Compactor, settings: Settings) -> None:
        if not callable(getattr(compactor, "propose", None)):
            raise ConfigurationError(f"a compactor is needed, not {type(compactor).__name__}")
        self.compactor = compactor
        self.settings = settings
        self._gauge = Gauge()
        self._events: ByAgent[list[dict[str, Any]]] = ByAgent()

    async def before_reply(self, agent: Agent, inputs: object) -> bool:
        """Apply a decision that was made meanwhile, then look; never raises.

        Returns:
            Whether the reply has started before: a parked one is resumed, and nothing was done.
        """
        if _resumes(agent, inputs):
            return True
        await self._guarded(agent, inputs, reply_over=True, look=self.settings.before_reply)
        return False

    async def before_model_call(self, agent: Agent) -> None:
        """Look before one model call of a running reply; never raises."""
        if self.settings.during_reply:
            await self._guarded(agent, None, reply_over=False)

    def saw_prompt(self, agent: Agent, prompt: str) -> None:
        """Count a system prompt toward trigger and target from the next look on."""
        self._gauge.saw_prompt(agent, prompt)

    def events(self, agent: Agent) -> list[dict[str, Any]]:
        """Return, and forget, what is to be announced about an agent's proposals."""
        return self._events.pop(agent) or []

    async def _guarded(
        self, agent: Agent, inputs: object, *, reply_over: bool, look: bool = True
    ) -> None:
        busy = self.compactor.judging
        if agent in busy:
            return
        busy.set(agent, None)
        failure = await bounded(
            self._work(agent, inputs, reply_over=reply_over, look=look),
            _DEADLINES * self._deadline,
            lambda: busy.pop(agent),
        )
        if failure is not None:  # fail open: an exception here would kill the reply
            _log.warning(
                "compaction skipped, the agent goes on with its history: %s", named(failure)
            )

    async def _work(self, agent: Agent, inputs: object, *, reply_over: bool, look: bool) -> None:
        if reply_over:
            await self._apply_decided(agent)
        if look:
            await self._step(agent, inputs, reply_over=reply_over)

    @property
    def _deadline(self) -> float:
        return self.compactor.options.total_timeout_seconds

    async def _step(self, agent: Agent, inputs: object, *, reply_over: bool) -> None:
        size, notes = agent.model.context_size, Notes(agent.state)
        tokens, beside = await self._gauge.tokens(agent), await self._gauge.beside(agent)
        if tokens < self.settings.trigger(size, beside):
            return
        decided = notes.pending is not None and "decision" in notes.pending
        if decided or not self.settings.grown(tokens, notes.judged_tokens):
            return
        notes.judged_tokens = tokens
        goal = self.settings.goal or self.compactor.goal or goal_of(agent.state, inputs)
        proposal = await self.compactor.propose(
            agent,
            goal=goal,
            target_tokens=self.settings.target(size, beside),
            reply_over=reply_over,
        )
        if not proposal.changed or stops_asked():
            return
        self._events.set(agent, [*(self._events.get(agent) or ()), event_of(proposal)])
        Notes(agent.state).set_pending(proposal.proposal_id, proposal.archive_ref or "")
        agent.pending_proposal = proposal  # type: ignore[attr-defined]
        await self._decide(agent, proposal, reply_over=reply_over)
        Notes(agent.state).judged_tokens = await self._gauge.tokens(agent)

    async def _decide(
        self, agent: Agent, proposal: CompactionProposal, *, reply_over: bool
    ) -> None:
        """Let the reviewer decide; without a decision the proposal stays pending.

        An awaited reviewer has ``total_timeout_seconds``, as the judging had.
        """
        review = self.settings.review
        own = getattr(agent, "review_compaction", None)
        if review is not None:
            verdict: object = review(agent, proposal)
        elif callable(own):
            review, verdict = own, own(proposal)
        else:
            return
        if inspect.isawaitable(verdict):
            async with asyncio.timeout(self._deadline):
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
        if stops_asked():
            raise asyncio.CancelledError  # left behind: the reply went on without us
        if verdict is not True and verdict is not False and not _is_ids(verdict):
            _log.warning("a reviewer returned %s, nothing was applied", type(verdict).__name__)
            return
        if not verdict:
            await self.compactor.reject(agent, proposal, decided_by=decided_by)
            return
        calls = None if verdict is True else list(cast(Collection[str], verdict))
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
            Notes(agent.state).clear_pending(pending["proposal_id"])
        except _FOR_GOOD as exc:
            Notes(agent.state).clear_pending(pending["proposal_id"])
            _log.warning("a decided proposal cannot be applied any more: %s", named(exc))


def _is_ids(verdict: object) -> bool:
    return (
        isinstance(verdict, Collection)
        and not isinstance(verdict, str | bytes)
        and all(isinstance(name, str) for name in verdict)
    )


def _resumes(agent: Agent, inputs: object) -> bool:
    """Whether this call resumes a parked reply, which has started, instead of a new one."""
    from agentscope.event import EventBase

    return isinstance(inputs, EventBase) or bool(agent.state.has_awaiting_tool_calls(agent.name))
