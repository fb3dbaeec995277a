"""Proposals to make reports of: an ordinary one, and one whose every string is hostile."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from agentscope_compaction import CompactionProposal, CompactionRequest, compact_context
from agentscope_compaction.testing import HistoryBuilder, ScriptedDecisionModel

HOSTILE = (
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "\"' onfocus=window.pwned=1 autofocus x='",
    "--><svg onload=window.pwned=1><!--",
    "</pre></details></table></style><style>*{display:none}</style>",
    "]]><iframe src='javascript:parent.pwned=1'></iframe>",
    "line\u2028separator\u2029paragraph",
    "lone \ud83d surrogate \udc00",
    "\u202etfel ot thgir\u2066\u2069\u200b",
    "\x00\x01\x1b[31mred\x7f\x85",
    "&lt;b&gt; &amp;amp; &#x3c;script&#x3e;",
    "مرحبا בעולם",
    "{{7*7}} ${7*7} `${window.pwned=1}`",
    "\r\n\tjavascript:window.pwned=1",
)


@dataclass(frozen=True)
class Judged:
    """A proposal and what it was made for."""

    request: CompactionRequest
    proposal: CompactionProposal


def judge(messages: list[dict[str, Any]], tools: list[str], model: Any, goal: str) -> Judged:
    """Make a proposal over a whole history."""
    request = CompactionRequest.model_validate(
        {
            "messages": messages,
            "goal": goal,
            "eligible_tool_names": tools,
            "options": {"preserve_recent_messages": 1, "truncate_head_chars": 40},
        }
    )
    return Judged(request, asyncio.run(compact_context(request, model)))


@pytest.fixture(scope="session")
def judged() -> Judged:
    """Six calls of two tools: two cut, one removed, three kept."""
    history = HistoryBuilder().user("Find out why retries never stop.")
    history.call("Read", {"path": "retry.py"}, "first line\n" + "def retry(): ...\n" * 60, "c1")
    history.call("Grep", {"pattern": "retry"}, "match in retry.py\n" * 30, "c2")
    history.call("Read", {"path": "old.py"}, "old code\n" * 200, "c3")
    history.call("Read", {"path": "short.py"}, "tiny", "c4")
    history.call("Bash", {"command": "ls"}, "a\nb\nc", "c5")
    history.call("Read", {"path": "new.py"}, "needed code\n" * 40, "c6")
    history.user("Now fix it.")
    answers = {"result_t6": 0.9, "call_t3": 0.0, "result": 0.1, "call": 0.8}

    def script(question: str, state: object) -> float:
        return answers.get(question, answers[question.partition("_")[0]])

    model = ScriptedDecisionModel(script)
    return judge(history.messages, ["Read", "Grep"], model, "fix the retry bug")


@pytest.fixture(scope="session")
def hostile() -> Judged:
    """One call per hostile string, which is tool, id, input and output at once."""
    history = HistoryBuilder().user("Look. " + " ".join(HOSTILE))
    for text in HOSTILE:
        history.call(f"T{text}", {"x": text}, f"{text}\n" * 60, f"id {text}")
    history.user("Go on.")
    tools = [f"T{text}" for text in HOSTILE]
    model = ScriptedDecisionModel({"call": 0.8, "result": 0.1}, name=HOSTILE[0])
    return judge(history.messages, tools, model, "fix it " + " ".join(HOSTILE))
