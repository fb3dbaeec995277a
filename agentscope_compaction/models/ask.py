"""Ask a decision model all batches of a plan: bounded concurrency, one deadline, strict answers."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentscope_compaction.core.options import BatchFailure, CompactionOptions
from agentscope_compaction.core.questions import Criteria, Question, questions_for
from agentscope_compaction.core.view import Observation
from agentscope_compaction.errors import (
    CompactionError,
    DecisionModelError,
    DecisionTimeoutError,
)
from agentscope_compaction.models.answers import Replies, Reply, read_reply
from agentscope_compaction.models.copies import Copies

__all__ = ["ask", "is_local"]

_log = logging.getLogger("agentscope_compaction")
_GRACE_SECONDS = 0.2
"""How long cancelled requests may take to end before they are left behind."""

Model = Callable[..., Any]


def is_local(model: object) -> bool:
    """Whether the model declares that it runs in this process; only ``True`` itself counts."""
    return _declares(model, "local")


def _declares(model: object, name: str) -> bool:
    """Whether the model declares something of itself; a look at it that fails shows nothing."""
    try:
        return getattr(model, name, None) is True
    except Exception:  # foreign code
        return False


async def ask(
    model: Model,
    state: Observation,
    batches: Sequence[Sequence[str]],
    options: CompactionOptions,
    *,
    deadline: float,
) -> Replies:
    """Ask every batch and collect the valid answers, in batch order.

    Args:
        model: The decision model.
        state: What it judges. A model gets a copy, its own while it answers, unless it is local
            or declares ``reads_only = True``.
        batches: Decision ids per request.
        options: Concurrency and what a failed batch means.
        deadline: Event-loop time at which everything must have been answered.

    Raises:
        DecisionTimeoutError: The deadline passed (with ``on_batch_failure="keep"``: before any
            answer).
        DecisionAnswerError: An answer is missing, refused, not binary or not a probability.
        DecisionModelError: The model failed otherwise.
    """
    slots = asyncio.Semaphore(options.max_concurrency)
    binary, copies = await _question_type(), Copies(state)
    shared = is_local(model) or _declares(model, "reads_only")

    async def one(ids: Sequence[str]) -> Reply:
        async with slots:
            await asyncio.sleep(0)  # a model that answers at once must not hold up the loop
            questions = {n: binary(q) for i in ids for n, q in questions_for(i).items()}
            shown = state if shared else copies.take()
            reply = read_reply(await _call(model, shown, questions, deadline), ids)
            copies.give_back(shown)
        if reply.faults and options.on_batch_failure is BatchFailure.FAIL:
            raise reply.faults[0]
        return reply

    tasks = [asyncio.ensure_future(one(ids)) for ids in batches]
    try:
        await _wait(tasks, deadline, stop_early=options.on_batch_failure is BatchFailure.FAIL)
        return _collect(tasks, options.on_batch_failure)
    finally:
        await _cancel(tasks)


async def _question_type() -> Callable[[Question], Any]:
    """Import AgentScope's question types off the event loop: the first time costs a second."""
    classifier = await asyncio.to_thread(_import_classifier)

    @functools.cache  # two for all questions
    def criteria_of(criteria: Criteria) -> Any:
        return classifier.BinaryCriteria(**criteria._asdict())

    def binary(question: Question) -> Any:
        asked = question.instructions
        return classifier.BinaryQuestion(
            instructions=asked, criteria=criteria_of(question.criteria)
        )

    return binary


def _import_classifier() -> Any:
    import agentscope.classifier

    return agentscope.classifier


async def _call(
    model: Model, state: Observation, questions: Mapping[str, Any], deadline: float
) -> object:
    try:
        if _declares(model, "accepts_deadline"):
            pending = model(state, questions, deadline=deadline)
        else:
            pending = model(state, questions)
        if not inspect.isawaitable(pending):
            raise DecisionModelError("the decision model is not asynchronous")
        return await pending
    except CompactionError:
        raise
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise DecisionModelError("the decision model cancelled its own request") from None
    except TimeoutError as exc:
        raise DecisionTimeoutError("the decision model timed out") from exc
    except Exception as exc:
        # Only the type is named: a provider's message may quote the request.
        raise DecisionModelError(f"the decision model failed: {type(exc).__name__}") from exc


async def _wait(
    tasks: Sequence[asyncio.Future[Reply]], deadline: float, *, stop_early: bool
) -> None:
    """Wait for all tasks, the deadline, or (when one failure fails all) the first failure."""
    when = asyncio.FIRST_EXCEPTION if stop_early else asyncio.ALL_COMPLETED
    remaining = deadline - asyncio.get_running_loop().time()
    await asyncio.wait(tasks, timeout=max(0.0, remaining), return_when=when)


async def _cancel(tasks: Sequence[asyncio.Future[Reply]]) -> None:
    """Cancel what still runs, and leave behind what ignores that."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    if running:
        _, stuck = await asyncio.wait(running, timeout=_GRACE_SECONDS)
        if stuck:
            _log.warning("%d decision requests ignore their cancellation", len(stuck))
    for task in tasks:
        task.add_done_callback(_retrieve)


def _retrieve(task: asyncio.Future[Reply]) -> None:
    """Look at a request's outcome, so that asyncio does not report its error as lost."""
    if not task.cancelled():
        task.exception()


def _collect(tasks: Sequence[asyncio.Future[Reply]], on_failure: BatchFailure) -> Replies:
    replies = Replies()
    failures: list[DecisionModelError] = []
    late = False
    for task in tasks:
        if not task.done():
            late = True
            continue
        try:
            reply = task.result()
        except DecisionModelError as exc:
            failures.append(exc)
            continue
        replies.add(reply)
        failures += reply.faults
    if late and (not failures or on_failure is BatchFailure.KEEP):
        failures.append(DecisionTimeoutError("the deadline passed before all answers arrived"))
    if failures and (on_failure is BatchFailure.FAIL or not replies.answers):
        raise failures[0]
    if failures:
        _log.warning("%d failures left calls unanswered: %s", len(failures), failures[0])
    return replies
