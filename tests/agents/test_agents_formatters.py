"""Every formatter AgentScope ships, given accepted contexts, against the providers' rules.

A formatted history is read into turns; the rules are those of the provider bug threads that
AgentScope's users met: pairs whole and adjacent, order kept, no empty text, no message of thinking
only, and signed thinking never next to thinking of another turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import agentscope.formatter
import pytest
from agentscope.agent import Agent
from agentscope.message import Msg
from agentscope.state import AgentState

from agentscope_compaction import with_compaction
from agentscope_compaction.testing import HistoryBuilder

pytestmark = pytest.mark.anyio

FORMATTERS = sorted(set(agentscope.formatter.__all__) - {"FormatterBase"})


@dataclass
class Turn:
    """One message or item as a provider sees it."""

    role: str
    texts: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    signed: int = 0
    calls: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)


def turns_of(formatted: Sequence[Any]) -> list[Turn]:
    """Read any formatter's output; consecutive items of one role in one model turn are joined."""
    turns: list[Turn] = []
    for turn in (_turn(item, n) for n, item in enumerate(formatted)):
        last = turns[-1] if turns else None
        nameless = last is not None and "" in last.calls and "" in turn.calls  # Ollama: by order
        joined = turn.role in ("result", "item") or nameless
        if last is not None and last.role == turn.role and joined:
            last.calls += turn.calls
            last.results += turn.results
            last.texts += turn.texts
            last.thinking += turn.thinking
            last.signed += turn.signed
        else:
            turns.append(turn)
    return turns


def _turn(item: Any, number: int) -> Turn:
    kind = item.get("type")
    if kind == "function_call":
        return Turn("item", calls=[item["call_id"]])
    if kind == "function_call_output":
        return Turn("result", results=[item["call_id"]], texts=[item["output"]])
    if kind == "reasoning":
        return Turn("item", thinking=["reasoning"], signed=1)
    if item["role"] == "tool":
        return Turn("result", results=[item.get("tool_call_id", "")], texts=[item["content"]])
    turn = Turn({"model": "assistant"}.get(item["role"], item["role"]))
    if item.get("reasoning_content"):
        turn.thinking.append(item["reasoning_content"])
    for call in item.get("tool_calls") or ():
        turn.calls.append(call.get("id", ""))
    for part in _parts(item):
        _read_part(turn, part)
    if turn.results:
        turn.role = "result"
    return turn


def _parts(item: Any) -> Iterator[dict[str, Any]]:
    content = item.get("parts", item.get("content"))
    if isinstance(content, str):
        if content or not item.get("tool_calls"):  # Ollama says "" beside calls
            yield {"text": content}
    elif content is not None:
        yield from content


def _read_part(turn: Turn, part: dict[str, Any]) -> None:
    if part.get("thought") or part.get("type") in ("thinking", "redacted_thinking"):
        turn.thinking.append(part.get("text") or part.get("thinking") or "redacted")
        turn.signed += bool(part.get("signature") or part.get("data"))
    elif part.get("type") == "tool_use":
        turn.calls.append(part["id"])
    elif part.get("type") == "tool_result":
        turn.results.append(part["tool_use_id"])
        turn.texts += [block["text"] for block in part["content"]]
    elif "function_call" in part:
        turn.calls.append(part["function_call"]["id"])
    elif "function_response" in part:
        turn.results.append(part["function_response"]["id"])
        turn.texts.append(part["function_response"]["response"]["output"])
    elif "text" in part:
        turn.texts.append(part["text"])


def faults(turns: Sequence[Turn]) -> list[str]:
    """Return every broken provider rule."""
    found: list[str] = []
    for n, turn in enumerate(turns):
        following = turns[n + 1] if n + 1 < len(turns) else Turn("end")
        before = turns[n - 1] if n else Turn("start")
        if turn.calls and sorted(turn.calls) != sorted(following.results):
            found.append(f"turn {n}: calls {turn.calls}, but then results {following.results}")
        if turn.results and sorted(before.calls) != sorted(turn.results):
            found.append(f"turn {n}: results {turn.results} follow calls {before.calls}")
        if any(not text for text in turn.texts):
            found.append(f"turn {n}: empty text")
        if turn.thinking and not (turn.texts or turn.calls) and following.role != "assistant":
            found.append(f"turn {n}: only thinking")
        if turn.signed > 1:
            found.append(f"turn {n}: thinking of {turn.signed} turns fused")
    return found


def _plain(b: HistoryBuilder) -> None:
    for n in range(3):
        b.say(f"I look at {n}.").call("look", {"page": n}, f"out {n} " * 400, f"p{n}")
    b.say("That is all.")


def _parallel(b: HistoryBuilder) -> None:
    for n in range(3):
        b.start("look", {"page": n}, f"q{n}")
    for n in (2, 0, 1):
        b.finish("look", f"parallel {n} " * 400, f"q{n}")
    b.say("All three at once.")


