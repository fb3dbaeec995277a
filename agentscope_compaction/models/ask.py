"""Ask a decision model all batches of a plan: bounded concurrency, one deadline, strict answers."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentscope_compaction.core.decisions import Answer
from agentscope_compaction.core.jsontext import copy_json
from agentscope_compaction.core.options import BatchFailure, CompactionOptions
from agentscope_compaction.core.questions import (
    Question,
    call_question_id,
    questions_for,
    result_question_id,
)
from agentscope_compaction.core.view import Observation
from agentscope_compaction.errors import (
    CompactionError,
    DecisionAnswerError,
    DecisionModelError,
    DecisionTimeoutError,
)

__all__ = ["Replies", "ask", "is_local"]

_log = logging.getLogger("agentscope_compaction")
_GRACE_SECONDS = 0.2
"""How long cancelled requests may take to end before they are left behind."""

Model = Callable[..., Any]


@dataclass(slots=True)
class Replies:
    """Valid answers by decision id, the answering model, and what it reported to have used."""

    answers: dict[str, Answer] = field(default_factory=dict)
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def usage(self) -> dict[str, int | None]:
        """Tokens as reported; None where nothing was."""
        return {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens}


def is_local(model: object) -> bool:
    """Whether the model declares that it runs in this process; only ``True`` itself counts."""
    return getattr(model, "local", None) is True


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
        state: What it judges; a model that is not local gets a copy per request.
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
    binary = await _question_type()

    async def one(ids: Sequence[str]) -> object:
        questions = {n: binary(q) for i in ids for n, q in questions_for(i).items()}
        async with slots:
            shown = state if is_local(model) else Observation(copy_json(state))
            return await _call(model, shown, questions, deadline)

    tasks = [asyncio.ensure_future(one(ids)) for ids in batches]
    try:
        await _wait(tasks, deadline, stop_early=options.on_batch_failure is BatchFailure.FAIL)
        return _collect(tasks, batches, options.on_batch_failure)
    finally:
        await _cancel(tasks)


async def _question_type() -> Callable[[Question], Any]:
    """Import AgentScope's question types off the event loop: the first time costs a second."""
    classifier = await asyncio.to_thread(_import_classifier)

    def binary(question: Question) -> Any:
        criteria = classifier.BinaryCriteria(true=question.true, false=question.false)
        return classifier.BinaryQuestion(instructions=question.instructions, criteria=criteria)

    return binary


def _import_classifier() -> Any:
    import agentscope.classifier

    return agentscope.classifier


async def _call(
    model: Model, state: Observation, questions: Mapping[str, Any], deadline: float
) -> object:
    try:
        if getattr(model, "accepts_deadline", False) is True:
            pending = model(state, questions, deadline=deadline)
        else:
            pending = model(state, questions)
        if not inspect.isawaitable(pending):
            raise DecisionModelError("the decision model is not asynchronous")
        return await pending
    except CompactionError:
        raise
    except TimeoutError as exc:
        raise DecisionTimeoutError("the decision model timed out") from exc
    except Exception as exc:
        # Only the type is named: a provider's message may quote the request.
        raise DecisionModelError(f"the decision model failed: {type(exc).__name__}") from exc


async def _wait(
    tasks: Sequence[asyncio.Future[object]], deadline: float, *, stop_early: bool
) -> None:
    """Wait for all tasks, the deadline, or (when one failure fails all) the first failure."""
    when = asyncio.FIRST_EXCEPTION if stop_early else asyncio.ALL_COMPLETED
    remaining = deadline - asyncio.get_running_loop().time()
    await asyncio.wait(tasks, timeout=max(0.0, remaining), return_when=when)


async def _cancel(tasks: Sequence[asyncio.Future[object]]) -> None:
    """Cancel what still runs, and leave behind what ignores that."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    if running:
        _, stuck = await asyncio.wait(running, timeout=_GRACE_SECONDS)
        if stuck:
            _log.warning("%d decision requests ignore their cancellation", len(stuck))
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not report it as lost


def _collect(
    tasks: Sequence[asyncio.Future[object]],
    batches: Sequence[Sequence[str]],
    on_failure: BatchFailure,
) -> Replies:
    replies = Replies()
    failures: list[DecisionModelError] = []
    late = False
    for task, ids in zip(tasks, batches, strict=True):
        if not task.done():
            late = True
            continue
        try:
            failures += _read(_outcome(task), ids, replies)
        except DecisionModelError as exc:
            failures.append(exc)
    if late and not failures:
        failures.append(DecisionTimeoutError("the deadline passed before all answers arrived"))
    if failures and (on_failure is BatchFailure.FAIL or not replies.answers):
        raise failures[0]
    if failures:
        _log.warning("%d failures left calls unanswered: %s", len(failures), failures[0])
    return replies


def _outcome(task: asyncio.Future[object]) -> object:
    if task.cancelled():
        raise DecisionModelError("the decision model cancelled its own request")
    return task.result()


def _read(response: object, ids: Sequence[str], replies: Replies) -> list[DecisionModelError]:
    """Add a response's valid pairs to the replies; return what was wrong with the others."""
    content = getattr(response, "content", None)
    if not isinstance(content, Mapping):
        raise DecisionAnswerError("the decision model returned no answers")
    name = getattr(response, "model", None)
    if replies.model is None and isinstance(name, str):
        replies.model = name
    _add_usage(getattr(response, "usage", None), replies)
    faults: list[DecisionModelError] = []
    for pair_id in ids:
        try:
            replies.answers[pair_id] = Answer(
                keep_call=_probability(content, call_question_id(pair_id)),
                keep_result=_probability(content, result_question_id(pair_id)),
            )
        except DecisionAnswerError as exc:
            faults.append(exc)
    extra = len(content) - 2 * len(ids)
    if extra > 0:
        _log.warning("the decision model sent %d answers that were not asked", extra)
    return faults


def _probability(content: Mapping[str, object], name: str) -> float:
    answer = content.get(name)
    if answer is None:
        raise DecisionAnswerError(f"no answer to {name}")
    if getattr(answer, "type", None) != "binary_answer":
        raise DecisionAnswerError(f"the answer to {name} is not binary")
    value = getattr(answer, "probability", None)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DecisionAnswerError(f"the answer to {name} is not a number")
    if not math.isfinite(value) or not 0 <= value <= 1:
        raise DecisionAnswerError(f"the answer to {name} is not a probability")
    return float(value)


def _add_usage(usage: object, replies: Replies) -> None:
    for name in ("input_tokens", "output_tokens"):
        value = getattr(usage, name, None)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            setattr(replies, name, (getattr(replies, name) or 0) + value)
