"""``Compactor``: propose, accept, reject, restore. The one place that awaits model and archive.

A compactor holds a decision model, an archive and options, and nothing of any agent: what must be
remembered about an agent is in the agent's own state.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakSet

from agentscope_compaction.agents import accepting
from agentscope_compaction.agents.announce import describe, event_of, log_event, span
from agentscope_compaction.agents.limits import (
    finished_from,
    oldest_only,
    unremovable,
    untouchable,
)
from agentscope_compaction.agents.notes import Notes
from agentscope_compaction.agents.recall import recall_tool
from agentscope_compaction.agents.reviewers import break_even_calls
from agentscope_compaction.agents.snapshot import counter_for, dump, goal_of
from agentscope_compaction.archive import Archive, Outcome, OutcomeKind, SqlArchive
from agentscope_compaction.calibration.profile import with_profile
from agentscope_compaction.compact import embedded, own_copy, propose
from agentscope_compaction.core.options import CompactionOptions
from agentscope_compaction.core.types import CompactionProposal, JSONObject, Thresholds
from agentscope_compaction.errors import (
    ArchiveError,
    ConfigurationError,
    ObservationBudgetError,
    StaleProposalError,
)
from agentscope_compaction.memory import AnswerMemory
from agentscope_compaction.models.ask import is_local
from agentscope_compaction.models.seam import DecisionModel
from agentscope_compaction.redaction import redact_secrets

if TYPE_CHECKING:
    from agentscope.agent import Agent
    from agentscope.message import Msg
    from agentscope.tool import FunctionTool

__all__ = ["Compactor"]

_log = logging.getLogger("agentscope_compaction")
_FEWER = (400, 200, 100, 50, 20)
"""How many of the oldest calls are asked about when the view cannot hold all."""
_NO_BUDGET = 1_000_000_000
"""View budget of a local model, to which nothing is sent."""
_SESSION = "messages"

Counter = Callable[[list[JSONObject]], int]


class Compactor:
    """Proposes compacted histories and carries out what was decided; serves many agents.

    Args:
        decision_model: Called like ``agentscope.classifier.ClassifierModelBase``; None = the
            embedded model.
        archive: Where originals are kept; None = a SQLite file in the user's data directory.
        options: None = ``CompactionOptions.for_agents()``.
        eligible_tool_names: Tools whose calls may be compacted; empty = none.
        goal: What the agent does next; None = its open tasks and the newest user message.
        profile: Thresholds of the decision model, or the path of the profile file that
            ``calibrate`` wrote; replaces the model's own.
        redact: Applied to every string a model that is not local is sent; None = nothing is.
        token_counter: Counts a list of message objects; None = the scale of the agent's model.

    Raises:
        ConfigurationError: The profile is unusable.
    """

    def __init__(
        self,
        decision_model: DecisionModel | None = None,
        archive: Archive | None = None,
        options: CompactionOptions | None = None,
        eligible_tool_names: Sequence[str] = (),
        goal: str | None = None,
        *,
        profile: Thresholds | Mapping[str, float] | str | os.PathLike[str] | None = None,
        redact: Callable[[str], str] | None = redact_secrets,
        token_counter: Counter | None = None,
    ) -> None:
        self.decision_model = decision_model if decision_model is not None else embedded()
        self.options = options if options is not None else CompactionOptions.for_agents()
        self.eligible_tool_names = tuple(eligible_tool_names)
        self.goal = goal
        self._archive = archive
        self._owns_archive = archive is None
        self._redact = redact
        self._token_counter = token_counter
        self._memory = AnswerMemory()
        self.judging: WeakSet[Agent] = WeakSet()
        """Agents for which a judging is in flight."""
        if profile is not None:
            self.options = with_profile(self.options, profile)

    @property
    def archive(self) -> Archive:
        """The archive; the default one is opened at first use."""
        if self._archive is None:
            self._archive = SqlArchive()
        return self._archive

    async def aclose(self) -> None:
        """Close the archive this compactor opened itself; closing again does nothing."""
        if self._owns_archive and self._archive is not None:
            await self._archive.close()
            self._archive = None

    async def propose(
        self,
        agent_or_messages: Agent | Sequence[Msg] | Sequence[JSONObject],
        *,
        goal: str | None = None,
        options: CompactionOptions | None = None,
        session_id: str | None = None,
        target_tokens: int | None = None,
        protected_message_ids: Sequence[str] = (),
        protected_call_ids: Sequence[str] = (),
        reply_over: bool | None = None,
    ) -> CompactionProposal:
        """Archive the history, ask, and propose; the history itself is left alone.

        Args:
            agent_or_messages: An agent, or messages as ``Msg`` or JSON objects.
            goal: What happens next; None = the compactor's, else the agent's own.
            options: Instead of the compactor's.
            session_id: Archive session; None = the agent's (``"messages"`` for messages).
            target_tokens: Stop acting as soon as the history fits.
            protected_message_ids: Messages that are never touched.
            protected_call_ids: Calls that are never touched.
            reply_over: Whether the agent's newest reply is known to be over; None = look.

        Raises:
            ArchiveError: The original could not be archived; nothing is proposed.
            CompactionError: As :func:`agentscope_compaction.compact_context`.
        """
        agent = None if _is_messages(agent_or_messages) else cast("Agent", agent_or_messages)
        messages = _as_json(agent_or_messages) if agent is None else dump(agent.state.context)
        session = session_id or (agent.state.session_id if agent else _SESSION)
        finished = len(messages)
        protected = list(protected_call_ids)
        if agent is not None:
            finished = finished_from(messages, agent.state.reply_id, reply_over)
            protected += untouchable(messages, finished)
        chosen = self._options_for(options or self.options, target_tokens)
        goal = goal or self.goal or (goal_of(agent.state) if agent else None)
        request = own_copy(
            {
                "messages": messages,
                "goal": goal or "",
                "eligible_tool_names": list(self.eligible_tool_names),
                "protected_message_ids": list(protected_message_ids),
                "protected_call_ids": protected,
                "options": chosen,
            }
        )
        meta = {"goal": request.goal, "options": chosen.model_dump(mode="json")}
        with span("propose", session) as opened:
            ref = await self.archive.save(session, request.messages, meta=meta)
            refs = {call: ref for call in _call_ids(request.messages)}
            request = request.model_copy(update={"source_refs": refs})
            counter = self._token_counter
            if counter is None and agent is not None:
                counter = await counter_for(agent, request.messages)
            proposal = await self._judge(request, counter, finished)
            proposal = proposal.model_copy(update={"archive_ref": str(ref)})
            _add_cache_figures(proposal, counter)
            if proposal.changed:
                await self.archive.record(ref, proposal, Outcome(OutcomeKind.PROPOSED))
            describe(opened, event_of(proposal))
        log_event("proposed", event_of(proposal))
        return proposal

    def _options_for(
        self, options: CompactionOptions, target_tokens: int | None
    ) -> CompactionOptions:
        changes: dict[str, Any] = {}
        if target_tokens is not None:
            changes["target_tokens"] = target_tokens
        if is_local(self.decision_model):
            changes |= {"max_state_tokens": _NO_BUDGET, "max_request_tokens": _NO_BUDGET}
        return CompactionOptions.model_validate({**dict(options), **changes})

    async def _judge(
        self, request: Any, counter: Counter | None, finished: int
    ) -> CompactionProposal:
        """Ask about all candidates, or about fewer of the oldest if the view cannot hold all."""
        tools = frozenset(request.eligible_tool_names)
        for limit in (None, *_FEWER):
            asked = request
            if limit is not None:
                spared = oldest_only(request.messages, limit, tools)
                ids = [*request.protected_call_ids, *spared]
                asked = request.model_copy(update={"protected_call_ids": ids})
            try:
                return await propose(
                    asked,
                    self.decision_model,
                    counter=counter,
                    redact=self._redact,
                    unremovable=lambda pair: unremovable(request.messages, pair, finished),
                    memory=self._memory,
                )
            except ObservationBudgetError:
                if limit == _FEWER[-1]:
                    raise
        raise AssertionError("unreachable")  # pragma: no cover

    async def accept(
        self,
        agent: Agent,
        proposal: CompactionProposal,
        calls: Collection[str] | None = None,
        *,
        decided_by: str | None = None,
        reply_over: bool | None = None,
    ) -> tuple[str, ...]:
        """Put a proposal into the agent's context, as one compare-and-swap.

        Args:
            agent: The agent it was made for.
            proposal: The proposal.
            calls: Decision ids (``t3``) or call ids to accept; None = all.
            decided_by: Who decided, for the record.
            reply_over: Whether the agent's newest reply is known to be over; None = look.

        Returns:
            Ids of the decisions carried out now; empty when all were before.

        Raises:
            StaleProposalError: The context changed otherwise than by growing; nothing is applied.
            ArchiveError: The original cannot be read, so nothing is applied.
            ConfigurationError: Unknown calls, or a proposal without archive.
        """
        with span("accept", agent.state.session_id) as opened:
            try:
                done, partly = await accepting.accept(
                    self.archive, agent, proposal, calls, reply_over=reply_over
                )
            except StaleProposalError as exc:
                Notes(agent.state).clear_pending(proposal.proposal_id)
                await self._record(proposal, OutcomeKind.STALE, (), decided_by, str(exc))
                raise
            event = {**event_of(proposal), "carried_out": len(done)}
            describe(opened, event)
        if done:
            kind = OutcomeKind.PARTLY if partly else OutcomeKind.ACCEPTED
            await self._record(proposal, kind, done, decided_by, None)
            log_event("accepted", event)
        if getattr(agent, "pending_proposal", None) is not None:
            agent.pending_proposal = None  # type: ignore[attr-defined]
        return done

    async def reject(
        self,
        agent: Agent,
        proposal: CompactionProposal,
        reason: str | None = None,
        *,
        decided_by: str | None = None,
    ) -> None:
        """Record that a proposal was rejected; the context is left alone."""
        with span("reject", agent.state.session_id) as opened:
            describe(opened, event_of(proposal))
            Notes(agent.state).clear_pending(proposal.proposal_id)
            if getattr(agent, "pending_proposal", None) is not None:
                agent.pending_proposal = None  # type: ignore[attr-defined]
            await self._record(proposal, OutcomeKind.REJECTED, (), decided_by, reason)
        log_event("rejected", event_of(proposal))

    async def restore(
        self, agent: Agent, proposal: CompactionProposal | None = None
    ) -> tuple[str, ...]:
        """Undo a proposal: the archived outputs come back, and removed calls where they stood.

        Works in a new process with only the archive and the agent's saved state.

        Args:
            agent: The agent.
            proposal: What to undo; None = the proposal accepted last.

        Returns:
            Ids of the decisions undone; empty when nothing of it is in the context.

        Raises:
            ArchiveError: The original cannot be read.
            StaleProposalError: Undoing would break an invariant; nothing was changed.
        """
        with span("restore", agent.state.session_id) as opened:
            if proposal is None:
                last = Notes(agent.state).accepted[-1:]
                if not last:
                    return ()
                proposal = await self.load_proposal(**last[0])
            done = await accepting.restore(self.archive, agent, proposal)
            describe(opened, event_of(proposal))
        if done:
            await self._record(proposal, OutcomeKind.RESTORED, done, None, None)
            log_event("restored", {**event_of(proposal), "carried_out": len(done)})
        return done

    async def load_proposal(self, proposal_id: str, archive_ref: str) -> CompactionProposal:
        """Load a proposal from the archive's records, with its messages built anew.

        Raises:
            ArchiveNotFoundError: The archive holds no such proposal.
            ConfigurationError: The archive keeps no records that can be read.
        """
        return await accepting.load_proposal(self.archive, proposal_id, archive_ref)

    def recall_tool(self) -> FunctionTool:
        """Return the read-only tool ``recall_tool_output`` over this compactor's archive."""
        return recall_tool(lambda: self.archive, self._on_recall)

    async def _on_recall(self, ref: str, call_id: str) -> None:
        """Count a recall: the agent needed what was cut, an observed false drop."""
        log_event("recalled", {"archive_ref": ref})
        try:
            proposal = await accepting.newest_proposal(self.archive, ref)
            if proposal is not None:
                outcome = Outcome(OutcomeKind.RECALLED, (call_id,))
                await self.archive.record(ref, proposal, outcome)
        except (ArchiveError, ConfigurationError) as exc:
            _log.warning("a recall was not counted: %s", exc)

    async def _record(
        self,
        proposal: CompactionProposal,
        kind: OutcomeKind,
        calls: Sequence[str],
        decided_by: str | None,
        reason: str | None,
    ) -> None:
        """Keep the outcome; by now the context is as decided, so a failure only warns."""
        outcome = Outcome(kind, tuple(calls), decided_by, reason)
        try:
            await self.archive.record(proposal.archive_ref or "", proposal, outcome)
        except ArchiveError as exc:
            _log.warning("the outcome %s was not recorded: %s", kind.value, exc)


def _is_messages(value: object) -> bool:
    return isinstance(value, Sequence)


def _as_json(messages: object) -> list[JSONObject]:
    return [
        message if isinstance(message, dict) else message.model_dump(mode="json")
        for message in cast(Sequence[Any], messages)
    ]


def _call_ids(messages: Sequence[JSONObject]) -> set[str]:
    blocks = (block for message in messages for block in message["content"])
    ids = {block.get("id") for block in blocks if block.get("type") == "tool_call"}
    return {call for call in ids if isinstance(call, str)}


def _add_cache_figures(proposal: CompactionProposal, counter: Counter | None) -> None:
    """Say what the edits cost a provider's prompt cache."""
    if not proposal.changed:
        return
    from agentscope_compaction.tokens import default_counter

    count = counter or default_counter()
    first = proposal.stats["first_changed"]
    proposal.stats["reread_tokens"] = count(proposal.messages[first:])
    proposal.stats["break_even_calls"] = break_even_calls(proposal.stats)
