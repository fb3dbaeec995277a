"""Cuts of a history, and its strings labelled by later use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentscope_compaction.calibration.cuts import choose_cuts
from agentscope_compaction.calibration.uses import find_uses, holds
from agentscope_compaction.testing import HistoryBuilder

SENTENCE = "The quick service writes every ledger entry twice before it answers"


def reading(count: int) -> HistoryBuilder:
    """A reply that reads files."""
    builder = HistoryBuilder().user("Find the fault").reply()
    for number in range(count):
        builder.call("Read", {"n": number}, f"page {number}")
    return builder


def test_a_user_message_nearby_is_preferred() -> None:
    """A cut moves up to a tenth of the calls to stand right after a user message."""
    builder = reading(5).user("Now fix it").reply()
    for number in range(5):
        builder.call("Edit", {"n": number}, "done")
    (cut,) = choose_cuts(builder.messages, [0.45])
    assert cut.goal == "Now fix it"
    assert cut.share == 0.5
    assert cut.future[0]["role"] == "assistant"


def test_parallel_calls_are_not_torn_apart() -> None:
    """A cut waits until every call made so far has its result."""
    builder = HistoryBuilder().user("Go").start("A", {}, "1").start("A", {}, "2")
    builder.finish("A", "x", "1").finish("A", "y", "2").call("A", {}, "z").say("Done")
    (cut,) = choose_cuts(builder.messages, [0.3])
    assert [block["id"] for block in cut.past[1]["content"]] == ["1", "2", "1", "2"]


@pytest.mark.parametrize("count", [0, 1])
def test_a_history_too_short_has_no_cut(count: int) -> None:
    """Without a call on both sides there is nothing to ask about."""
    assert choose_cuts(reading(count).messages, [0.3, 0.7]) == []


@given(st.integers(2, 30), st.lists(st.floats(0.01, 0.99), min_size=1, max_size=4))
def test_both_parts_are_the_history(count: int, shares: list[float]) -> None:
    """Past and future hold every block once and in order, and shares rise."""
    messages = reading(count).messages
    whole = [block for message in messages for block in message["content"]]
    cuts = choose_cuts(messages, shares)
    for cut in cuts:
        parts = [*cut.past, *cut.future]
        assert [block for message in parts for block in message["content"]] == whole
    assert [cut.share for cut in cuts] == sorted({cut.share for cut in cuts})


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org/runs/81",
        "/srv/app/retry.py",
        "3f9c2ab41d",
        "pod-7c9f12",
        "9297321",
        SENTENCE,
    ],
)
def test_a_strong_string_used_later_is_found(text: str) -> None:
    """Whatever could only have been read in an output is labelled with its output."""
    past = HistoryBuilder().user("Go").call("Read", {}, f"seen: {text}\nnothing else").messages
    future = HistoryBuilder().reply().say(f"It was {text}").messages
    uses = find_uses(past, future)
    assert [use.text for use in uses] == [text]
    assert uses[0].only_outputs
    assert uses[0].holders[0].spot == (1, 1)
    assert holds(f"kept: {text}", uses[0])
    assert not holds("", uses[0])


@pytest.mark.parametrize("where", ["user", "text", "new output", "never"])
def test_what_is_visible_elsewhere_is_no_loss(where: str) -> None:
    """A string that user or assistant wrote, or a later output showed again, is not counted."""
    name = "/srv/app/retry.py"
    builder = HistoryBuilder().user(name if where == "user" else "Go").call("Read", {}, name)
    past = builder.say(name if where == "text" else "Well").messages
    later = HistoryBuilder().reply()
    if where == "new output":
        later.call("Read", {}, name)
    future = later.say("ok" if where == "never" else f"see {name}").messages
    assert find_uses(past, future) == []


def test_a_string_in_an_input_too_is_told_apart() -> None:
    """A tool input that holds the string is a holder of its own kind."""
    past = HistoryBuilder().user("Go").call("Read", {"path": "/srv/a/b.py"}, "/srv/a/b.py").messages
    (use,) = find_uses(past, HistoryBuilder().reply().say("/srv/a/b.py").messages)
    assert not use.only_outputs
    assert [holder.is_input for holder in use.holders] == [True, False]


def test_a_part_of_a_longer_name_is_not_the_name() -> None:
    """Names match as whole words."""
    past = HistoryBuilder().user("Go").call("Read", {}, "id 9297321").messages
    (use,) = find_uses(past, HistoryBuilder().reply().say("id 9297321").messages)
    assert not holds("id 92973210", use)


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_can_be_labelled(old: str, new: str) -> None:
    """Whatever is labelled as used stands in both texts, once."""
    past = HistoryBuilder().user("Go").call("Read", {}, old).messages
    uses = find_uses(past, HistoryBuilder().reply().say(new).messages)
    assert all(holds(old, use) and holds(new, use) for use in uses)
    assert len({use.text for use in uses}) == len(uses)
