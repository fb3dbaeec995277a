"""``Compactor``: propose, accept, reject, restore. The one place that awaits model and archive.

A compactor holds a decision model, an archive and options, and nothing of any agent: what must be
remembered about an agent is in the agent's own state.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentscope_compaction.agents import accepting
from agentscope_compaction.agents.announce import describe, event_of, log_event, named, span
from agentscope_compaction.agents.by_agent import ByAgent
from agentscope_compaction.agents.notes import Notes
from agentscope_compaction.agents.profile import Chosen
from agentscope_compaction.agents.proposing import (
    Counter,
    Judge,
    add_cache_figures,
    subject_of,
    with_sources,
)
from agentscope_compaction.agents.recall import recall_tool
from agentscope_compaction.agents.settings import names_in, options_in
from agentscope_compaction.archive import Archive, Outcome, OutcomeKind, SqlArchive
from agentscope_compaction.compact import embedded
from agentscope_compaction.core.options import CompactionOptions
from agentscope_compaction.core.types import CompactionProposal, JSONObject, Thresholds
from agentscope_compaction.errors import (
    ConfigurationError,
    StaleProposalError,
)
from agentscope_compaction.memory import AnswerMemory
from agentscope_compaction.models.seam import DecisionModel
from agentscope_compaction.redaction import redact_secrets

if TYPE_CHECKING:
    from agentscope.agent import Agent
    from agentscope.message import Msg
    from agentscope.tool import FunctionTool

__all__ = ["Compactor"]

_log = logging.getLogger("agentscope_compaction")


class Compactor:
    """Proposes compacted histories and carries out what was decided; serves many agents.

    Args:
        decision_model: Called like ``agentscope.classifier.ClassifierModelBase``; None = the
            embedded model.
        archive: Where originals are kept; None = a SQLite file in the user's data directory.
        options: Options, as such or as a mapping; None = ``CompactionOptions.for_agents()``.
        eligible_tool_names: Tools whose calls may be compacted; empty = none.
        goal: What the agent does next; None = its open tasks and the newest user message (of
            messages without an agent: the latter).
        profile: Thresholds of the decision model, or the path of the profile file that
            ``calibrate`` wrote; replaces the model's own.
        redact: Applied to every string a model that is not local is sent; None = nothing is.
        token_counter: Counts a list of message objects; None = the scale of the agent's model.

    Raises:
        ConfigurationError: The profile is unusable, one text stands where names are listed, or
            an argument is not of its type.
    """

    def __init__(
        self,
        decision_model: DecisionModel | None = None,
        archive: Archive | None = None,
        options: CompactionOptions | Mapping[str, Any] | None = None,
        eligible_tool_names: Sequence[str] = (),
        goal: str | None = None,
        *,
        profile: Thresholds | Mapping[str, float] | str | os.PathLike[str] | None = None,
        redact: Callable[[str], str] | None = redact_secrets,
        token_counter: Counter | None = None,
    ) -> None:
        self.decision_model = decision_model if decision_model is not None else embedded()
        self.options = options_in(options, CompactionOptions.for_agents())
        self.eligible_tool_names = tuple(names_in(eligible_tool_names, "eligible_tool_names"))
        self.goal = goal
        if archive is not None and not callable(getattr(archive, "save", None)):
            raise ConfigurationError(f"an archive is needed, not {type(archive).__name__}")
        self._archive = archive
        self._owns_archive = archive is None
        self._redact = redact
        self._token_counter = token_counter
        self._memory = AnswerMemory()
        self.judging: ByAgent[None] = ByAgent()
        """Agents for which a judging is in flight."""
        self._chosen = Chosen(profile) if profile is not None else None
        if self._chosen is not None:
            self.options = self._chosen.options(self.options)

    def __deepcopy__(self, memo: object) -> Compactor:
        """Return the compactor itself: a copied agent goes on with the same archive."""
        return self

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
        options: CompactionOptions | Mapping[str, Any] | None = None,
        session_id: str | None = None,
        target_tokens: int | None = None,
        protected_message_ids: Sequence[str] = (),
        protected_call_ids: Sequence[str] = (),
        reply_over: bool | None = None,
    ) -> CompactionProposal:
        """Archive the history, ask, and propose; the history itself is left alone.

        Args:
            agent_or_messages: An agent, or messages as ``Msg`` or JSON objects.
            goal: What happens next; None = the compactor's, else the agent's own (of messages:
                the newest user message).
            options: Instead of the compactor's.
            session_id: Archive session; None = the agent's (``"messages"`` for messages).
            target_tokens: Stop acting as soon as the history fits.
            protected_message_ids: Messages that are never touched.
            protected_call_ids: Calls that are never touched.
            reply_over: Whether the agent's newest reply is known to be over; None = look.

        Raises:
            ArchiveError: The original could not be archived; nothing is proposed.
            ConfigurationError: ``target_tokens`` is not positive, one text stands for names, or
                there is neither an agent nor a list of messages.
            CompactionError: As :func:`agentscope_compaction.compact_context`.
        """
        subject = subject_of(agent_or_messages, session_id, reply_over)
        judge = Judge(self.decision_model, self._redact, self._memory)
        chosen = judge.options(options_in(options, self.options), target_tokens)
        request = subject.request(
            goal or self.goal or subject.goal,
            chosen,
            self.eligible_tool_names,
            names_in(protected_message_ids, "protected_message_ids"),
            names_in(protected_call_ids, "protected_call_ids"),
        )
        meta = {"goal": request.goal, "options": chosen.model_dump(mode="json")}
        with span("propose", subject.session_id) as opened:
            ref = await self.archive.save(subject.session_id, request.messages, meta=meta)
            counter = self._token_counter or await subject.counter(request.messages)
            judged = await judge.judge(with_sources(request, ref), counter, subject.finished)
            proposal = judged.model_copy(update={"archive_ref": str(ref)})
            if self._chosen is not None:
                self._chosen.compare(proposal.stats["model"])
            add_cache_figures(proposal, counter)
            if proposal.changed:
                await self.archive.record(ref, proposal, Outcome(OutcomeKind.PROPOSED))
            describe(opened, event_of(proposal))
        log_event("proposed", event_of(proposal))
        return proposal

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
            ConfigurationError: Unknown calls, no proposal, or one without archive.
        """
        _check(proposal)
        with span("accept", agent.state.session_id) as opened:
            try:
                done, partly = await accepting.accept(
                    self.archive, agent, proposal, calls, reply_over=reply_over
                )
            except StaleProposalError as exc:
                _forget(agent, proposal)
                await self._record(proposal, OutcomeKind.STALE, (), decided_by, str(exc))
                log_event("stale", event_of(proposal))
                raise
            event = {**event_of(proposal), "carried_out": len(done)}
            describe(opened, event)
        if done:
            kind = OutcomeKind.PARTLY if partly else OutcomeKind.ACCEPTED
            await self._record(proposal, kind, done, decided_by, None)
            log_event("accepted", event)
        _forget(agent, proposal)
        return done

    async def reject(
        self,
        agent: Agent,
        proposal: CompactionProposal,
        reason: str | None = None,
        *,
        decided_by: str | None = None,
    ) -> None:
        """Record that a proposal was rejected; the context is left alone.

        Raises:
            ConfigurationError: It is no proposal.
        """
        _check(proposal)
        with span("reject", agent.state.session_id) as opened:
            describe(opened, event_of(proposal))
            _forget(agent, proposal)
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
            ConfigurationError: It is no proposal, or one without archive.
        """
        if proposal is not None:
            _check(proposal)
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
        """Return the read-only tool ``recall_tool_output`` over this compactor's archive.

        A recall takes at most the options' ``total_timeout_seconds``.
        """
        seconds = self.options.total_timeout_seconds
        return recall_tool(lambda: self.archive, self._on_recall, seconds)

    async def _on_recall(self, ref: str, call_id: str) -> None:
        """Count a recall: the agent needed what was cut, an observed false drop."""
        with span("recall", "") as opened:
            describe(opened, {"archive_ref": ref})
        log_event("recalled", {"archive_ref": ref})
        try:
            proposal = await accepting.newest_proposal(self.archive, ref)
            if proposal is not None:
                outcome = Outcome(OutcomeKind.RECALLED, (call_id,))
                await self.archive.record(ref, proposal, outcome)
        except Exception as exc:  # an archive may be foreign code
            _log.warning("a recall was not counted: %s", named(exc))

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
        except Exception as exc:  # an archive may be foreign code
            _log.warning("the outcome %s was not recorded: %s", kind.value, named(exc))


def _check(proposal: object) -> None:
    if not isinstance(proposal, CompactionProposal):
        raise ConfigurationError(f"a proposal is needed, not {type(proposal).__name__}")


def _forget(agent: Agent, proposal: CompactionProposal) -> None:
    """Let a proposal wait no longer; another one that waits is left alone."""
    Notes(agent.state).clear_pending(proposal.proposal_id)
    waiting = getattr(agent, "pending_proposal", None)
    if waiting is not None and waiting.proposal_id == proposal.proposal_id:
        agent.pending_proposal = None  # type: ignore[attr-defined]
