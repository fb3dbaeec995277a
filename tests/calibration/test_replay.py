"""The replay's arithmetic, on a history small enough to reckon by hand."""

from __future__ import annotations

import pytest

from agentscope_compaction.core.options import CompactionOptions
from agentscope_compaction.testing import HistoryBuilder, ScriptedDecisionModel
from benchmarks.kit.replay_bars import bar_panels
from benchmarks.kit.replay_history import History, State, count_tokens, read_history
from benchmarks.kit.replay_policies import Keep, MaskBatches, MaskSteps, Ours
from benchmarks.replay import Prices, replay

pytestmark = pytest.mark.anyio


def history(readings: int = 20) -> History:
    """One reply that reads, and at its end uses the id that the first reading held."""
    builder = HistoryBuilder().user("Read all, then name the ticket").reply()
    for number in range(readings):
        output = f"ticket TK{number:04d}X " + f"line {number} of many words " * 60
        builder.call("Read", {"page": number}, output)
    return read_history("small", builder.say("It is TK0000X").messages)


async def test_without_compaction_all_but_the_new_is_cached() -> None:
    """Every token is read once uncached; nothing is lost; the peak is the last call's context."""
    told = history()
    figures = await replay(told, Keep(), 1_000_000)
    before_last = told.sizes[:-1]
    assert figures.calls == 21
    assert figures.uncached == figures.peak == sum(before_last)
    assert (figures.lost, figures.strings, figures.over) == (0, 1, 0)
    assert figures.cost(Prices(1e6, 0, 0)) == figures.uncached


async def test_masking_every_step_breaks_the_prefix_each_time() -> None:
    """It reads less in all, more of it uncached, and loses the string of the oldest output."""
    kept, masked = [await replay(history(), p, 1_000_000) for p in (Keep(), MaskSteps())]
    assert masked.total < kept.total
    assert masked.uncached > kept.uncached
    assert masked.lost == 1
    assert masked.passes == 12


async def test_batches_wait_for_the_trigger() -> None:
    """Below the trigger nothing is touched; above it the context shrinks in few passes."""
    told = history()
    assert (await replay(told, MaskBatches(), told.tokens * 2)).passes == 0
    figures = await replay(told, MaskBatches(), told.tokens)
    assert 0 < figures.passes < 5
    assert figures.peak < told.tokens


async def test_ours_edits_only_what_it_proposed() -> None:
    """Our policy runs on the flat history: results get stubs, and the newest calls stay."""
    told = history()
    state = State(told, seen=len(told.blocks))
    model = ScriptedDecisionModel({"call": 1.0, "result": 0.0}, local=True)
    options = CompactionOptions.for_agents(require_signal=False)
    await Ours(model, options).step(state, told.tokens)
    assert state.passes == 1
    assert state.edits
    assert max(state.edits) < state.results()[-8]
    assert state.tokens() == count_tokens(state.messages())


def test_the_picture_is_escaped() -> None:
    """Names are text, not markup."""
    assert "a &lt; b" in bar_panels("t", ["a < b"], {"x": [0.5]})
