"""Asks a decision model about saved histories, cut at several places, and labels the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from agentscope_compaction.archive import InMemoryArchive
from agentscope_compaction.calibration.cache import AnswerCache, Answers
from agentscope_compaction.calibration.cuts import Cut, choose_cuts
from agentscope_compaction.calibration.judged import JudgedCut, judged_cut
from agentscope_compaction.compactor import Compactor
from agentscope_compaction.core.batching import batch
from agentscope_compaction.core.decisions import Answer
from agentscope_compaction.core.jsontext import compact, digest
from agentscope_compaction.core.options import CompactionOptions
from agentscope_compaction.core.pairing import find_pairs
from agentscope_compaction.core.plan import inspect, plan, take_snapshot
from agentscope_compaction.core.questions import pair_tokens
from agentscope_compaction.core.types import CompactionRequest, JSONObject
from agentscope_compaction.errors import ObservationBudgetError
from agentscope_compaction.models.ask import is_local
from agentscope_compaction.models.seam import DecisionModel

__all__ = ["OPTIONS", "Estimate", "Task", "estimate", "judge", "tasks_for"]

OPTIONS = CompactionOptions.for_agents(
    # One answer per call, whatever the others say; one request at a time per cut.
    dedupe=False,
    require_signal=False,
    max_concurrency=1,
    total_timeout_seconds=600,
)
"""The options of live agents, as far as they decide who is asked and what a stub keeps."""


@dataclass(frozen=True, slots=True)
class Task:
    """One cut to ask about."""

    history: str
    cut: Cut
    tools: tuple[str, ...]
    """Tools whose calls may be compacted."""

    def key(self, model: str) -> str:
        """Name the question: the same history, cut, tools, options and model give the same."""
        asked = [model, self.cut.goal, self.tools, OPTIONS.model_dump(mode="json"), self.cut.past]
        return digest(compact(asked))


@dataclass(frozen=True, slots=True)
class Estimate:
    """What asking will take, before anything is asked."""

    cuts: int
    requests: int
    questions: int
    input_tokens: int


def tasks_for(
    name: str,
    messages: Sequence[JSONObject],
    shares: Sequence[float],
    tools: Collection[str] | None = None,
) -> list[Task]:
    """Cut one history.

    Args:
        name: Name of the history.
        messages: The whole history.
        shares: Wanted shares of calls before each cut.
        tools: Tools whose calls may be compacted; None = every tool of the history.
    """
    if tools is None:
        tools = {pair.tool_name for pair in find_pairs(messages).pairs}
    return [Task(name, cut, tuple(sorted(tools))) for cut in choose_cuts(messages, shares)]


def estimate(tasks: Sequence[Task], cache: AnswerCache, model: str) -> Estimate:
    """Say what the tasks without cached answers will cost; takes about as long as planning them."""
    waiting = [task for task in tasks if cache.get(task.key(model)) is None]
    figures = [_estimate_one(task) for task in waiting]
    requests, questions, tokens = (sum(f[n] for f in figures) for n in range(3))
    return Estimate(len(waiting), requests, questions, tokens)


async def judge(
    tasks: Sequence[Task],
    model: DecisionModel,
    *,
    model_name: str = "",
    cache: AnswerCache | None = None,
    concurrency: int = 4,
    progress: Callable[[int, int], None] | None = None,
) -> list[JudgedCut]:
    """Ask about every task and label the answers; the result is in the order of the tasks.

    Args:
        tasks: The cuts.
        model: Whom to ask. The answers of a local model are never cached: they cost nothing.
        model_name: Tells models apart in the cache.
        cache: Answers from before; new ones are added as they come.
        concurrency: Requests in flight at once, at most.
        progress: Called with cuts done and all cuts after each.

    Raises:
        CompactionError: The model failed; what was answered before is in the cache.
        OSError: The cache cannot be written.
    """
    kept = cache if cache is not None and not is_local(model) else AnswerCache(None)
    slots = asyncio.Semaphore(concurrency)
    done = 0

    async def one(task: Task) -> JudgedCut:
        nonlocal done
        async with slots:
            key = task.key(model_name)
            answered = kept.get(key)
            if answered is None:
                answered = await _ask(task, model)
                kept.add(key, *answered)
            name, answers = answered
            labelled = await asyncio.to_thread(
                judged_cut, task.history, task.cut, answers, OPTIONS, name
            )
        done += 1
        if progress is not None:
            progress(done, len(tasks))
        return labelled

    try:
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(one(task)) for task in tasks]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in running]


async def _ask(task: Task, model: DecisionModel) -> Answers:
    # Its own archive: an original is archived before it is judged, and forgotten with it.
    compactor = Compactor(
        model, archive=InMemoryArchive(), options=OPTIONS, eligible_tool_names=task.tools
    )
    proposal = await compactor.propose(task.cut.past, goal=task.cut.goal)
    answers = {
        decision.id: Answer(decision.keep_call, decision.keep_result)
        for decision in proposal.decisions
        if decision.keep_call is not None and decision.keep_result is not None
    }
    return str(proposal.stats["model"] or ""), answers


def _estimate_one(task: Task) -> tuple[int, int, int]:
    """Requests, questions and input tokens; at its limits where the view must be cut down."""
    request = CompactionRequest(
        messages=task.cut.past,
        goal=task.cut.goal,
        eligible_tool_names=list(task.tools),
        options=OPTIONS,
    )
    inspection = inspect(take_snapshot(request))
    asked = [pair.id for pair in inspection.asked]
    if not asked:
        return 0, 0, 0
    try:
        planned = plan(inspection, lambda text: text)
        batches, state = planned.batches, planned.state_tokens
    except ObservationBudgetError:
        state = OPTIONS.max_state_tokens
        batches = batch(asked, state, OPTIONS)
    wording = sum(pair_tokens(pair_id) for ids in batches for pair_id in ids)
    return len(batches), 2 * len(asked), state * len(batches) + wording
