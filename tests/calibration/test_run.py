"""Asking a model about many cuts: bounded, resumable, with an estimate first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentscope_compaction.calibration.cache import AnswerCache
from agentscope_compaction.calibration.run import Task, estimate, judge, tasks_for
from agentscope_compaction.core.decisions import Answer
from agentscope_compaction.errors import ConfigurationError, DecisionModelError
from agentscope_compaction.testing import ScriptedDecisionModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def tasks(histories: list[str]) -> list[Task]:
    """Three cuts of each history."""
    found = []
    for name in histories:
        found += tasks_for(name, json.loads(Path(name).read_text("utf-8")), [0.3, 0.5, 0.7])
    return found


async def test_every_cut_is_judged_in_order(tasks: list[Task]) -> None:
    """Results come in the order of the tasks, with one progress call per cut."""
    seen: list[tuple[int, int]] = []
    model = ScriptedDecisionModel(0.3)
    cuts = await judge(tasks, model, progress=lambda done, total: seen.append((done, total)))
    assert [cut.history for cut in cuts] == [task.history for task in tasks]
    assert seen == [(n + 1, len(tasks)) for n in range(len(tasks))]
    assert {cut.model for cut in cuts} == {"scripted-1"}
    assert any(need.only_outputs for cut in cuts for need in cut.needs)


async def test_the_estimate_is_what_is_asked(tasks: list[Task]) -> None:
    """Questions and requests are known before anything is asked."""
    figures = estimate(tasks, AnswerCache(None), "m")
    model = ScriptedDecisionModel(0.3)
    await judge(tasks, model)
    assert figures.questions == len(model.asked)
    assert figures.requests == len(model.requests)
    assert figures.input_tokens > 0


async def test_a_run_cut_short_is_taken_up(tasks: list[Task], tmp_path: Path) -> None:
    """After a failure only what was not answered is asked, and the result is the same."""
    path = tmp_path / "answers"
    model = ScriptedDecisionModel(0.3)

    async def failing(state: dict[str, Any], questions: Mapping[str, Any]) -> Any:
        if len(model.requests) == 3:
            raise ConnectionError
        return await model(state, questions)

    with pytest.raises(DecisionModelError):
        await judge(tasks, failing, cache=AnswerCache(path), concurrency=1)
    kept = AnswerCache(path)
    assert 0 < len(kept) < len(tasks)
    left = estimate(tasks, kept, "")
    again = ScriptedDecisionModel(0.3)
    cuts = await judge(tasks, again, cache=kept)
    assert left.questions == len(again.asked)
    assert cuts == await judge(tasks, ScriptedDecisionModel(0.3))
    last = ScriptedDecisionModel(0.3)
    assert await judge(tasks, last, cache=AnswerCache(path)) == cuts
    assert last.asked == []


async def test_a_torn_line_is_asked_again(tasks: list[Task], tmp_path: Path) -> None:
    """A crash in the middle of a line costs that line only."""
    path = tmp_path / "answers"
    await judge(tasks, ScriptedDecisionModel(0.3), cache=AnswerCache(path))
    path.write_bytes(path.read_bytes()[:-20])
    assert len(AnswerCache(path)) == len(tasks) - 1


def test_another_file_is_not_taken_for_answers(tmp_path: Path) -> None:
    """A file that holds something else is refused, not overwritten."""
    path = tmp_path / "notes.txt"
    path.write_text("hello", "utf-8")
    with pytest.raises(ConfigurationError):
        AnswerCache(path)


async def test_requests_in_flight_are_bounded(tasks: list[Task]) -> None:
    """No more requests run at once than allowed."""
    model, running, most = ScriptedDecisionModel(0.3), 0, 0

    async def slow(state: dict[str, Any], questions: Mapping[str, Any]) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1
        return await model(state, questions)

    await judge(tasks, slow, concurrency=2)
    assert 1 <= most <= 2


@pytest.mark.parametrize(
    "number", ["NaN", "1e400", "9" * 400, "-0.1", "1.01", "true", '"0.5"', "null", "[" * 90_000]
)
def test_answers_that_are_none_are_asked_again(number: str, tmp_path: Path) -> None:
    """A line of the file counts only if each of its answers is a probability."""
    path = tmp_path / "answers"
    good = '{"key": "k", "model": "m", "answers": {"t1": [0.25, 1]}}'
    bad = good.replace('"k"', '"other"').replace("0.25", number)
    path.write_text(f"{good}\n{bad}", "utf-8")
    cache = AnswerCache(path)
    assert len(cache) == 1
    assert cache.get("k") == ("m", {"t1": Answer(0.25, 1.0)})
