"""Real agent histories, cut at three places, whole and split: every invariant holds.

The histories are not part of this repository. They are looked for in ``../shared``, or in the
folder ``AGENTSCOPE_COMPACTION_SHARED`` names; without them these tests are skipped.
"""

from __future__ import annotations

import copy
import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agentscope_compaction import CompactionOptions, CompactionProposal, compact_context
from agentscope_compaction.core.estimate import estimate_tokens
from agentscope_compaction.core.jsontext import compact
from agentscope_compaction.testing import ScriptedDecisionModel, check_proposal

pytestmark = pytest.mark.anyio

JSON = dict[str, Any]
ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("AGENTSCOPE_COMPACTION_SHARED") or ROOT.parent / "shared")
NAMES = sorted(path.stem for path in SHARED.glob("data/trajectories/*.json"))
NOTHING, CALLS = {"call": 0.0, "result": 0.0}, {"call": 1.0, "result": 0.0}
CASES = [("seed", NOTHING), ("seed", CALLS), ("agents", None), ("agents", NOTHING)]
"""Options, and what a scripted model answers; None = the embedded model."""


@pytest.fixture(scope="session")
def labeller() -> ModuleType:
    """The labelling tool beside the histories, which also scores a compacted history."""
    spec = importlib.util.spec_from_file_location("labels", SHARED / "tools" / "label_needed.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def split(messages: list[JSON]) -> list[JSON]:
    """Divide each merged reply into one assistant message per step, as a split history has."""
    steps: list[JSON] = []
    for message in messages:
        had_result = False
        step = {**message, "content": []}
        for block in message["content"]:
            if had_result and block["type"] != "tool_result":
                steps.append(step)
                step, had_result = {**message, "content": []}, False
            had_result = had_result or block["type"] == "tool_result"
            step["content"].append(block)
        steps.append(step)
    return [{**step, "id": f"{step['id']}-{n}"} for n, step in enumerate(steps)]


def requests(labels: JSON, messages: list[JSON]) -> dict[str, JSON]:
    """Requests for a history: seed options and agent options."""
    blocks = [block for message in messages for block in message["content"]]
    tools = sorted({block["name"] for block in blocks if block["type"] == "tool_call"})
    base = {"messages": messages, "goal": labels["goal"] or "go on", "eligible_tool_names": tools}
    agents = CompactionOptions.for_agents(preserve_recent_calls=2)
    return {"seed": base, "agents": {**base, "options": agents}}


async def propose(request: JSON, script: Any) -> CompactionProposal:
    """Ask the embedded model, or a scripted one."""
    model = None if script is None else ScriptedDecisionModel(script)
    return await compact_context(request, model)


@pytest.mark.skipif(not NAMES, reason="no shared histories")
@pytest.mark.parametrize("cut", ["cut30", "cut50", "cut70"])
@pytest.mark.parametrize("name", NAMES or ["none"])
async def test_real_history(name: str, cut: str, labeller: ModuleType) -> None:
    """Whole and split, with seed and agent options, every model's proposal is sound."""
    original = json.loads((SHARED / f"data/trajectories/{name}.json").read_text())
    labels = json.loads((SHARED / f"data/labels/{cut}/{name}.json").read_text())
    whole = labeller.history(original, labels["cut"])
    for messages in (whole, split(whole)):
        before = copy.deepcopy(messages)
        for kind, script in CASES:
            request = requests(labels, messages)[kind]
            proposal = await propose(request, script)
            assert messages == before
            check_proposal(before, proposal)
            score = labeller.score(proposal.messages, labels, original)
            assert score["chars_after"] <= labeller.size(before)
            if proposal.stats["requests"]:
                tokens = proposal.stats["state_tokens"]
                assert estimate_tokens(compact(dict(proposal.observation))) <= tokens <= 25_000
            if script is CALLS:
                again = await propose({**request, "messages": proposal.messages}, script)
                assert again.messages == proposal.messages


@pytest.mark.skipif(not NAMES, reason="no shared histories")
async def test_all_thirteen_are_there() -> None:
    """The shared folder, where present, is complete; splitting loses no block."""
    assert len(NAMES) == 13
    for name in NAMES:
        merged = json.loads((SHARED / f"data/trajectories/{name}.json").read_text())
        parts = split(merged)
        assert len(parts) > len(merged)
        blocks = [block for message in merged for block in message["content"]]
        assert [block for message in parts for block in message["content"]] == blocks
