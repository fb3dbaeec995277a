"""A reply of 100 calls in a small window: with and without compaction."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
from agentscope.message import Msg

from agentscope_compaction import CompactionMiddleware, accept_all
from agentscope_compaction.testing.chat import say, use

pytestmark = pytest.mark.anyio

WINDOW = 16_000
ASKED = (2, 11, 37)
"""Pages whose codes the model needs at the very end."""


@dataclass
class Figures:
    """What one run took."""

    answer: str
    peak_tokens: int
    model_calls: int
    summaries: int
    judgings: int
    questions: int
    recalls: int


def _visible(messages: list[Msg]) -> str:
    outputs = [b.output for m in messages for b in m.content if b.type == "tool_result"]
    parts = [
        o if isinstance(o, str) else "\n".join(x.text for x in o if x.type == "text")
        for o in outputs
    ]
    return "\n".join(parts)


def _code(text: str, page: int) -> str | None:
    found = re.search(rf"the code of page {page} is (\d+)", text)
    return found[1] if found else None


def _recall_missing(messages: list[Msg]) -> list[Any]:
    """Ask back the early facts that are not in sight any more."""
    tools = [
        use("recall_tool_output", f"r{page}", call_id=f"c{page}", pattern="the code of")
        for page in ASKED
        if _code(_visible(messages), page) is None
    ]
    return tools or [say("all in sight")]


def _answer(messages: list[Msg]) -> list[Any]:
    codes = [f"{page}: {_code(_visible(messages), page)}" for page in ASKED]
    return [say("; ".join(codes))]


async def _run(lab: Any, middlewares: list[Any]) -> Figures:
    turns = [*lab.turns(100), _recall_missing, _answer]
    tools = [tool for middleware in middlewares for tool in await middleware.list_tools()]
    agent = lab.agent(turns, context_size=WINDOW, middlewares=middlewares, tools=tools)
    answer = await agent.reply(lab.user("Look at 100 pages; I shall ask for some codes."))
    if answer.get_text_content() == "all in sight":
        answer = await agent.reply(lab.user("Then tell."))
    sizes = [await agent.model.count_tokens(sent, None) for sent in agent.model.calls]
    kinds = [kind for entry in await lab.archive.list() for kind in await lab.kinds(entry.ref)]
    return Figures(
        answer=answer.get_text_content(),
        peak_tokens=max(sizes),
        model_calls=len(agent.model.calls),
        summaries=agent.model.summaries,
        judgings=len(await lab.archive.list()),
        questions=len(lab.judge.asked),
        recalls=kinds.count("recalled"),
    )


async def test_a_hundred_calls_with_and_without(lab: Any) -> None:
    """Both runs finish; ours spends fewer summary calls and loses no early fact."""
    ours = await _run(
        lab,
        [CompactionMiddleware(lab.compactor(facts_ratio=0), review=accept_all)],
    )
    assert set(lab.runs.values()) == {1} and len(lab.runs) == 100
    theirs = await _run(type(lab)(), [])
    print(f"with:    {ours}\nwithout: {theirs}")  # shown by ``pytest -s``
    assert ours.answer == "; ".join(f"{page}: {page * 7919}" for page in ASKED)
    assert ours.recalls == len(ASKED)
    assert ours.summaries < theirs.summaries
    assert ours.peak_tokens <= 0.8 * WINDOW
    assert "None" in theirs.answer  # what the summary did not mention is lost
