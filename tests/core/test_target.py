"""Targets, signals and profiles: how far a proposal goes with the answers it got."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from agentscope_compaction import (
    CompactionProposal,
    ConfigurationError,
    DecisionReason,
    Thresholds,
    compact_context,
)
from agentscope_compaction.testing import HistoryBuilder, ScriptedDecisionModel, check_proposal

pytestmark = pytest.mark.anyio

R = DecisionReason


class Count:
    """A token counter that is a quarter of the JSON, and counts how often it is asked."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, messages: list[dict[str, Any]]) -> int:
        """Return the count."""
        self.calls += 1
        return len(json.dumps(messages)) // 4


def history(*sizes: int) -> HistoryBuilder:
    """One reply with an output of each size, then a user message."""
    builder = HistoryBuilder().user("task")
    for n, size in enumerate(sizes):
        builder.call("A", {"n": n}, "x" * size, f"c{n}")
    return builder.user("go on")


async def propose(
    builder: HistoryBuilder, answers: Any, count: Any = None, **options: Any
) -> CompactionProposal:
    """Propose with scripted answers, one protected message at the end."""
    request = builder.request(**{"preserve_recent_messages": 1, **options})
    model = ScriptedDecisionModel(answers)
    proposal = await compact_context(request, model, token_counter=count)
    check_proposal(builder.messages, proposal)
    return proposal


async def test_within_target_asks_nothing() -> None:
    """A history that fits already is not judged, and every candidate says so."""
    builder = history(4_000, 4_000)
    model = ScriptedDecisionModel(0.0)
    options: dict[str, Any] = {
        "preserve_recent_messages": 1,
        "target_tokens": 10**6,
        "dedupe": True,
    }
    proposal = await compact_context(builder.request(**options), model)
    assert (proposal.reason, proposal.changed, model.requests) == ("within_target", False, [])
    assert {d.reason for d in proposal.decisions} == {R.WITHIN_TARGET}
    assert proposal.stats["candidates"] == 2
    assert {d.keep_call for d in proposal.decisions} == {None}


async def test_within_target_without_candidates() -> None:
    """Where nothing could be asked anyway, that is the reason."""
    builder = history(10)
    request = builder.request(tools=[], target_tokens=10**6)
    proposal = await compact_context(request, ScriptedDecisionModel())
    assert proposal.reason == "no_candidates"


async def test_least_loss_per_freed_character_goes_first() -> None:
    """Pairs go in order of the result's probability over the characters freed, then stop."""
    builder = history(8_000, 2_000, 8_000, 8_000)
    answers = {"result_t1": 0.4, "result_t2": 0.07, "result_t3": 0.3, "result_t4": 0.2, "call": 1.0}
    order: list[str] = []
    for target in range(6_500, 0, -250):
        proposal = await propose(builder, answers, Count(), target_tokens=target)
        acted = {d.id for d in proposal.decisions if d.reason == R.RESULT_NOT_NEEDED}
        spared = {d.id for d in proposal.decisions if d.reason == R.WITHIN_TARGET}
        assert len(acted | spared) == 4
        if len(acted) > len(order):
            order += sorted(acted - set(order))
        if spared and proposal.changed:
            assert proposal.stats["tokens_after"] <= target
    assert order == ["t4", "t3", "t2", "t1"]


async def test_the_newest_goes_first_among_equals() -> None:
    """Equal pairs go from the end of the history, so the prompt cache keeps the longest prefix."""
    builder = history(*[4_000] * 6)
    answers = {"result": 0.1, "call": 1.0}
    changed: list[int] = []
    for share in (1, 2, 3):
        count = Count()
        target = count(builder.messages) - 800 * share
        proposal = await propose(builder, answers, count, target_tokens=target)
        acted = [d.id for d in proposal.decisions if d.action != "keep"]
        assert acted == [f"t{n}" for n in range(7 - len(acted), 7)]
        changed.append(len(acted))
    assert changed == [1, 2, 3]


async def test_stops_as_soon_as_the_history_fits() -> None:
    """One pair less would not fit: the released pairs beyond the target stay."""
    builder = history(*[4_000] * 10)
    count = Count()
    full = count(builder.messages)
    proposal = await propose(
        builder, {"result": 0.1, "call": 1.0}, count, target_tokens=full - 2_500
    )
    acted = [d for d in proposal.decisions if d.reason == R.RESULT_NOT_NEEDED]
    freed = sum(d.chars_before - d.chars_after for d in acted) / 4
    assert len(acted) == 3 and freed >= 2_500 > freed - 930
    assert proposal.reason == "compacted"
    assert all(d.keep_result == 0.1 for d in proposal.decisions)


async def test_target_out_of_reach_acts_on_all() -> None:
    """A target that cannot be met releases what the thresholds release, no more."""
    builder = history(4_000, 4_000, 4_000)
    answers = {"result_t2": 0.9, "result": 0.1, "call": 1.0}
    proposal = await propose(builder, answers, Count(), target_tokens=1)
    assert [d.reason for d in proposal.decisions] == [
        R.RESULT_NOT_NEEDED,
        R.RESULT_NEEDED,
        R.RESULT_NOT_NEEDED,
    ]


