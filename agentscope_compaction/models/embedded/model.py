"""The embedded decision model: structural facts first, then a fixed-weight scorer; no network."""

from __future__ import annotations

import asyncio
import math
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from agentscope_compaction.core.types import Thresholds
from agentscope_compaction.models.embedded.effects import Effect
from agentscope_compaction.models.embedded.features import features_of
from agentscope_compaction.models.embedded.fitted import FITTED
from agentscope_compaction.models.embedded.history import Call
from agentscope_compaction.models.embedded.index import Index, prepare
from agentscope_compaction.models.embedded.structure import facts_of, verdict_of
from agentscope_compaction.models.embedded.weights import Weights

if TYPE_CHECKING:
    from agentscope.classifier import BinaryQuestion, ClassifierResponse

__all__ = ["MODEL_ID", "EmbeddedDecisionModel"]

MODEL_ID = "lexical-1"
_DOUBT = 1.0
"""The answer to what cannot be judged: keep."""
_NO_CONTEXT = 0.9
_ACT = 0.6
"""The record that something was changed stays, or the agent may do it again."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Both answers about one call, and why."""

    keep_call: float
    keep_result: float
    facts: tuple[str, ...]
    call_parts: dict[str, float]
    result_parts: dict[str, float]


class EmbeddedDecisionModel:
    """The default decision model: in process, deterministic, without network, key or download.

    It reads full outputs (``local = True``), so nothing leaves the process. Its probabilities are
    scaled so that 0.5 is a keep-biased operating point; they are not calibrated, and every
    response says so in ``metadata["calibrated"]``. It is lexical: it knows which strings come
    back, not what they mean, so it can miss what is needed in other words.

    Cost: about a tenth of a millisecond per call, linear in the size of the state, off the event
    loop. Safe to share between tasks, threads and agents.
    """

    local = True
    """Shown full outputs; see ``compact_context``."""
    thresholds = Thresholds(0.5, 0.5)
    """Its own operating point."""

    def __init__(self, *, weights: Weights = FITTED) -> None:
        """Make a model.

        Args:
            weights: Weights of the scorer; the shipped ones were fitted on published histories.
        """
        self._weights = weights
        self.name = MODEL_ID
        self.model = MODEL_ID
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._prepared: dict[int, tuple[weakref.ref[Any], Index]] = {}

    async def __call__(
        self, state: dict[str, Any] | str, questions: Mapping[str, BinaryQuestion]
    ) -> ClassifierResponse:
        """Answer the questions ``call_<id>`` and ``result_<id>`` about calls of the state.

        Args:
            state: The observation; ``state["calls"][<id>]["output"]`` is the full output.
            questions: Binary questions by id. What they ask is fixed by their ids; other ids and
                other kinds of question are answered with doubt, that is 1.0: keep.

        Returns:
            One ``BinaryAnswer`` per question; ``metadata`` holds ``calibrated`` (False) and
            ``explanations`` as ``explain`` returns them. ``usage`` is None: it costs nothing.
        """
        return await asyncio.to_thread(self._respond, state, questions)

    def explain(
        self, state: dict[str, Any] | str, questions: Mapping[str, BinaryQuestion]
    ) -> dict[str, dict[str, Any]]:
        """Answer like a call, with reasons, synchronously.

        Returns:
            Per question id ``{"probability": float, "facts": [name, ...], "contributions":
            {feature: share of the score in log odds}}``. Contributions are empty where a fact
            decided.
        """
        index = self._index(state)
        judged: dict[str, Judgement] = {}
        return {
            key: _explain(key, question, index, judged, self._weights)
            for key, question in questions.items()
        }

    def _respond(
        self, state: dict[str, Any] | str, questions: Mapping[str, BinaryQuestion]
    ) -> ClassifierResponse:
        # Imported here: it costs most of a second, and this runs off the event loop.
        from agentscope.classifier import BinaryAnswer, ClassifierResponse

        with self._turn:  # several busy threads would only keep the event loop from running
            explanations = self.explain(state, questions)
        return ClassifierResponse(
            model=MODEL_ID,
            content={
                k: BinaryAnswer(probability=e["probability"]) for k, e in explanations.items()
            },
            metadata={"calibrated": False, "explanations": cast("Any", explanations)},
        )

    def _forget(self, key: int) -> Callable[[object], None]:
        def forget(_: object) -> None:
            self._prepared.pop(key, None)

        return forget

    def _index(self, state: dict[str, Any] | str) -> Index:
        """The prepared state; kept as long as the state lives, where it can be watched."""
        try:
            watch: weakref.ref[Any] = weakref.ref(state, self._forget(id(state)))
        except TypeError:  # a plain dict or string: nothing tells when it is gone
            return prepare(state)
        with self._lock:  # the batches of one proposal arrive together and share one index
            known = self._prepared.get(id(state))
            if known is None or known[0]() is not state:
                known = self._prepared[id(state)] = (watch, prepare(state))
            return known[1]


def _explain(
    key: str, question: object, index: Index, judged: dict[str, Judgement], weights: Weights
) -> dict[str, Any]:
    which, _, call_id = key.partition("_")
    call = index.calls.get(call_id)
    kind = (
        question.get("type")
        if isinstance(question, Mapping)
        else getattr(question, "type", "binary")
    )
    if call is None or which not in ("call", "result") or kind != "binary":
        return {"probability": _DOUBT, "facts": ["unknown"], "contributions": {}}
    if call_id not in judged:
        judged[call_id] = judge(call, index, weights)
    answer = judged[call_id]
    asks_result = which == "result"
    return {
        "probability": answer.keep_result if asks_result else answer.keep_call,
        "facts": list(answer.facts),
        "contributions": dict(answer.result_parts if asks_result else answer.call_parts),
    }


def judge(call: Call, index: Index, weights: Weights) -> Judgement:
    """Judge one call: the first deciding fact, else doubt without a context, else the scorer."""
    facts = facts_of(call, index)
    verdict = verdict_of(facts)
    names = tuple(str(fact) for fact in facts)
    if verdict is not None:
        return Judgement(verdict.keep_call, verdict.keep_result, names, {}, {})
    if not index.has_context:
        return Judgement(_NO_CONTEXT, _NO_CONTEXT, ("no_context",), {}, {})
    values = features_of(call, index)
    result, result_parts = _score(values, weights.result)
    keep_call, call_parts = _score(values, weights.call)
    floor = _ACT if call.effect is Effect.WRITE else result
    return Judgement(max(keep_call, result, floor), result, names, call_parts, result_parts)


def _score(
    values: Mapping[str, float], weight: Mapping[str, float]
) -> tuple[float, dict[str, float]]:
    parts = {name: round(weight.get(name, 0.0) * value, 4) for name, value in values.items()}
    parts = {name: part for name, part in parts.items() if part}
    parts["bias"] = weight.get("bias", 0.0)
    total = math.fsum(parts.values())
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total)))), parts
