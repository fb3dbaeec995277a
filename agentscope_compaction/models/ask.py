"""Ask a decision model all batches of a plan: bounded concurrency, one deadline, strict answers."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentscope_compaction.core.decisions import Answer
from agentscope_compaction.core.options import BatchFailure, CompactionOptions
from agentscope_compaction.core.questions import (
    Criteria,
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
from agentscope_compaction.models.copies import Copies

__all__ = ["Replies", "ask", "is_local", "named_together"]

_log = logging.getLogger("agentscope_compaction")
_GRACE_SECONDS = 0.2
"""How long cancelled requests may take to end before they are left behind."""
_MAX_COUNT = 2**53
"""Larger counts are none, and no JSON number that every reader takes."""

_AND = " + "
"""Joins the names of models that answered parts of one proposal (``models/response``)."""

Model = Callable[..., Any]


@dataclass(slots=True)
class Replies:
    """Valid answers by decision id, the answering model, and what it reported to have used.

    Where requests were answered by different models (a service being updated), these are named
    together, which no threshold profile knows.
    """

    answers: dict[str, Answer] = field(default_factory=dict)
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def usage(self) -> dict[str, int | None]:
        """Tokens as reported; None where nothing was."""
        return {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens}


@dataclass(frozen=True, slots=True)
class _Reply:
    """What one request brought: valid answers, and what was wrong with the others."""

    answers: Mapping[str, Answer]
    faults: Sequence[DecisionModelError]
    model: object
    usage: object


def named_together(models: Iterable[object]) -> str | None:
    """Return one name for the models that answered, each once; None where none gave a name."""
    names = [part for name in models if isinstance(name, str) for part in name.split(_AND)]
    return _AND.join(dict.fromkeys(names)) if names else None


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

    async def one(ids: Sequence[str]) -> _Reply:
        async with slots:
            await asyncio.sleep(0)  # a model that answers at once must not hold up the loop
            questions = {n: binary(q) for i in ids for n, q in questions_for(i).items()}
            shown = state if shared else copies.take()
            reply = _read(await _call(model, shown, questions, deadline), ids)
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
    tasks: Sequence[asyncio.Future[_Reply]], deadline: float, *, stop_early: bool
) -> None:
    """Wait for all tasks, the deadline, or (when one failure fails all) the first failure."""
    when = asyncio.FIRST_EXCEPTION if stop_early else asyncio.ALL_COMPLETED
    remaining = deadline - asyncio.get_running_loop().time()
    await asyncio.wait(tasks, timeout=max(0.0, remaining), return_when=when)


async def _cancel(tasks: Sequence[asyncio.Future[_Reply]]) -> None:
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


def _retrieve(task: asyncio.Future[_Reply]) -> None:
    """Look at a request's outcome, so that asyncio does not report its error as lost."""
    if not task.cancelled():
        task.exception()


def _collect(tasks: Sequence[asyncio.Future[_Reply]], on_failure: BatchFailure) -> Replies:
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
        replies.answers.update(reply.answers)
        failures += reply.faults
        replies.model = named_together([replies.model, reply.model])
        _add_usage(reply.usage, replies)
    if late and (not failures or on_failure is BatchFailure.KEEP):
        failures.append(DecisionTimeoutError("the deadline passed before all answers arrived"))
    if failures and (on_failure is BatchFailure.FAIL or not replies.answers):
        raise failures[0]
    if failures:
        _log.warning("%d failures left calls unanswered: %s", len(failures), failures[0])
    return replies


def _read(response: object, ids: Sequence[str]) -> _Reply:
    """Check a response: each pair whose two answers are valid counts, each other is a fault.

    Raises:
        DecisionAnswerError: There are no answers, or looking at them fails.
    """
    try:
        return _read_answers(response, ids)
    except DecisionAnswerError:
        raise
    except Exception as exc:  # a model is foreign code, and so are the objects it returns
        raise _unreadable("the response", exc) from exc


def _read_answers(response: object, ids: Sequence[str]) -> _Reply:
    content = getattr(response, "content", None)
    if not isinstance(content, Mapping):
        raise DecisionAnswerError("the decision model returned no answers")
    answers: dict[str, Answer] = {}
    faults: list[DecisionModelError] = []
    asked = set[str]()
    for pair_id in ids:
        about_call, about_result = call_question_id(pair_id), result_question_id(pair_id)
        asked |= {about_call, about_result}
        try:
            answers[pair_id] = Answer(
                _probability(content, about_call), _probability(content, about_result)
            )
        except DecisionAnswerError as exc:
            faults.append(exc)
        except Exception as exc:
            faults.append(_unreadable(f"an answer about {pair_id}", exc))
    if extra := content.keys() - asked:
        _log.warning("the decision model sent %d answers that were not asked", len(extra))
    model, usage = getattr(response, "model", None), getattr(response, "usage", None)
    return _Reply(answers, faults, model, usage)


def _unreadable(what: str, exc: Exception) -> DecisionAnswerError:
    return DecisionAnswerError(f"{what} cannot be read: {type(exc).__name__}")


def _probability(content: Mapping[str, object], name: str) -> float:
    answer = content.get(name)
    if answer is None:
        raise DecisionAnswerError(f"no answer to {name}")
    if _field(answer, "type") != "binary_answer":
        raise DecisionAnswerError(f"the answer to {name} is not binary")
    value = _field(answer, "probability")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DecisionAnswerError(f"the answer to {name} is not a number")
    if not 0 <= value <= 1:  # NaN compares as false
        raise DecisionAnswerError(f"the answer to {name} is not a probability")
    return float(value)


def _field(answer: object, name: str) -> object:
    """A field of an answer object, which AgentScope's hold as items: read there, much faster.

    A plain dictionary is no answer object.
    """
    if isinstance(answer, dict) and type(answer) is not dict and name in answer:
        return answer[name]
    return getattr(answer, name, None)


def _add_usage(usage: object, replies: Replies) -> None:
    for name in ("input_tokens", "output_tokens"):
        value = _count(usage, name)
        if value is not None:
            setattr(replies, name, (getattr(replies, name) or 0) + value)


def _count(usage: object, name: str) -> int | None:
    """A token count; anything odd is unknown, never an error."""
    try:
        value = getattr(usage, name, None)
    except Exception:  # foreign code
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < _MAX_COUNT else None