async def test_pure_ranking() -> None:
    """With ``keep_threshold=1`` everything short of certainty is ranked by loss."""
    builder = history(*[4_000] * 6)
    answers = {f"result_t{n}": 0.9 - n / 10 for n in range(1, 7)}
    count = Count()
    target = count(builder.messages) - 1_500
    proposal = await propose(builder, answers, count, keep_threshold=1, target_tokens=target)
    acted = [d.id for d in proposal.decisions if d.action != "keep"]
    assert acted == ["t5", "t6"]


async def test_few_counter_calls() -> None:
    """Finding where to stop among hundreds of pairs takes about log2 counts, not hundreds."""
    builder, count = history(*[1_000] * 300), Count()
    await propose(builder, 0.1, count, target_tokens=20_000)
    assert count.calls <= 2 + math.ceil(math.log2(300)) + 1


async def test_duplicates_go_first() -> None:
    """A repetition loses nothing, so it goes before any judged pair."""
    builder = HistoryBuilder().user("task").call("A", {"n": 1}, "y" * 9_000)
    builder.call("A", {}, "x" * 2_000).call("A", {}, "x" * 2_000).user("go on")
    count = Count()
    target = count(builder.messages) - 300
    proposal = await propose(builder, 0.1, count, target_tokens=target, dedupe=True)
    assert [d.reason for d in proposal.decisions] == [R.WITHIN_TARGET, R.DUPLICATE, R.WITHIN_TARGET]


@pytest.mark.parametrize("value", [True, -1, 1.5, "3", None])
async def test_bad_counters(value: Any) -> None:
    """A counter that returns no count, or fails, is a configuration error."""
    with pytest.raises(ConfigurationError, match="token_counter"):
        await propose(history(10), 0.0, lambda messages: value)
    with pytest.raises(ConfigurationError, match="ZeroDivisionError"):
        await propose(history(10), 0.0, lambda messages: 1 // 0)


@pytest.mark.parametrize(
    ("results", "silent"),
    [
        ([0.15, 0.16, 0.14, 0.15], True),
        ([0.14, 0.16, 0.15, 0.16], True),
        ([0.14, 0.161, 0.15, 0.15], False),
        ([0.15, 0.15, 0.15], False),
        ([0.49, 0.50, 0.49, 0.49], False),
        ([0.0, 0.0, 0.0, 0.0], True),
    ],
)
async def test_require_signal(results: list[float], silent: bool) -> None:
    """Four or more answers within 0.02 of each other, all below the threshold, are no signal."""
    builder = history(*[1_000] * len(results))
    answers = {f"result_t{n}": value for n, value in enumerate(results, start=1)}
    proposal = await propose(builder, {**answers, "call": 0.3}, require_signal=True)
    assert (proposal.reason == "no_signal") is silent
    if silent:
        assert {d.reason for d in proposal.decisions} == {R.NO_SIGNAL}
        assert [d.keep_result for d in proposal.decisions] == results
    else:
        assert proposal.changed
    assert (await propose(builder, {**answers, "call": 0.3})).changed


async def test_a_constant_model_need_not_drop_everything() -> None:
    """A model that says 0.14 to 0.17 throughout drops nothing at its own low threshold."""
    builder = history(*[1_000] * 20)
    answers = {"result": 0.15, "call": 0.3}
    assert not (await propose(builder, answers, keep_threshold=None)).changed


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (0.5, 0.5)),
        ({"keep_threshold": None}, (0.3, 0.7)),
        ({"keep_threshold": None, "keep_call_threshold": 0.9}, (0.9, 0.7)),
        ({"keep_threshold": 0.2, "keep_result_threshold": 0}, (0.2, 0.0)),
        ({"keep_call_threshold": 0.0, "keep_result_threshold": 1}, (0.0, 1.0)),
    ],
)
@pytest.mark.parametrize("profile", [Thresholds(0.3, 0.7), {"call": 0.3, "result": 0.7}])
async def test_thresholds(options: Any, expected: tuple[float, float], profile: Any) -> None:
    """Per question, else shared, else the model's own profile (named tuple or mapping)."""
    model = ScriptedDecisionModel(0.6)
    model.thresholds = profile  # type: ignore[attr-defined]
    request = history(1_000).request(preserve_recent_messages=1, **options)
    proposal = await compact_context(request, model)
    assert tuple(proposal.stats["thresholds"].values()) == expected
    assert (proposal.decisions[0].action == "keep") is (expected[1] <= 0.6)


async def test_no_profile_is_one_tenth() -> None:
    """A model without a profile is held against 0.1 and 0.1."""
    proposal = await propose(history(1_000), 0.1, keep_threshold=None)
    assert proposal.stats["thresholds"] == {"call": 0.1, "result": 0.1}
    assert proposal.decisions[0].action == "keep"


@pytest.mark.parametrize(
    "profile",
    [
        *(3, "ab", [0.1, 0.2], (0.1,), {"call": 0.1}, {"call": 0.1, "result": 1.1}),
        *((True, 0.1), (math.nan, 0.1), ("0.1", 0.1), {"call": 0.1, "result": None}),
    ],
    ids=repr,
)
async def test_bad_profiles(profile: Any) -> None:
    """An unusable profile is a configuration error, found before a request is spent."""
    model = ScriptedDecisionModel(0.6)
    model.thresholds = profile  # type: ignore[attr-defined]
    request = history(1_000).request(preserve_recent_messages=1, keep_threshold=None)
    with pytest.raises(ConfigurationError, match="profile"):
        await compact_context(request, model)
    assert model.requests == []
