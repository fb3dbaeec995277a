"""What is left of an omitted output: its ends, a note, facts, and nothing invented."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentscope_compaction import CallDecision, compact_context
from agentscope_compaction.testing import HistoryBuilder, ScriptedDecisionModel, check_proposal

pytestmark = pytest.mark.anyio

LONG = "".join(f"line {n}: plain words\n" for n in range(200))


async def cut(
    output: Any, refs: dict[str, str] | None = None, call_id: str = "c", **options: Any
) -> tuple[Any, CallDecision]:
    """Cut one output; the new output and its decision."""
    builder = HistoryBuilder().user("task").call("A", {}, output, call_id).user("go on")
    request = builder.request(**{"preserve_recent_messages": 1, **options})
    request["source_refs"] = refs or {}
    model = ScriptedDecisionModel({"call": 1.0, "result": 0.0})
    proposal = await compact_context(request, model)
    check_proposal(builder.messages, proposal)
    return proposal.messages[1]["content"][1]["output"], proposal.decisions[0]


async def test_prefix_and_note() -> None:
    """The stub starts with the prefix and says how much is missing and where the original is."""
    text, decision = await cut(LONG, {"c": "ref-7"})
    assert text.startswith(LONG[:300] + "\n[[compacted: ")
    assert f"{len(LONG) - 300} of {len(LONG)} characters" in text
    assert '"ref-7"' in text and '"c"' in text
    assert (decision.chars_before, decision.chars_after) == (len(LONG), len(text))
    assert (decision.action, decision.applied) == ("drop_result", True)


async def test_the_note_without_an_archive() -> None:
    """Without a reference the note points to the uncompacted history, and gives no orders."""
    text, _ = await cut(LONG, truncate_head_chars=0)
    assert text == (
        f"[[compacted: {len(LONG)} of {len(LONG)} characters of this successful output omitted; "
        'original in the uncompacted history, call "c"]]'
    )


@pytest.mark.parametrize(("head", "tail"), [(0, 0), (0, 50), (50, 0), (50, 50), (1, 1)])
async def test_head_and_tail(head: int, tail: int) -> None:
    """Both ends are kept to the character, joined by the note on its own line."""
    text, _ = await cut(LONG, truncate_head_chars=head, truncate_tail_chars=tail)
    before, after = text.partition("[[compacted: ")[0], text.rpartition("]]")[2]
    assert before == (LONG[:head] + "\n" if head else "")
    assert after == ("\n" + LONG[-tail:] if tail else "")
    assert f"{len(LONG) - head - tail} of" in text


@pytest.mark.parametrize("output", ["", "short", "x" * 120, "x" * 400])
async def test_only_if_shorter(output: str) -> None:
    """An output that its stub would not shorten stays, and the decision says so."""
    text, decision = await cut(output)
    assert text == output
    assert (decision.action, decision.applied) == ("drop_result", False)
    assert decision.chars_before == decision.chars_after == len(output)


async def test_a_stub_never_makes_the_history_grow() -> None:
    """Around the break-even length the history never grows, as text or as JSON."""
    for size in range(100, 140):
        text, decision = await cut("x" * size, truncate_head_chars=0)
        assert len(json.dumps(text)) <= size + 2
        assert decision.applied == (len(text) < size)


async def test_lists_stay_lists() -> None:
    """The first text block keeps its id and other fields and carries the stub; the others go."""
    blocks = [{"type": "text", "text": LONG, "id": f"b{n}", "odd": [n]} for n in range(3)]
    output, decision = await cut(blocks)
    assert isinstance(output, list) and len(output) == 1
    assert {**output[0], "text": ""} == {**blocks[0], "text": ""}
    assert decision.chars_before == 3 * len(LONG) + 2
    assert output[0]["text"].startswith(LONG[:300])


@pytest.mark.parametrize(
    "text",
    ["\U0001f468\u200d\U0001f469\u200d\U0001f467" * 500, "\ud83d\ude00" * 500, "\ud83d" * 900],
    ids=["emoji", "surrogate pairs", "lone surrogates"],
)
async def test_cuts_through_characters(text: str) -> None:
    """No cut parts a surrogate pair, whatever the sizes; the kept parts are the output's own."""
    for head, tail in ((1, 1), (2, 2), (3, 5), (7, 4)):
        stub, _ = await cut(text, truncate_head_chars=head, truncate_tail_chars=tail)
        start = stub.partition("[[compacted: ")[0].removesuffix("\n")
        end = stub.rpartition("]]")[2].removeprefix("\n")
        assert text.startswith(start) and text.endswith(end)
        if text.startswith("\ud83d\ude00"):
            start.encode("utf-16", "surrogatepass").decode("utf-16")
            end.encode("utf-16", "surrogatepass").decode("utf-16")


