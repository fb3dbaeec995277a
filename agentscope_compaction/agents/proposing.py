"""Make a proposal's request from an agent or messages, and ask, about fewer calls if need be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from agentscope_compaction.agents.limits import (
    finished_from,
    oldest_only,
    unremovable,
    untouchable,
)
from agentscope_compaction.agents.reviewers import break_even_calls
from agentscope_compaction.agents.snapshot import counter_for, dump, goal_of, goal_of_messages
from agentscope_compaction.compact import CheckedCounter, own_copy, propose
from agentscope_compaction.core.options import CompactionOptions
from agentscope_compaction.core.types import CompactionProposal, CompactionRequest, JSONObject
from agentscope_compaction.errors import (
    ConfigurationError,
    InvalidSnapshotError,
    ObservationBudgetError,
)
from agentscope_compaction.memory import AnswerMemory
from agentscope_compaction.models.ask import is_local
from agentscope_compaction.models.seam import DecisionModel

if TYPE_CHECKING:
    from agentscope.agent import Agent
    from agentscope.message import Msg

__all__ = ["Counter", "Judge", "Subject", "add_cache_figures", "subject_of", "with_sources"]

_FEWER = (400, 200, 100, 50, 20)
"""How many of the oldest calls are asked about when the view cannot hold all."""
_NO_BUDGET = 1_000_000_000
"""View budget of a local model, to which nothing is sent."""
_SESSION = "messages"

Counter = Callable[[list[JSONObject]], int]


@dataclass(frozen=True, slots=True)
class Subject:
    """What a proposal is about: a history, whose it is, and what a live agent must not lose."""

    agent: Agent | None
    session_id: str
    messages: list[JSONObject]
    finished: int
    """Leading messages that belong to finished replies."""
    untouchable: list[str]
    """Ids of calls a running reply needs whole."""

    @property
    def goal(self) -> str:
        """What happens next: by the agent's own state, or by messages without one."""
        if self.agent is None:
            return goal_of_messages(self.messages)
        return goal_of(self.agent.state)

    def request(
        self,
        goal: str,
        options: CompactionOptions,
        tools: Sequence[str],
        message_ids: Sequence[str],
        call_ids: Sequence[str],
    ) -> CompactionRequest:
        """Return the request, with messages nobody else holds."""
        return own_copy(
            {
                "messages": self.messages,
                "goal": goal,
                "eligible_tool_names": list(tools),
                "protected_message_ids": list(message_ids),
                "protected_call_ids": [*call_ids, *self.untouchable],
                "options": options,
            }
        )

    async def counter(self, messages: list[JSONObject]) -> Counter | None:
        """Return a counter on the scale of the agent's model; None without an agent."""
        return await counter_for(self.agent, messages) if self.agent is not None else None


def subject_of(
    agent_or_messages: Agent | Sequence[Msg] | Sequence[JSONObject],
    session_id: str | None,
    reply_over: bool | None,
) -> Subject:
    """Take a snapshot of an agent's context, or of messages.

    Raises:
        ConfigurationError: It is neither.
        InvalidSnapshotError: A message is neither a ``Msg`` nor a JSON object.
    """
    if isinstance(agent_or_messages, Sequence) and not isinstance(agent_or_messages, str | bytes):
        messages = _as_json(agent_or_messages)
        return Subject(None, session_id or _SESSION, messages, len(messages), [])
    if not hasattr(getattr(agent_or_messages, "state", None), "context"):
        given = type(agent_or_messages).__name__
        raise ConfigurationError(f"an agent or a list of messages is needed, not {given}")
    agent = agent_or_messages
    messages = dump(agent.state.context)
    finished = finished_from(messages, agent.state.reply_id, reply_over)
    session = session_id or agent.state.session_id
    return Subject(agent, session, messages, finished, untouchable(messages, finished))


def _as_json(messages: Sequence[Any]) -> list[JSONObject]:
    for index, message in enumerate(messages):
        if not isinstance(message, dict) and not callable(getattr(message, "model_dump", None)):
            raise InvalidSnapshotError(f"messages[{index}] must be a Msg or a JSON object")
    return [
        message if isinstance(message, dict) else message.model_dump(mode="json")
        for message in messages
    ]


@dataclass(frozen=True, slots=True)
class Judge:
    """A decision model with what is needed to ask it."""

    model: DecisionModel
    redact: Callable[[str], str] | None
    memory: AnswerMemory

    def options(self, options: CompactionOptions, target_tokens: int | None) -> CompactionOptions:
        """Return the options of one proposal to this model.

        Raises:
            ConfigurationError: The target is not a positive number of tokens.
        """
        changes: dict[str, Any] = {}
        if target_tokens is not None:
            changes["target_tokens"] = target_tokens
        if is_local(self.model):
            changes |= {"max_state_tokens": _NO_BUDGET, "max_request_tokens": _NO_BUDGET}
        try:
            return CompactionOptions.model_validate({**dict(options), **changes})
        except ValidationError as exc:
            if target_tokens is None:
                raise  # options that cannot even be copied are not the caller's argument
            raise ConfigurationError("target_tokens must be a positive whole number") from exc

    async def judge(
        self, request: CompactionRequest, counter: Counter | None, finished: int
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
                    self.model,
                    counter=counter,
                    redact=self.redact,
                    unremovable=unremovable(request.messages, finished),
                    memory=self.memory,
                )
            except ObservationBudgetError:
                if limit == _FEWER[-1]:
                    raise
        raise AssertionError("unreachable")  # pragma: no cover


def with_sources(request: CompactionRequest, ref: str) -> CompactionRequest:
    """Return the request with an archive reference for every call."""
    blocks = (block for message in request.messages for block in message["content"])
    ids = {block.get("id") for block in blocks if block.get("type") == "tool_call"}
    refs = {call: ref for call in ids if isinstance(call, str)}
    return request.model_copy(update={"source_refs": refs})


def add_cache_figures(proposal: CompactionProposal, counter: Counter | None) -> None:
    """Say what the edits cost a provider's prompt cache."""
    if not proposal.changed:
        return
    count = CheckedCounter(counter)
    first = proposal.stats["first_changed"]
    proposal.stats["reread_tokens"] = count(proposal.messages[first:])
    proposal.stats["break_even_calls"] = break_even_calls(proposal.stats)
