"""What the tests of asking share: a history of a few calls, one request each, and replies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentscope.classifier import BinaryAnswer, BinaryQuestion, ClassifierResponse

from agentscope_compaction import CompactionProposal, compact_context
from agentscope_compaction.testing import HistoryBuilder, check_proposal

Questions = Mapping[str, BinaryQuestion]


def history(calls: int = 3) -> HistoryBuilder:
    """A task, calls, and one recent message."""
    builder = HistoryBuilder().user("task")
    for n in range(calls):
        builder.call("A", {"n": n}, "x" * 1_000, f"c{n}")
    return builder.user("go on")


async def propose(model: Any, calls: int = 3, **options: Any) -> CompactionProposal:
    """Propose with one request per call and the given model."""
    builder = history(calls)
    options = {"preserve_recent_messages": 1, "max_questions_per_request": 2, **options}
    proposal = await compact_context(builder.request(**options), model)
    check_proposal(builder.messages, proposal)
    return proposal


def number(questions: Questions) -> int:
    """The number of the call a request asks about: 1 for ``call_t1``."""
    return int(next(iter(questions)).rpartition("t")[2])


def reply(questions: Questions, probability: float = 0.0, **odd: Any) -> ClassifierResponse:
    """A response; keywords replace answers by question kind."""
    content: dict[str, Any] = {}
    for name in questions:
        kind = name.partition("_")[0]
        content[name] = odd.get(kind, BinaryAnswer(probability))
    return ClassifierResponse(model="m-1", content=content)