async def test_control_characters_survive() -> None:
    """NUL, ANSI codes, CRLF and decomposed letters are kept byte for byte."""
    text = "a\x00b\x1b[31m\r\ne\u0301 " + "x" * 2_000
    stub, _ = await cut(text, truncate_head_chars=12)
    assert stub.startswith(text[:12])


async def test_huge_ids_get_a_short_name() -> None:
    """A call id of thousands of characters is named by its digest."""
    stub, decision = await cut(LONG, call_id="i" * 5_000, truncate_head_chars=0)
    assert '"sha256:' in stub and len(stub) < 200
    assert decision.call_id == "i" * 5_000


async def test_hostile_ids_are_quoted() -> None:
    """Line breaks and quotes in an id or a reference cannot break out of the note's line."""
    stub, _ = await cut(LONG, {'c"\n]]': 'r"\n]]'}, call_id='c"\n]]', truncate_head_chars=0)
    assert "\n" not in stub and "\\n" in stub


async def test_facts_are_kept_within_their_share() -> None:
    """Facts are verbatim, from the omitted part only, and within ratio and cap."""
    text = LONG + "see /srv/app/main.py and OPS-48213\nError: disk full on node-7c9f1\n" + LONG
    plain, _ = await cut(text)
    rich, _ = await cut(text, facts_ratio=0.2)
    capped, _ = await cut(text, facts_ratio=1.0, facts_max_chars=20)
    assert "OPS-48213" not in plain and "node-7c9f1" in rich
    assert len(rich) - len(plain) <= 0.2 * len(text)
    assert 0 < len(capped) - len(plain) <= 21
    facts = rich.rpartition("]]\n")[2].split("\n")
    assert all(fact in text for fact in facts)
    assert await cut(text, facts_max_chars=0, facts_ratio=0.2) == await cut(text)


async def test_stubs_are_deterministic() -> None:
    """The same output gives the same stub, so provider prompt caches stay valid."""
    options: dict[str, Any] = {"facts_ratio": 0.3, "truncate_tail_chars": 40}
    assert await cut(LONG, **options) == await cut(LONG, **options)


async def test_five_megabytes() -> None:
    """A huge output is cut like any other."""
    text, _ = await cut("0123456789abcdef " * 300_000, facts_ratio=0.2, dedupe=True)
    assert len(text) < 6_000


@pytest.mark.parametrize(("minimum", "changed"), [(0, True), (1_000, True), (10**6, False)])
async def test_min_saved_chars(minimum: int, changed: bool) -> None:
    """A proposal that frees too little changes nothing and shows its probabilities."""
    builder = HistoryBuilder().user("task").call("A", {}, LONG).call("A", {}, LONG + "!")
    request = builder.request(preserve_recent_messages=0, min_saved_chars=minimum)
    model = ScriptedDecisionModel({"result_t1": 0.9, "result": 0.0, "call": 1.0})
    builder.user("go on")
    proposal = await compact_context(request, model)
    check_proposal(builder.messages, proposal)
    assert proposal.changed is changed
    if not changed:
        assert proposal.reason == "below_minimum" and proposal.messages == builder.messages
        assert {d.reason for d in proposal.decisions} == {"below_minimum"}
        assert [d.keep_result for d in proposal.decisions] == [0.9, 0.0]


async def test_min_saved_is_exact() -> None:
    """The limit is the number of characters the history gets shorter, to the character."""
    builder = HistoryBuilder().user("task").call("A", {}, LONG).user("go on")
    options: dict[str, Any] = {"preserve_recent_messages": 1}
    model = ScriptedDecisionModel(0.0)
    stats = (await compact_context(builder.request(**options), model)).stats
    freed = stats["chars_before"] - stats["chars_after"]
    for minimum, changed in ((freed, True), (freed + 1, False)):
        request = builder.request(**options, min_saved_chars=minimum)
        assert (await compact_context(request, model)).changed is changed
