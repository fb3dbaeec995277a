"""Loads the labelled histories: what a compactor gets, and which strings the rest still uses.

The histories and labels are not part of this repository. They are looked for beside it, in
``../shared/data``, or in the folder that ``AGENTSCOPE_COMPACTION_SHARED`` names.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentscope_compaction.compact import compact_context
from agentscope_compaction.core.options import CompactionOptions

__all__ = [
    "CUTS",
    "DOMAINS",
    "Requirement",
    "Sample",
    "holds",
    "load",
    "shared_folder",
    "size_of",
    "texts_of",
]

CUTS = ("cut30", "cut50", "cut70")
SHAPES = ("merged", "split")
DOMAINS = {
    "cctrace": "coding",
    "claude": "coding",
    "openhands": "coding",
    "pi": "coding",
    "deerflow": "writing",
    "holmes": "operations",
    "spider": "data",
    "sweagent": "security",
    "tau": "customer service",
}
"""Domain by the first part of a history's name."""
JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Requirement:
    """A strong string that only past outputs held and the rest of the history used."""

    text: str
    verbatim: bool
    holders: tuple[int, ...]
    """Outputs that hold it, by their number in the history."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One history, cut at one place, in one shape."""

    name: str
    cut: str
    shape: str
    messages: list[JSON]
    goal: str
    call_ids: list[str]
    outputs: list[str]
    tools: list[str]
    requirements: list[Requirement]
    needed: list[bool]
    """Per output: its evidence is needed later, or it is the newest holder of some."""
    input_needed: list[bool]
    """Per call: it is the newest holder, by its input, of a string that is used later."""
    state: JSON
    """The observation a local model is given."""
    keys: list[str]
    """Decision id per output; '' where the pair was not recognised."""

    @property
    def domain(self) -> str:
        """What kind of work this is."""
        return DOMAINS.get(self.name.split("-")[0], "other")

    @property
    def size(self) -> int:
        """Characters of the history, as savings count them."""
        return size_of(self.messages)


def shared_folder() -> Path:
    """Where the histories are; may not exist."""
    default = Path(__file__).resolve().parents[3] / "shared"
    return Path(os.environ.get("AGENTSCOPE_COMPACTION_SHARED", default))


def load(shapes: tuple[str, ...] = ("merged",), cuts: tuple[str, ...] = CUTS) -> list[Sample]:
    """Every labelled sample, in a fixed order."""
    data = shared_folder() / "data"
    found = []
    for cut in cuts:
        for path in sorted((data / "labels" / cut).glob("*.json")):
            labels = json.loads(path.read_text("utf-8"))
            messages = json.loads((data / "trajectories" / path.name).read_text("utf-8"))
            past = _past(messages, labels["cut"])
            found += [_sample(cut, shape, labels, past) for shape in shapes]
    return found


def normal(text: str) -> str:
    """One form for literal and JSON-escaped text, as the labels were made on."""
    text = text.replace("\r", "").replace("\\n", "\n").replace("\\t", " ").replace('\\"', '"')
    return re.sub(r"[ \t\u00a0\u3000]+", " ", text)


def holds(text: str, requirement: Requirement) -> bool:
    """Whether a (normalised) text still holds the string, as a whole word if it is a token."""
    want = requirement.text
    place = text.find(want)
    while place >= 0:
        end = place + len(want)
        before = place > 0 and _wordy(text[place - 1]) and _wordy(want[0])
        after = end < len(text) and _wordy(text[end])
        if requirement.verbatim or not (before or after):
            return True
        place = text.find(want, place + 1)
    return False


def _wordy(char: str) -> bool:
    return char.isalnum() or char == "_"


def output_text(block: Mapping[str, Any]) -> str:
    """The text of a tool result."""
    output = block["output"]
    if isinstance(output, str):
        return output
    return "\n".join(part["text"] for part in output if part.get("type") == "text")


def _text(block: Mapping[str, Any]) -> str:
    if block["type"] == "tool_call":
        return str(block["input"])
    if block["type"] == "tool_result":
        return output_text(block)
    return str(block.get("text") or block.get("thinking") or "")


def texts_of(messages: Iterable[JSON]) -> list[str]:
    """Every string of a history that a model would read."""
    return [_text(block) for message in messages for block in message["content"]]


def size_of(messages: Iterable[JSON]) -> int:
    """Characters of a history."""
    return sum(map(len, texts_of(messages)))


def _past(messages: list[JSON], cut: Mapping[str, int]) -> list[JSON]:
    past = list(messages[: cut["message"]])
    if cut["block"]:
        last = messages[cut["message"]]
        past.append({**last, "content": last["content"][: cut["block"]]})
    return past


def _split(messages: list[JSON]) -> list[JSON]:
    """One assistant message per step: a block after a result opens the next message."""
    steps: list[JSON] = []
    for message in messages:
        content: list[JSON] = []
        part = 0
        for block in message["content"]:
            if content and content[-1]["type"] == "tool_result" != block["type"]:
                steps.append({**message, "id": f"{message['id']}-{part}", "content": content})
                content, part = [], part + 1
            content.append(block)
        steps.append({**message, "id": f"{message['id']}-{part}", "content": content})
    return steps


class _Recorder:
    """A decision model that keeps what it is shown, and keeps everything."""

    local = True
    state: JSON

    async def __call__(self, state: JSON, questions: Mapping[str, object]) -> Any:
        from agentscope.classifier import BinaryAnswer, ClassifierResponse

        self.state = state
        content: Any = {key: BinaryAnswer(probability=1.0) for key in questions}
        return ClassifierResponse(model="recorder", content=content)


def _sample(cut: str, shape: str, labels: JSON, past: list[JSON]) -> Sample:
    messages = _split(past) if shape == "split" else past
    blocks = [b for m in messages for b in m["content"] if b["type"] == "tool_result"]
    number = {b["id"]: n for n, b in enumerate(blocks)}
    calls = {c["call_id"]: c for c in labels["calls"]}
    recorder = _Recorder()
    tools = sorted({b["name"] for b in blocks})
    goal = labels["goal"].strip() or "Continue"
    request = {
        "messages": messages,
        "goal": goal,
        "eligible_tool_names": tools,
        "options": CompactionOptions(preserve_recent_messages=0),
    }
    proposal = asyncio.run(compact_context(request, recorder))
    keys = {d.call_id: d.id for d in proposal.decisions}
    return Sample(
        name=labels["name"],
        cut=cut,
        shape=shape,
        messages=messages,
        goal=goal,
        call_ids=[b["id"] for b in blocks],
        outputs=[output_text(b) for b in blocks],
        tools=[b["name"] for b in blocks],
        requirements=[
            Requirement(
                r["string"],
                r["kind"] == "verbatim",
                tuple(number[s.removeprefix("out:")] for s in r["any_of"]),
            )
            for r in labels["requirements"]
            if r["tier"] == "strong" and all(s.startswith("out:") for s in r["any_of"])
        ],
        needed=[bool(calls[b["id"]]["needed"] or calls[b["id"]]["last_copy"]) for b in blocks],
        input_needed=_inputs_needed(labels, [b["id"] for b in blocks]),
        state=recorder.state,
        keys=[keys.get(b["id"], "") for b in blocks],
    )


def _inputs_needed(labels: JSON, call_ids: list[str]) -> list[bool]:
    newest = set()
    for requirement in labels["requirements"]:
        inputs = [s for s in requirement["any_of"] if s.startswith("in:")]
        if inputs and requirement["tier"] == "strong":
            newest.add(inputs[-1].removeprefix("in:"))
    return [call_id in newest for call_id in call_ids]
