"""Keys and bodies reach no log, no error, no ``repr`` and no pickle."""

import logging
import pickle
from collections.abc import Callable

import httpx
import pytest
import respx

from agentscope_compaction.errors import DecisionModelError
from agentscope_compaction.models.jev import JevDecisionModel
from tests.models.jev_calls import KEY, STATE, URL, ask, failing

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("clean_environment")]


async def test_the_key_and_the_bodies_are_in_no_log(
    router: respx.MockRouter, caplog: pytest.LogCaptureFixture
) -> None:
    """With every logger at DEBUG, through success, retry, refusal and malformed answers."""
    caplog.set_level(logging.DEBUG)
    outcomes: list[httpx.Response | Exception] = [
        httpx.Response(429, headers={"retry-after": "0"}, json={"error": f"slow {KEY}"}),
        httpx.ReadError(KEY),
    ]
    router.post(URL).mock(side_effect=failing(*outcomes))
    await ask(max_retries=2)
    for body in ({"model": "m", "answers": {}, "echo": [KEY, STATE]}, {"error": KEY}):
        router.post(URL).respond(200 if "model" in body else 401, json=body)
        with pytest.raises(DecisionModelError) as caught:
            await ask()
        assert KEY not in repr(caught.value)
    assert "retry 1 in" in caplog.text
    assert KEY not in caplog.text
    assert "state-marker" not in caplog.text


@pytest.mark.parametrize("show", [repr, str, lambda model: repr(vars(model))])
def test_the_key_is_not_shown(show: Callable[[object], str]) -> None:
    """Neither by the model nor by what it holds."""
    assert KEY not in show(JevDecisionModel(KEY, headers={"x-extra": KEY}))


def test_a_key_is_not_pickled() -> None:
    """A model is not serialisable, so no key is written with it."""
    with pytest.raises(Exception, match="pickle"):
        pickle.dumps(JevDecisionModel(KEY))
