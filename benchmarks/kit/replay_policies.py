"""What is compared in a replay: each policy edits the context before a model call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agentscope_compaction.agents.limits import oldest_only, unremovable, untouchable
from agentscope_compaction.agents.settings import Settings
from agentscope_compaction.calibration.uses import readable
from agentscope_compaction.compact import own_copy, propose
from agentscope_compaction.core.options import CompactionOptions
from agentscope_compaction.core.questions import pair_tokens
from agentscope_compaction.core.types import Action, CompactionProposal, CompactionRequest
from agentscope_compaction.errors import ObservationBudgetError
from agentscope_compaction.memory import AnswerMemory
from agentscope_compaction.models.ask import is_local
from agentscope_compaction.models.seam import DecisionModel
from benchmarks.kit.replay_history import State, count_tokens

__all__ = ["KEPT", "Keep", "MaskBatches", "MaskSteps", "Ours", "Policy"]

KEPT = 8
"""Newest outputs that every policy leaves alone, as the options of live agents do."""
_BLANK = "[old output omitted]"
_ARCHIVE_REF = "0" * 32
"""Stands for an archive reference in stubs: what counts here is its length."""
_UNLIMITED = 1_000_000_000
_FEWER = (400, 200, 100, 50, 20)


class Policy(Protocol):
    """Edits ``state.edits`` before a model call."""

    async def step(self, state: State, limit: int) -> None:
        """Look at the context and maybe edit it."""


class Keep:
    """No compaction."""

    async def step(self, state: State, limit: int) -> None:
        """Do nothing."""


class MaskSteps:
    """Recency masking at every step: only the newest outputs are ever seen."""

    async def step(self, state: State, limit: int) -> None:
        """Blank whatever just became old."""
        before = len(state.edits)
        _blank(state, state.results()[:-KEPT], 0)
        state.passes += len(state.edits) > before


class _Paced:
    """The pace of the driver: a trigger, a target, and growth between two passes."""

    def __init__(self) -> None:
        self._settings = Settings()
        self._judged: int | None = None

    def due(self, state: State, limit: int) -> bool:
        """Whether the context is large and has grown since the last pass."""
        tokens, judged = state.tokens(), self._judged
        if tokens < self._settings.trigger(limit):
            return False
        growth = 1 + self._settings.min_growth_ratio
        return judged is None or not judged <= tokens < judged * growth

    def target(self, limit: int) -> int:
        """Where a pass may stop."""
        return self._settings.target(limit)

    def done(self, state: State) -> None:
        """Remember the size after a pass."""
        self._judged = state.tokens()
        state.passes += 1


class MaskBatches:
    """Recency masking in batches: the oldest outputs go when the context is large."""

    def __init__(self) -> None:
        self._pace = _Paced()

    async def step(self, state: State, limit: int) -> None:
        """Blank the oldest outputs down to the target, at the driver's pace."""
        if self._pace.due(state, limit):
            _blank(state, state.results()[:-KEPT], self._pace.target(limit))
            self._pace.done(state)


class Ours:
    """This package as live agents use it: every proposal is accepted."""

    def __init__(
        self,
        model: DecisionModel,
        options: CompactionOptions | None = None,
        memory: AnswerMemory | None = None,
    ) -> None:
        self._model = model
        self._options = options or CompactionOptions.for_agents()
        self._memory = memory
        self._pace = _Paced()

    async def step(self, state: State, limit: int) -> None:
        """Propose and accept, at the driver's pace."""
        if not self._pace.due(state, limit):
            return
        proposal = await self._propose(state, self._pace.target(limit))
        stats = proposal.stats
        state.requests += stats["requests"]
        state.questions += stats["questions"]
        if not is_local(self._model):
            wording = stats["questions"] // 2 * pair_tokens("t100")
            state.judge_tokens += stats["state_tokens"] * stats["requests"] + wording
        _accept(state, proposal)
        self._pace.done(state)

    async def _propose(self, state: State, target: int) -> CompactionProposal:
        messages = state.messages()
        running = messages[-1]["role"] == "assistant"
        finished = len(messages) - running
        changes: dict[str, object] = {"target_tokens": target, "total_timeout_seconds": 600}
        if is_local(self._model):
            changes |= {"max_state_tokens": _UNLIMITED, "max_request_tokens": _UNLIMITED}
        calls = [b.content["id"] for b in state.history.blocks if b.content["type"] == "tool_call"]
        request = CompactionRequest(
            messages=messages,
            goal=_goal(state),
            eligible_tool_names=sorted(_tools(state)),
            protected_call_ids=untouchable(messages, finished),
            source_refs=dict.fromkeys(calls, _ARCHIVE_REF),
            options=CompactionOptions.model_validate({**dict(self._options), **changes}),
        )
        return await self._asked(request, finished)

    async def _asked(self, request: CompactionRequest, finished: int) -> CompactionProposal:
        """Ask about all calls, or about fewer where a remote model's view is full."""
        for limit in (None, *_FEWER):
            spared: list[str] = []
            if limit is not None:
                tools = frozenset(request.eligible_tool_names)
                spared = oldest_only(request.messages, limit, tools)
            ids = [*request.protected_call_ids, *spared]
            try:
                return await propose(
                    own_copy(request.model_copy(update={"protected_call_ids": ids})),
                    self._model,
                    counter=count_tokens,
                    redact=None,
                    unremovable=unremovable(request.messages, finished),
                    memory=self._memory,
                )
            except ObservationBudgetError:
                continue
        raise ObservationBudgetError("not even the fewest calls fit")


def _blank(state: State, places: Sequence[int], target: int) -> None:
    size = state.tokens()
    for place in places:
        if size <= target:
            return
        text = readable(state.history.blocks[place].content)
        if place not in state.edits and len(text) > len(_BLANK):
            before = state.tokens_of(place)
            state.edits[place] = _BLANK
            size += state.tokens_of(place) - before


@dataclass(frozen=True, slots=True)
class _Spots:
    call: int
    result: int


def _accept(state: State, proposal: CompactionProposal) -> None:
    """Carry a proposal's decisions over to the flat history."""
    outputs = {
        block["id"]: readable(block)
        for message in proposal.messages
        for block in message["content"]
        if block["type"] == "tool_result"
    }
    where: dict[str, dict[str, int]] = {"tool_call": {}, "tool_result": {}}
    for place, block in enumerate(state.history.blocks[: state.seen]):
        if block.content["type"] in where:
            where[block.content["type"]][block.content["id"]] = place
    for decision in proposal.decisions:
        if decision.action is Action.KEEP or not decision.applied:
            continue
        spots = _Spots(where["tool_call"][decision.call_id], where["tool_result"][decision.call_id])
        if decision.action is Action.DROP_CALL:
            state.edits[spots.call] = state.edits[spots.result] = None
        else:
            state.edits[spots.result] = outputs[decision.call_id]


def _goal(state: State) -> str:
    for block in reversed(state.history.blocks[: state.seen]):
        if block.role == "user" and readable(block.content).strip():
            return readable(block.content)
    return "Continue."


def _tools(state: State) -> set[str]:
    blocks = state.history.blocks
    return {b.content["name"] for b in blocks if b.content["type"] == "tool_call"}
