from __future__ import annotations

import json
from typing import Any

import pytest

from agentscope_compaction.core.options import CompactionOptions
from benchmarks.kit.curves import at, auc, blank, curve, stubs
from benchmarks.kit.histories import Requirement, Sample, holds, load, shared_folder
from benchmarks.kit.picture import line_chart


def sample(outputs: list[str], requirements: list[Requirement]) -> Sample:
    """A sample of plain outputs."""
    keys = [f"t{n}" for n in range(len(outputs))]
    blocks: list[dict[str, Any]] = [
        {"type": "tool_result", "id": k, "output": o} for k, o in zip(keys, outputs, strict=True)
    ]
    return Sample(
        name="x",
        cut="cut70",
        shape="merged",
        messages=[{"role": "assistant", "content": blocks}],
        goal="go",
        call_ids=keys,
        outputs=outputs,
        tools=["Read"] * len(outputs),
        requirements=requirements,
        needed=[False] * len(outputs),
        input_needed=[False] * len(outputs),
        state={"calls": {k: {"state": "success"} for k in keys}},
        keys=keys,
    )


TWO_COPIES = sample(
    ["a" * 500 + " OPS-48213", "b" * 490, "OPS-48213 " + "c" * 490],
    [Requirement("OPS-48213", False, (0, 2))],
)


def test_a_string_is_lost_with_its_last_copy() -> None:
    """Losing one of two copies loses nothing; losing both loses the string."""
    points = curve(TWO_COPIES, blank(TWO_COPIES), [0, 1, 2])
    assert [lost for _, lost in points] == [0, 0, 0, 1]
    assert points[-1][0] > 0.9


def test_a_stub_that_names_the_string_loses_nothing() -> None:
    """What stays in the stub's head is not lost."""
    masks = stubs(TWO_COPIES, CompactionOptions(truncate_head_chars=20))
    assert curve(TWO_COPIES, masks, [0, 1, 2])[-1][1] == 0


def test_between_points_is_linear_and_beyond_the_last_is_unknown() -> None:
    """A curve says nothing about savings it never reaches."""
    points = [(0.0, 0.0), (0.2, 0.0), (0.4, 2.0)]
    assert at(points, 0.3) == pytest.approx(1.0)
    assert at(points, 0.5) is None


def test_auc() -> None:
    """Perfect, reversed and tied scores; undefined with one class only."""
    assert auc([1, 2, 3], [False, False, True]) == 1
    assert auc([3, 2, 1], [False, False, True]) == 0
    assert auc([1, 1], [False, True]) == 0.5
    assert auc([1, 1], [True, True]) is None


def test_a_token_is_a_whole_word() -> None:
    """A token inside a longer word is not that token; a verbatim run may be anywhere."""
    assert not holds("OPS-482139", Requirement("OPS-48213", False, ()))
    assert holds("OPS-482139", Requirement("OPS-48213", True, ()))
    assert holds("(OPS-48213)", Requirement("OPS-48213", False, ()))


def test_the_picture_is_xml() -> None:
    """The chart parses, with names escaped."""
    from xml.etree import ElementTree

    drawing = line_chart("a < b", ("x", "y"), {"p & q": [(0, 0), (0.5, 0.4)]})
    assert ElementTree.fromstring(drawing) is not None


@pytest.mark.skipif(not shared_folder().is_dir(), reason="the labelled histories are not here")
def test_real_histories_are_answered_like_the_report_says() -> None:
    """On every real history, no fact releases an output that alone held a later-used string."""
    from agentscope_compaction.models.embedded.fitted import FITTED
    from agentscope_compaction.models.embedded.structure import RELEASES
    from benchmarks.kit.strategies import ask

    samples = load(("merged",))
    for each in samples:
        answers = ask(each, FITTED)
        newest = {max(r.holders) for r in each.requirements}
        assert not [n for n in newest if set(answers.facts[n][:1]) & set(RELEASES)]
        json.dumps(answers.result, allow_nan=False)
