"""How much work a proposal is, counted instead of timed."""

from __future__ import annotations

from typing import Any

import pytest

from agentscope_compaction import compact_context
from agentscope_compaction.core import estimate, reduce, view
from agentscope_compaction.core.estimate import Measure
from agentscope_compaction.testing import HistoryBuilder, ScriptedDecisionModel

pytestmark = pytest.mark.anyio


class Meter:
    """Counts measurements and the characters they read."""

    def __init__(self) -> None:
        self.calls = self.chars = 0

    def __call__(self, text: str) -> Measure:
        """Measure, and note how much was read."""
        self.calls += 1
        self.chars += len(text)
        return estimate.measure(text)


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Meter:
    """A meter in place of every measurement of the view and its reduction."""
    counting = Meter()
    for module in (view, reduce):
        monkeypatch.setattr(module, "measure", counting)
    return counting


async def work(meter: Meter, calls: int, tools: list[str], **options: Any) -> tuple[int, int]:
    """Measurements and characters read for a history of so many calls, squeezed hard."""
    meter.calls = meter.chars = 0
    builder = HistoryBuilder().user("task")
    for n in range(calls):
        builder.say(f"step {n} " + "words " * 60)
        builder.call("A" if n % 4 else "B", {"q": "i" * 900}, "x" * 300)
    request = builder.user("go on").request(tools=tools, preserve_recent_messages=1, **options)
    await compact_context(request, ScriptedDecisionModel(1.0))
    return meter.calls, meter.chars


@pytest.mark.parametrize("per_call", [10**6, 70, 50])
async def test_measuring_is_linear(meter: Meter, per_call: int) -> None:
    """Four times the calls is four times the measuring, in every stage of reduction."""
    small, large = 50, 200
    few = await work(meter, small, ["B"], **budget(per_call * small))
    many = await work(meter, large, ["B"], **budget(per_call * large))
    for one, other in zip(few, many, strict=True):
        assert other <= 4.4 * one
    assert many[0] <= 20 * large


def budget(tokens: int) -> dict[str, int]:
    """Options that allow the view so many tokens."""
    return {"max_state_tokens": tokens, "max_request_tokens": tokens + 5_000}
