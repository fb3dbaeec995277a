"""One call of the Jev client: to scripted HTTP responses, or to a server on loopback."""

import json
from collections.abc import Callable
from typing import Any

import httpx
from agentscope.classifier import BinaryCriteria, BinaryQuestion, ClassifierResponse

from agentscope_compaction.models.jev import JevDecisionModel

URL = "https://api.typesafe.ai/v1/systemone"
KEY = "sk-test-0123456789abcdef"
STATE = {"goal": "state-marker"}
SERVED: dict[str, Any] = {"goal": "Fix it", "calls": {"t1": {"tool": "Read", "result": "ok"}}}


def questions(*names: str) -> dict[str, BinaryQuestion]:
    """Binary questions with these ids."""
    return {name: BinaryQuestion(instructions=f"Is {name} needed?") for name in names}


PAIR = questions("call_t1", "result_t1")


def pairs(count: int) -> dict[str, BinaryQuestion]:
    """Two questions for each of so many calls."""
    criteria = BinaryCriteria(true="It is needed.", false="It is not needed.")
    return {
        f"{kind}_t{n}": BinaryQuestion(instructions=f"Is {kind} {n} needed?", criteria=criteria)
        for n in range(1, count + 1)
        for kind in ("call", "result")
    }


def answer(request: httpx.Request, **fields: Any) -> httpx.Response:
    """Answer whatever was asked with one half."""
    asked = json.loads(request.content)["questions"]
    body = {
        "model": "jev-1.13.0",
        "answers": {name: {"type": "noul", "noul": 0.5} for name in asked},
        "usage": {"input_tokens": 10, "output_tokens": 2},
    }
    headers = {"x-typesafe-request-id": f"req_{len(asked)}"}
    return httpx.Response(200, json=body | fields, headers=headers)


def failing(*first: httpx.Response | Exception) -> Callable[[httpx.Request], httpx.Response]:
    """Give these outcomes first, then answers."""
    outcomes = iter(first)

    def respond(request: httpx.Request) -> httpx.Response:
        outcome = next(outcomes, None)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome or answer(request)

    return respond


async def ask(
    asked: dict[str, BinaryQuestion] = PAIR,
    deadline: float | None = None,
    state: Any = STATE,
    **settings: Any,
) -> ClassifierResponse:
    """One call of a fresh client that waits for nothing."""
    defaults: dict[str, Any] = {"api_key": KEY, "retry_delay": 0}
    async with JevDecisionModel(**(defaults | settings)) as model:
        return await model(state, asked, deadline=deadline)


async def ask_server(
    url: str, count: int = 1, state: Any = SERVED, **settings: Any
) -> ClassifierResponse:
    """One call of a fresh client, with so many pairs, to the server at this address."""
    return await ask(pairs(count), state=state, base_url=url, **settings)
