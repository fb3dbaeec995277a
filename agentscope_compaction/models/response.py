"""Checked wire replies as AgentScope's response; imported on the first answer, not before.

``agentscope.classifier`` takes most of a second to import.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentscope.classifier import (
    BinaryAnswer,
    ClassifierResponse,
    ClassifierUsage,
    RefusalAnswer,
)

from agentscope_compaction.models.wire import WireReply

__all__ = ["to_response"]


def to_response(
    replies: Sequence[WireReply],
    asked: Sequence[str],
    seconds: float,
    request_ids: Sequence[str],
    requests: int,
) -> ClassifierResponse:
    """Merge the replies to one call; answers in the order asked, usage summed.

    ``usage`` is None when no reply reported any; a count that one reply left out is unknown.
    Parts answered by different models are named together, which no threshold profile knows.
    """
    found = {name: value for reply in replies for name, value in reply.answers.items()}
    inputs = _total(replies, lambda reply: reply.input_tokens)
    outputs = _total(replies, lambda reply: reply.output_tokens)
    unknown = inputs is None and outputs is None
    return ClassifierResponse(
        model=" + ".join(dict.fromkeys(reply.model for reply in replies)),
        content={name: _answer(found[name]) for name in asked},
        usage=None
        if unknown
        else ClassifierUsage(time=seconds, input_tokens=inputs, output_tokens=outputs),
        metadata={
            "request_id": request_ids[-1] if request_ids else None,
            "request_ids": list(request_ids),
            "requests": requests,
        },
    )


def _answer(value: float | None) -> BinaryAnswer | RefusalAnswer:
    return RefusalAnswer() if value is None else BinaryAnswer(probability=value)


def _total(replies: Sequence[WireReply], read: Callable[[WireReply], int | None]) -> int | None:
    counts = [read(reply) for reply in replies]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
