"""One call of the client: what is sent, what comes back, and whose connections carry it."""

import asyncio
import json

import httpx
import pytest
import respx
from agentscope.classifier import BinaryAnswer, ClassifierModelBase, RefusalAnswer

from agentscope_compaction.errors import DecisionModelError
from agentscope_compaction.models.jev import JevDecisionModel
from agentscope_compaction.models.seam import DecisionModel
from tests.models.jev_calls import KEY, PAIR, STATE, URL, answer, ask

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("clean_environment")]


async def test_one_call_is_one_authorised_request(router: respx.MockRouter) -> None:
    """The request is System One's; the response is AgentScope's."""
    route = router.post(URL).mock(side_effect=answer)
    response = await ask()
    request = route.calls.last.request
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == request.headers["accept"] == "application/json"
    assert "x-typesafe-retry-count" not in request.headers
    body = json.loads(request.content)
    assert (body["model"], body["state"]) == ("jev-1.13.0", STATE)
    assert list(body["questions"]) == ["call_t1", "result_t1"]
    assert response.model == "jev-1.13.0"
    assert response.content["result_t1"] == BinaryAnswer(probability=0.5)
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (10, 2)
    assert response.metadata == {"request_id": "req_2", "request_ids": ["req_2"], "requests": 1}


async def test_missing_usage_is_unknown_and_a_refusal_is_passed_on(
    router: respx.MockRouter,
) -> None:
    """Neither fails the call: usage is None, and the caller decides about the refused pair."""
    answers = {"call_t1": {"type": "refusal"}, "result_t1": {"type": "noul", "noul": 1}}
    router.post(URL).respond(json={"model": "m", "answers": answers})
    response = await ask()
    assert response.usage is None
    assert response.content == {
        "call_t1": RefusalAnswer(),
        "result_t1": BinaryAnswer(probability=1.0),
    }


async def test_extra_answers_are_ignored_with_a_warning(
    router: respx.MockRouter, caplog: pytest.LogCaptureFixture
) -> None:
    """The count is logged, not the content."""
    answers = {name: {"type": "noul", "noul": 0} for name in [*PAIR, "x-marker"]}
    router.post(URL).respond(json={"model": "m", "answers": answers})
    assert list((await ask()).content) == list(PAIR)
    assert "ignored 1 answers" in caplog.text
    assert "x-marker" not in caplog.text


async def test_endpoint_model_and_headers_are_configurable(router: respx.MockRouter) -> None:
    """A gateway with another path, name and key header; the key of its own header is hidden."""
    url = "https://gateway.example/api/alpha/decisions"
    route = router.post(url).mock(side_effect=answer)
    headers = {"X-API-Key": "gateway-marker", "X-Title": "compaction"}
    model = JevDecisionModel(model="typesafe/jev-1.13", endpoint=url, headers=headers)
    async with model:
        await model("a text", PAIR)
    request = route.calls.last.request
    assert request.headers["x-api-key"] == "gateway-marker"
    assert "authorization" not in request.headers
    assert json.loads(request.content)["model"] == "typesafe/jev-1.13"
    assert json.loads(request.content)["state"] == "a text"
    assert "gateway-marker" not in repr(model) + repr(vars(model))


async def test_a_client_passed_in_is_used_and_left_open(router: respx.MockRouter) -> None:
    """Its own authorisation does not replace the key; its owner closes it."""
    route = router.post(URL).mock(side_effect=answer)
    async with httpx.AsyncClient(auth=("user", "fake")) as client:
        await ask(http_client=client)
        assert not client.is_closed
        await ask(http_client=client)
    assert route.calls.last.request.headers["authorization"] == f"Bearer {KEY}"
    with pytest.raises(DecisionModelError, match="closed"):
        await ask(http_client=client)


async def test_a_closed_model_opens_again(router: respx.MockRouter) -> None:
    """``aclose`` ends connections, not the model; closing twice is harmless."""
    route = router.post(URL).mock(side_effect=answer)
    model = JevDecisionModel(KEY)
    first = await model(STATE, PAIR)
    await model.aclose()
    await model.aclose()
    second = await model(STATE, PAIR)
    await model.aclose()
    assert first.content == second.content == dict.fromkeys(PAIR, BinaryAnswer(probability=0.5))
    assert route.call_count == 2


def test_one_model_serves_several_event_loops(router: respx.MockRouter) -> None:
    """Each loop has its own connections."""
    router.post(URL).mock(side_effect=answer)
    model = JevDecisionModel(KEY)

    async def once() -> str:
        async with model:
            return (await model(STATE, PAIR)).model

    assert [asyncio.run(once()) for _ in range(2)] == ["jev-1.13.0"] * 2


async def test_cancellation_passes_through(router: respx.MockRouter) -> None:
    """The caller's own deadline works by cancelling, and no retry swallows it."""
    begun = asyncio.Event()
    tries = 0

    async def hang(request: httpx.Request) -> httpx.Response:
        nonlocal tries
        tries += 1
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    router.post(URL).mock(side_effect=hang)
    task = asyncio.create_task(ask(max_retries=3))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tries == 1


def test_the_client_is_a_decision_model() -> None:
    """It fits the seam, accepts a deadline and is not local."""
    model = JevDecisionModel(KEY)
    assert isinstance(model, DecisionModel)
    assert isinstance(model, ClassifierModelBase)
    assert (model.accepts_deadline, model.local) == (True, False)