def _blocks(b: HistoryBuilder) -> None:
    parts = [b.text_block("part one " * 200), b.text_block("part two " * 200)]
    b.call("look", {"page": 7}, parts, "l1").call("look", {"page": 8}, "tail " * 300, "l2")
    b.say("Read in parts.")


def _thinking(b: HistoryBuilder) -> None:
    for n in range(3):
        b.think(f"thought {n}").call("look", {"page": n}, f"thoughtful {n} " * 300, f"k{n}")
    b.say("Thought through.")


def _thinking_last(b: HistoryBuilder) -> None:
    b.say("Look.").call("look", {"page": 1}, "first " * 300, "e1")
    b.think("and again").call("look", {"page": 2}, "second " * 300, "e2")


def _hinted(b: HistoryBuilder) -> None:
    b.think("hm").call("look", {"page": 1}, "hinted " * 300, "h1")
    hint = {"type": "hint", "hint": "mind the time", "id": "hint-1", "source": "runtime"}
    b.add({**hint, "created_at": "2025-01-01T00:00:00", "finished_at": None}).say("I mind.")


def _signed(b: HistoryBuilder) -> None:
    for n in range(3):
        b.think(f"signed {n}", signature=f"sig{n}")
        b.call("look", {"page": n}, f"signed output {n} " * 300, f"s{n}")
    b.say("Signed.")


def _reasoning(b: HistoryBuilder) -> None:
    b.think("reasoned", reasoning_item_id="rs_1")
    b.call("look", {"page": 1}, "reasoned output " * 300, "r1").say("Reasoned.")


def _gemini(b: HistoryBuilder) -> None:
    signed = "gemini_ts:" + "QUJD" * 300 + "Pz8/"
    b.call("look", {"page": 1}, "gemini output " * 300, signed)
    b.call("look", {"page": 2}, "unsigned output " * 300, "g2").say("Gemini.")


def _errors(b: HistoryBuilder) -> None:
    for n in range(3):
        b.start("look", {"page": 99}, f"f{n}").finish("look", "no such page", f"f{n}", "error")
    b.call("look", {"page": 1}, "after errors " * 300, "f9").say("Failed thrice.")


REPLIES = {
    function.__name__.strip("_"): function
    for function in (
        _plain,
        _parallel,
        _blocks,
        _thinking,
        _thinking_last,
        _hinted,
        _signed,
        _reasoning,
        _gemini,
        _errors,
    )
}
ANSWERS = {
    "cut": {"call": 0.9, "result": 0.0},
    "remove": {"call": 0.0, "result": 0.0},
    "mixed": {"call": 0.0, "result": 0.0, "call_t1": 0.9, "call_t5": 0.9, "result_t2": 0.9},
}


async def _formatted(name: str, messages: Sequence[Msg]) -> list[Any]:
    if name.startswith("XAI"):
        pytest.importorskip("xai_sdk", reason="the xAI formatter needs xAI's own package")
    formatted: list[Any] = await getattr(agentscope.formatter, name)().format(list(messages))
    return formatted


@pytest.mark.parametrize("answers", ANSWERS)
@pytest.mark.parametrize("reply", REPLIES)
async def test_accepted_contexts_keep_the_providers_rules(
    lab: Any, reply: str, answers: str
) -> None:
    """After every kind of acceptance each formatter's output breaks no rule it did not before."""
    from agentscope_compaction.testing import ScriptedDecisionModel

    built = HistoryBuilder().user("Look at the pages.")
    for name in ("plain", reply, "parallel") if reply != "parallel" else ("plain", reply):
        REPLIES[name](built.reply())
        built.user(f"And now, after {name}?")
    built.say("Nothing more.")
    state = AgentState(context=[Msg.model_validate(m) for m in built.messages])
    compactor = lab.compactor(ScriptedDecisionModel(ANSWERS[answers]), preserve_recent_calls=0)
    agent = lab.agent([], cls=with_compaction(compactor)(Agent), state=state)
    original = list(agent.state.context)
    proposal = await agent.propose_compaction(goal="answer")
    assert await agent.accept_compaction(proposal)
    for name in FORMATTERS:
        if name.startswith("XAI"):
            continue
        before = faults(turns_of(await _formatted(name, original)))
        after = faults(turns_of(await _formatted(name, agent.state.context)))
        assert before == [], name
        assert after == [], name
        proposed = [Msg.model_validate(message) for message in proposal.messages]
        assert faults(turns_of(await _formatted(name, proposed))) == [], name


@pytest.mark.parametrize("name", FORMATTERS)
async def test_the_checker_sees_what_breaks_providers(name: str) -> None:
    """Half-removed pairs and emptied texts are found in every formatter's output."""
    built = HistoryBuilder().user("Look.").call("look", {"page": 1}, "output", "a").say("Seen.")
    messages = [Msg.model_validate(message) for message in built.messages]
    assert faults(turns_of(await _formatted(name, messages))) == []
    for half in (0, 1):
        broken = [message.model_copy(deep=True) for message in messages]
        del broken[1].content[half]
        assert faults(turns_of(await _formatted(name, broken))), half
