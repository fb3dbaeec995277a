"""What the embedded model costs: linear, bounded work, once per state, beside the event loop."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys

import pytest

from agentscope_compaction.models.embedded import EmbeddedDecisionModel
from agentscope_compaction.models.embedded.index import prepare
from tests.models.states import LOREM, PADDING, Observation, call, questions, state_of

pytestmark = pytest.mark.anyio


def test_work_is_linear_and_bounded() -> None:
    """Twice the calls are at most about twice the characters read; one huge output is bounded."""
    one, two = (
        prepare(state_of(*[call("grep", LOREM, p=n) for n in range(k)])) for k in (100, 200)
    )
    assert two.work <= 2.5 * one.work
    assert prepare(state_of(call("cat", "word " * 1_000_000))).work < 100_000


async def test_one_state_is_prepared_once_for_all_its_batches() -> None:
    """Concurrent batches over one watchable state share one index, which goes with the state."""
    state = Observation(state_of(*PADDING))
    model = EmbeddedDecisionModel()
    asked = questions(state)
    whole = await model(state, asked)
    parts = await asyncio.gather(*(model(state, {k: asked[k]}) for k in asked))
    assert {k: v for p in parts for k, v in p.content.items()} == whole.content
    assert len(model._prepared) == 1
    del state
    for _ in range(100):  # an idle worker thread may hold its last task a moment longer
        gc.collect()
        if not model._prepared:
            break
        await asyncio.sleep(0.01)
    assert not model._prepared


async def test_a_large_state_does_not_stall_the_event_loop() -> None:
    """While thousands of calls are judged, the event loop keeps turning."""
    state = state_of(*[call("grep", f"{n} {LOREM}", pattern=str(n)) for n in range(1_500)])
    judging = asyncio.create_task(EmbeddedDecisionModel()(state, questions(state)))
    turns = 0
    while not judging.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert turns > 5


def test_import_is_light() -> None:
    """Importing the model imports neither AgentScope nor numpy nor an HTTP client."""
    code = (
        "import sys, agentscope_compaction.models.embedded as e; e.EmbeddedDecisionModel();"
        "print([m for m in ('agentscope', 'httpx', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
