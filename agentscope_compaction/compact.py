"""``compact_context``: one snapshot in, one proposal out, nothing kept in between.

The pure steps run in a worker thread, so that a long history does not hold up the event loop; only
the asking awaits.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

from pydantic import ValidationError

from agentscope_compaction.core.conclude import Evidence, conclude
from agentscope_compaction.core.decisions import as_thresholds, thresholds_of
from agentscope_compaction.core.jsontext import copy_json
from agentscope_compaction.core.options import CompactionOptions
from agentscope_compaction.core.pairing import Pair
from agentscope_compaction.core.plan import (
    Plan,
    inspect,
    plan,
    take_snapshot,
    without_questions,
)
from agentscope_compaction.core.types import (
    CompactionProposal,
    CompactionRequest,
    JSONObject,
    Thresholds,
)
from agentscope_compaction.core.view import with_outputs
from agentscope_compaction.errors import (
    ConfigurationError,
    DecisionTimeoutError,
    InvalidSnapshotError,
)
from agentscope_compaction.memory import AnswerMemory, Remembered
from agentscope_compaction.models.answers import Replies, named_together
from agentscope_compaction.models.ask import ask, is_local
from agentscope_compaction.models.seam import DecisionModel
from agentscope_compaction.outgoing import Redaction
from agentscope_compaction.redaction import redact_secrets
from agentscope_compaction.tokens import default_counter

__all__ = ["CheckedCounter", "compact_context", "embedded", "own_copy", "propose"]


async def compact_context(
    request: CompactionRequest | Mapping[str, Any] | str | bytes,
    decision_model: DecisionModel | None = None,
    token_counter: Callable[[list[JSONObject]], int] | None = None,
    redact: Callable[[str], str] | None = redact_secrets,
) -> CompactionProposal:
    """Propose a compacted history for one snapshot; the input is never modified.

    Args:
        request: A ``CompactionRequest``, or a mapping or JSON text of the same shape.
        decision_model: Called like ``agentscope.classifier.ClassifierModelBase``; None is the
            embedded model, which needs no network.
        token_counter: Counts a history (a list of message objects). Used for
            ``options.target_tokens`` and the token figures, in a worker thread, on a copy unless
            it declares ``reads_only = True``; None takes tiktoken where it works offline, else an
            estimate.
        redact: Applied to every string sent to a model that is not local; None sends them as
            they are. The history itself is never redacted.

    Returns:
        The proposal. ``proposal.messages`` is a deep copy of the history with the proposed edits.

    Raises:
        InvalidSnapshotError: The request is malformed, or its messages are not JSON.
        ObservationBudgetError: The observation or one pair of questions does not fit its budget.
        DecisionTimeoutError: ``options.total_timeout_seconds`` passed.
        DecisionAnswerError: An answer is missing, refused, not binary or not a probability.
        DecisionModelError: The model failed.
        ConfigurationError: ``token_counter``, ``redact`` or the model's ``thresholds`` misbehave.
    """
    return await propose(
        own_copy(request),
        decision_model if decision_model is not None else embedded(),
        counter=token_counter,
        redact=redact,
    )


async def propose(
    request: CompactionRequest,
    model: DecisionModel,
    *,
    counter: Callable[[list[JSONObject]], int] | None,
    redact: Callable[[str], str] | None,
    unremovable: Callable[[Pair], bool] = lambda pair: False,
    memory: AnswerMemory | None = None,
) -> CompactionProposal:
    """Propose for a request whose messages nobody else holds; see :func:`compact_context`.

    Args:
        request: The snapshot.
        model: Whom to ask.
        counter: Counts tokens; None = the default one.
        redact: Applied to what a remote model sees.
        unremovable: Says which pairs must not be removed altogether.
        memory: Answers from before, for a model that is not local.
    """
    started = time.monotonic()
    options = request.options
    deadline = asyncio.get_running_loop().time() + options.total_timeout_seconds
    count = CheckedCounter(counter)
    redaction = Redaction(None if is_local(model) else redact)
    _profile(model, options, None)  # an unusable profile must not cost a request
    memory = None if is_local(model) else memory
    planned, before, models = await asyncio.to_thread(
        _planned, request, count, redaction, unremovable, memory
    )
    replies = await _asked(model, planned, deadline)
    if memory is not None:
        memory.learn(request, planned.inspection.asked, replies.answers, replies.model)
    answered = named_together([*models, replies.model])
    thresholds = thresholds_of(options, _profile(model, options, answered))
    answers = {**planned.inspection.known, **replies.answers}
    evidence = Evidence(answers, thresholds, answered)
    proposal = await asyncio.to_thread(conclude, planned, evidence, count, before)
    proposal.stats.update(
        tokenizer=count.name,
        usage=replies.usage,
        redactions=redaction.count,
        elapsed_ms=round((time.monotonic() - started) * 1000),
    )
    return proposal


def own_copy(request: CompactionRequest | Mapping[str, Any] | str | bytes) -> CompactionRequest:
    """Validate a request and copy its messages, so that the caller may go on changing them.

    Raises:
        InvalidSnapshotError: The request does not have the shape of ``CompactionRequest``.
    """
    try:
        if isinstance(request, str | bytes):
            request = cast(Mapping[str, Any], json.loads(request))
        if not isinstance(request, CompactionRequest):
            if not isinstance(request, Mapping):
                raise InvalidSnapshotError("the request must be a JSON object")
            request = CompactionRequest.model_validate(dict(request))
        fields = {name: getattr(request, name) for name in CompactionRequest.model_fields}
        # Validated again: the lists of a request model may have been changed since it was built.
        fields["messages"] = copy_json(fields["messages"])
        return CompactionRequest.model_validate(fields)
    except ValidationError as exc:
        raise InvalidSnapshotError(f"invalid request: {_first_faults(exc)}") from None
    except (ValueError, RecursionError) as exc:
        if isinstance(exc, InvalidSnapshotError):
            raise
        raise InvalidSnapshotError(f"the request is not JSON: {type(exc).__name__}") from exc


def _first_faults(exc: ValidationError) -> str:
    """Name the first faults, without quoting any input."""
    faults = exc.errors(include_url=False, include_input=False, include_context=False)
    named = [f"{'.'.join(str(part) for part in f['loc']) or 'request'}: {f['msg']}" for f in faults]
    more = f" (and {len(named) - 3} more)" if len(named) > 3 else ""
    return "; ".join(named[:3]) + more


def embedded() -> DecisionModel:
    """Return the embedded default model."""
    from agentscope_compaction.models.embedded import EmbeddedDecisionModel

    return EmbeddedDecisionModel()


def _planned(
    request: CompactionRequest,
    count: CheckedCounter,
    redaction: Redaction,
    unremovable: Callable[[Pair], bool],
    memory: AnswerMemory | None,
) -> tuple[Plan, int, Collection[str]]:
    """Plan a request and count it; with the models whose answers from before still hold."""
    target = request.options.target_tokens
    try:
        inspection = inspect(take_snapshot(request), unremovable)
        known = memory.known(request, inspection.asked) if memory is not None else Remembered()
        inspection, before = inspection.knowing(known.answers), count(request.messages)
    except RecursionError as exc:
        raise InvalidSnapshotError("messages are nested too deeply") from exc
    within = target is not None and before <= target
    planned = without_questions(inspection) if within else plan(inspection, redaction)
    return planned, before, known.models


async def _asked(model: DecisionModel, planned: Plan, deadline: float) -> Replies:
    if not planned.batches:
        return Replies()
    if asyncio.get_running_loop().time() >= deadline:
        raise DecisionTimeoutError("the deadline passed before the first request")
    state, request = planned.observation, planned.inspection.snapshot.request
    if is_local(model):
        state = with_outputs(state, request.goal, planned.inspection.pairing.pairs)
    return await ask(model, state, planned.batches, request.options, deadline=deadline)


def _profile(
    model: DecisionModel, options: CompactionOptions, answered: str | None
) -> Thresholds | None:
    """Read the model's own thresholds where the options leave the choice to it."""
    if options.keep_threshold is not None:
        return None
    try:
        by_version = getattr(model, "thresholds_for", None)
        given = getattr(model, "thresholds", None)
        if callable(by_version) and answered is not None:
            given = by_version(answered)
    except Exception as exc:  # a model is foreign code
        raise ConfigurationError(
            f"the decision model's profile cannot be read: {type(exc).__name__}"
        ) from exc
    if given is None:
        return None
    try:
        return as_thresholds(given)
    except ValueError as exc:
        raise ConfigurationError(f"the decision model's profile is unusable: {exc}") from None


class CheckedCounter:
    """The caller's token counter, which sees a copy and is checked; or the default one."""

    def __init__(self, given: Callable[[list[JSONObject]], int] | None) -> None:
        self._count: Callable[[list[JSONObject]], int]
        if given is None:
            default = default_counter().remembering()
            self._count, self.name = default, default.name
        else:  # not "if given": a counter may be an object that is empty, and so false
            self._count, self.name = given, "custom"

    def __call__(self, messages: list[JSONObject]) -> int:
        """Return the tokens of a history.

        Raises:
            ConfigurationError: The counter failed, or its figure is none.
        """
        try:
            shared = getattr(self._count, "reads_only", None) is True
            value = self._count(messages if shared else copy_json(messages))
        except Exception as exc:
            raise ConfigurationError(f"token_counter failed: {type(exc).__name__}") from exc
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ConfigurationError("token_counter must return a non-negative integer")
        return value
