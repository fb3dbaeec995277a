"""Read what a decision model answered: each answer is checked, whatever object the model made.

A pair whose two answers are valid counts; anything else about it is a fault of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agentscope_compaction.core.decisions import Answer
from agentscope_compaction.core.questions import call_question_id, result_question_id
from agentscope_compaction.errors import DecisionAnswerError, DecisionModelError

__all__ = ["Replies", "Reply", "named_together", "read_reply"]

_log = logging.getLogger("agentscope_compaction")
_MAX_COUNT = 2**53
"""Larger counts are none, and no JSON number that every reader takes."""
_AND = " + "
"""Joins the names of models that answered parts of one proposal (``models/response``)."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What one request brought: valid answers, and what was wrong with the others."""

    answers: Mapping[str, Answer]
    faults: Sequence[DecisionModelError]
    model: object
    usage: object


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

    def add(self, reply: Reply) -> None:
        """Take in one request's reply."""
        self.answers.update(reply.answers)
        self.model = named_together([self.model, reply.model])
        self.input_tokens = _sum(self.input_tokens, _count(reply.usage, "input_tokens"))
        self.output_tokens = _sum(self.output_tokens, _count(reply.usage, "output_tokens"))


def named_together(models: Iterable[object]) -> str | None:
    """Return one name for the models that answered, each once; None where none gave a name."""
    names = [part for name in models if isinstance(name, str) for part in name.split(_AND)]
    return _AND.join(dict.fromkeys(names)) if names else None


def read_reply(response: object, ids: Sequence[str]) -> Reply:
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


def _read_answers(response: object, ids: Sequence[str]) -> Reply:
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
    return Reply(answers, faults, model, usage)


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


def _sum(known: int | None, more: int | None) -> int | None:
    return known if more is None else (known or 0) + more


def _count(usage: object, name: str) -> int | None:
    """A token count; anything odd is unknown, never an error."""
    try:
        value = getattr(usage, name, None)
    except Exception:  # foreign code
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < _MAX_COUNT else None
