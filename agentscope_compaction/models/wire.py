"""System One on the wire, without a network: requests to bytes, responses to answers or an error.

Every function is pure. Whatever bytes a server sends become answers or exactly one documented
error, and no error carries a body or a key: only the server's own short message, scrubbed.
Errors are raised outside ``except`` blocks, because a decoder's exception holds the document.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentscope_compaction.errors import (
    ConfigurationError,
    DecisionAnswerError,
    InvalidSnapshotError,
)

if TYPE_CHECKING:
    from agentscope.classifier import BinaryQuestion

__all__ = ["WireReply", "encode_request", "read_reply", "strict_json"]

_MAX_NAME_CHARS = 200
_MAX_NAMED = 3
_MAX_COUNT = 2**53


@dataclass(frozen=True, slots=True)
class WireReply:
    """The checked content of one successful response."""

    model: str
    """The model that answered."""
    answers: dict[str, float | None]
    """Probability per question asked, in the order asked; None where the service refused."""
    input_tokens: int | None
    """Tokens billed; None when the service does not say."""
    output_tokens: int | None
    """Tokens produced; None when the service does not say."""
    extra: int
    """Answers to questions nobody asked; ignored."""


# Requests


def encode_request(
    model: str, state: Mapping[str, Any] | str, questions: Mapping[str, BinaryQuestion]
) -> bytes:
    """Return the request body as UTF-8 JSON: ``{"model", "state", "questions"}``.

    Lone surrogates, which no server can read, are sent as ``?``; the caller's state is unchanged.

    Raises:
        ConfigurationError: No question, or one that is not binary.
        InvalidSnapshotError: The state is not JSON (NaN, other types, cycles, too deep).
    """
    if not questions:
        raise ConfigurationError("no questions to ask")
    body = {
        "model": model,
        "state": state,
        "questions": {name: _noul(name, question) for name, question in questions.items()},
    }
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError):
        text = ""
    if not text:
        raise InvalidSnapshotError("the state for the decision model is not JSON")
    return text.encode("utf-8", "replace")


def _noul(name: str, question: BinaryQuestion) -> dict[str, Any]:
    """The subset every compatible server takes: string instructions, two criteria or none.

    As AgentScope's OpenAI classifier does, a single criterion is added to the instructions and
    missing instructions fall back to the question's name.
    """
    if getattr(question, "type", None) != "binary":
        raise ConfigurationError(f"question {name!r} is not binary; only binary ones are asked")
    instructions = question.instructions or name
    criteria = question.criteria
    if criteria is None or (criteria.true is None and criteria.false is None):
        return {"type": "noul", "instructions": instructions}
    if criteria.true is not None and criteria.false is not None:
        both = {"true": criteria.true, "false": criteria.false}
        return {"type": "noul", "instructions": instructions, "criteria": both}
    outcome = "False" if criteria.true is None else "True"
    return {
        "type": "noul",
        "instructions": f"{instructions}\n{outcome}: {criteria.true or criteria.false}",
    }


# Successful responses


def read_reply(body: bytes, asked: Iterable[str]) -> WireReply:
    """Check the body of a successful response against the questions asked.

    Raises:
        DecisionAnswerError: Not strict JSON (duplicate keys, NaN), wrong shape, an answer missing,
            of another type, not a finite number, or outside [0, 1].
    """
    document = strict_json(body)
    if not isinstance(document, dict):
        raise DecisionAnswerError("the decision service did not answer with a JSON object")
    model, answers = document.get("model"), document.get("answers")
    if (
        not isinstance(model, str)
        or not model.isprintable()
        or not 0 < len(model) <= _MAX_NAME_CHARS
    ):
        raise DecisionAnswerError("the decision service did not name the model that answered")
    if not isinstance(answers, dict):
        raise DecisionAnswerError("the decision service sent no object of answers")
    names = list(asked)
    missing = [name for name in names if name not in answers]
    if missing:
        raise DecisionAnswerError(f"no answer for {_named(missing)}")
    read = {name: _probability(name, answers[name]) for name in names}
    usage = document.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return WireReply(
        model=model,
        answers=read,
        input_tokens=_count(usage.get("input_tokens")),
        output_tokens=_count(usage.get("output_tokens")),
        extra=len(answers) - len(read),
    )


def _probability(name: str, answer: object) -> float | None:
    kind = answer.get("type") if isinstance(answer, dict) else None
    if kind == "refusal":
        return None
    if not isinstance(answer, dict) or kind != "noul":
        raise DecisionAnswerError(f"the answer for {name!r} is not a noul")
    value = answer.get("noul")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DecisionAnswerError(f"the answer for {name!r} is not a number")
    if not 0 <= value <= 1:
        raise DecisionAnswerError(f"the answer for {name!r} is outside [0, 1]")
    return float(value)


def _count(value: object) -> int | None:
    """A token count; some servers write it as a float. Anything odd is unknown, never an error."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < _MAX_COUNT else None


def _named(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_MAX_NAMED])
    return shown if len(names) <= _MAX_NAMED else f"{shown} and {len(names) - _MAX_NAMED} more"


def strict_json(body: bytes) -> object:
    """Parse UTF-8 JSON; None (never a legal reply here) when it is anything else."""
    try:
        return json.loads(
            body.decode("utf-8"),
            parse_constant=_refuse_constant,
            object_pairs_hook=_unique_keys,
        )
    except (ValueError, RecursionError):
        return None


def _refuse_constant(name: str) -> object:
    raise ValueError(name)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("duplicate key")
    return document
