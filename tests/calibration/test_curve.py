"""Thresholds from judged cuts: what they free, what they lose, and what is suggested."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agentscope_compaction.calibration.curve import curve, suggest, warnings_about
from agentscope_compaction.calibration.judged import JudgedCall, JudgedCut, Need, outcome
from agentscope_compaction.core.decisions import Answer
from agentscope_compaction.core.types import Thresholds

SHARES = st.floats(0, 1).map(lambda value: round(value, 3))


def call(result: float, keep_call: float = 0.9, removable: bool = True) -> JudgedCall:
    """A call whose cut frees 80 characters and whose removal frees 100."""
    return JudgedCall(Answer(keep_call, result), 80, 100 if removable else 80, removable)


def cut(name: str, results: list[float], needed: list[int]) -> JudgedCut:
    """A cut whose needed calls are the only holders of one string each."""
    needs = tuple(Need(((number, False),), True) for number in needed)
    return JudgedCut(name, "m", 1_000, tuple(map(call, results)), needs)


def test_a_good_model_frees_all_that_is_not_needed() -> None:
    """Where answers separate needed from unneeded, the threshold falls between them."""
    cuts = [cut(f"h{n}", [0.1, 0.2, 0.8, 0.9], [2, 3]) for n in range(4)]
    found = suggest(cuts, 0.0)
    assert 0.2 < found.thresholds.result <= 0.8
    assert (found.loss, found.held_out) == (0.0, 0.0)
    assert found.saved == 0.16


def test_without_any_string_everything_is_kept() -> None:
    """No evidence of use is no evidence that cutting is safe."""
    assert suggest([cut("a", [0.1, 0.2], [])], 0.05).thresholds == Thresholds(0.0, 0.0)


def test_removal_is_held_to_the_same_loss() -> None:
    """A string that inputs hold too survives a cut, and is lost with its call."""
    both = Need(((0, True),), False)
    outputs = Need(((1, False),), True)
    calls = (call(0.1, keep_call=0.2), call(0.9))
    judged = JudgedCut("a", "m", 1_000, calls, (both, outputs))
    kept = outcome(judged, Thresholds(0.0, 0.5))
    removed = outcome(judged, Thresholds(0.5, 0.5))
    assert (kept.freed, kept.all_lost) == (80, 0)
    assert (removed.freed, removed.lost, removed.all_lost) == (100, 0, 1)
    assert suggest([judged], 0.0).thresholds.call <= 0.2


def test_an_unremovable_call_is_cut_instead() -> None:
    """Where removal is unsafe the call's output is cut, as a proposal would."""
    judged = JudgedCut("a", "m", 1_000, (call(0.1, 0.1, removable=False),), ())
    assert outcome(judged, Thresholds(0.5, 0.5)).freed == 80


def test_one_holder_left_is_enough() -> None:
    """A string is lost when its last holder goes, and never when something uncut holds it."""
    calls = (call(0.1), call(0.9))
    needs = (Need(((0, False), (1, False)), True), Need(((0, False), (-1, True)), True))
    assert outcome(JudgedCut("a", "m", 1_000, calls, needs), Thresholds(0.0, 0.5)).lost == 0


@settings(deadline=None)
@given(st.lists(st.tuples(SHARES, SHARES, st.booleans()), min_size=1, max_size=20), SHARES)
def test_the_suggestion_keeps_its_bound(
    calls: list[tuple[float, float, bool]], loss: float
) -> None:
    """Measured loss never exceeds the wanted one, and loss and savings rise along the curve."""
    needs = tuple(Need(((n, False),), True) for n, (_, _, needed) in enumerate(calls) if needed)
    judged = [JudgedCut("a", "m", 9_999, tuple(call(r, c) for r, c, _ in calls), needs)]
    found = suggest(judged, loss)
    assert found.loss <= loss
    points = curve(judged)
    assert [p.loss for p in points] == sorted(p.loss for p in points)
    assert [p.saved for p in points] == sorted(p.saved for p in points)
    assert points[0].saved == 0
    assert all(p.interval[0] <= p.interval[1] for p in points)


def test_the_same_seed_gives_the_same_interval() -> None:
    """Nothing depends on the run."""
    cuts = [cut(f"h{n}", [0.1, 0.5, 0.7], [n % 3]) for n in range(5)]
    assert curve(cuts, seed=3) == curve(cuts, seed=3)
    assert suggest(cuts, 0.3) == suggest(cuts, 0.3)


def test_too_few_data_are_named() -> None:
    """Few histories, strings, calls and distinct answers each get a sentence."""
    cuts = [cut("a", [0.5, 0.5], [0])]
    text = " ".join(warnings_about(cuts, suggest(cuts, 0.05), 0.05))
    for word in ("1 histories", "1 later-used strings", "2 judged calls", "distinct answers"):
        assert word in text
