"""Too many questions for one request become several; a pair is never parted."""

import json
from collections.abc import Callable

import httpx
import pytest
import respx

from agentscope_compaction.errors import DecisionHTTPError
from agentscope_compaction.models.jev import JevDecisionModel
from tests.models.jev_calls import KEY, URL, answer, ask, questions

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("clean_environment")]


def overflow(limit: int) -> Callable[[httpx.Request], httpx.Response]:
    """A server whose context holds only so many questions; it gives no message."""

    def respond(request: httpx.Request) -> httpx.Response:
        if len(json.loads(request.content)["questions"]) > limit:
            detail = {"error_type": "max_tokens_exceeded"}
            return httpx.Response(400, json={"detail": detail})
        return answer(request)

    return respond


SIX = questions("call_t1", "result_t1", "result_t2", "other", "call_t3", "call_t2", "result_t3")


async def test_too_many_tokens_halves_the_questions_once(router: respx.MockRouter) -> None:
    """Pairs stay together, nothing is asked twice, and the two halves read as one response."""
    route = router.post(URL).mock(side_effect=overflow(4))
    response = await ask(SIX)
    asked = [list(json.loads(call.request.content)["questions"]) for call in route.calls]
    assert asked == [
        list(SIX),
        ["call_t1", "result_t1", "result_t2", "call_t2"],
        ["other", "call_t3", "result_t3"],
    ]
    assert list(response.content) == list(SIX)
    assert response.usage is not None
    assert response.usage.input_tokens == 20
    assert response.metadata["request_ids"] == ["req_4", "req_3"]
    assert response.metadata["requests"] == 3


async def test_a_half_that_is_still_too_long_fails(router: respx.MockRouter) -> None:
    """Splitting happens once; the error is the server's."""
    route = router.post(URL).mock(side_effect=overflow(3))
    with pytest.raises(DecisionHTTPError, match="max_tokens_exceeded") as caught:
        await ask(SIX)
    assert (caught.value.status, route.call_count) == (400, 2)


async def test_a_single_pair_that_is_too_long_is_not_asked_again(
    router: respx.MockRouter,
) -> None:
    """There is nothing to halve, and the same request would fail again."""
    route = router.post(URL).mock(side_effect=overflow(1))
    with pytest.raises(DecisionHTTPError, match="max_tokens_exceeded"):
        await ask()
    assert route.call_count == 1


async def test_halves_answered_by_two_models_have_no_known_profile(
    router: respx.MockRouter,
) -> None:
    """When an alias moves between two requests, doubt keeps more."""
    models = iter(["jev-1.13.0", "jev-1.14.0"])
    router.post(URL).mock(side_effect=lambda request: answer(request, model=next(models)))
    response = await ask(SIX, max_questions=4)
    assert response.model == "jev-1.13.0 + jev-1.14.0"
    assert JevDecisionModel(KEY).thresholds_for(response.model) == (0.05, 0.1)


async def test_questions_per_request_are_limited(router: respx.MockRouter) -> None:
    """Gateways have their own limits; a pair is never parted."""
    route = router.post(URL).mock(side_effect=answer)
    await ask(SIX, max_questions=3)
    asked = [list(json.loads(call.request.content)["questions"]) for call in route.calls]
    assert asked == [
        ["call_t1", "result_t1"],
        ["result_t2", "other", "call_t2"],
        ["call_t3", "result_t3"],
    ]
