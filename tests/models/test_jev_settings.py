"""Settings of the client: from arguments or the environment, checked before anything is opened."""

from typing import Any

import pytest
import respx
from pydantic import SecretStr

from agentscope_compaction.core.types import Thresholds
from agentscope_compaction.errors import ConfigurationError
from agentscope_compaction.models.jev import JevDecisionModel
from tests.models.jev_calls import KEY, PAIR, STATE, answer

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("clean_environment")]


@pytest.mark.parametrize(
    ("variables", "arguments", "expected"),
    [
        ({"TYPESAFE_API_KEY": "a"}, {}, ("a", "https://api.typesafe.ai", "jev-1.13.0")),
        (
            {
                "TYPESAFE_API_KEY": "a",
                "TYPESAFE_BASE_URL": "https://t",
                "TYPESAFE_DEFAULT_MODEL": "jev-latest",
            },
            {},
            ("a", "https://t", "jev-latest"),
        ),
        (
            {
                "TYPESAFE_API_KEY": "a",
                "DECISION_MODEL_API_KEY": " b ",
                "DECISION_MODEL_BASE_URL": "https://d",
                "DECISION_MODEL_NAME": "n",
            },
            {},
            ("b", "https://d", "n"),
        ),
        ({"TYPESAFE_API_KEY": "a", "DECISION_MODEL_API_KEY": " "}, {}, ("a", ..., ...)),
        (
            {"DECISION_MODEL_API_KEY": "b", "DECISION_MODEL_NAME": "n"},
            {"api_key": SecretStr("c"), "base_url": "https://x", "model": "y"},
            ("c", "https://x", "y"),
        ),
    ],
)
async def test_the_environment_fills_in_arguments(
    router: respx.MockRouter,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    arguments: dict[str, Any],
    expected: tuple[Any, ...],
) -> None:
    """Arguments win, then the seed's variables, then TypeSafe's own; blank is unset."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    key, base, name = expected
    base = "https://api.typesafe.ai" if base is ... else base
    route = router.post(f"{base}/v1/systemone").mock(side_effect=answer)
    async with JevDecisionModel(**arguments) as model:
        await model(STATE, PAIR)
    assert route.calls.last.request.headers["authorization"] == f"Bearer {key}"
    assert name is ... or model.model == name


@pytest.mark.parametrize(
    "settings",
    [
        {"api_key": None},
        {"api_key": ""},
        {"api_key": "a b"},
        {"base_url": "http://host"},
        {"endpoint": "https://u:fake@host/"},
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"timeout": float("inf")},
        {"timeout": True},
        {"timeout": 10**400},
        {"retry_delay": 10**400},
        {"headers": [("x-a", "b")]},
        {"headers": "x-a: b"},
        {"retry_delay": -1},
        {"max_retries": -1},
        {"max_retries": True},
        {"max_questions": 1},
        {"headers": {"a": "b\n"}},
        {"headers": {" a": "b"}},
        {"headers": {"a": 1}},
        *(
            {name: value}
            for name in ("timeout", "max_retries", "retry_delay", "max_questions")
            for value in ("2", b"2", [2], float("-inf"))
        ),
        {"timeout": None},
        {"retry_delay": None},
        {"max_retries": None},
        {"max_retries": 1.5},
        {"max_questions": 2.0},
        *({name: 5} for name in ("api_key", "base_url", "endpoint", "model")),
        *({name: b"https://h/"} for name in ("api_key", "base_url", "endpoint", "model")),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any]) -> None:
    """At construction, before anything is opened; the error says which setting it is about."""
    urls = dict.fromkeys(("base_url", "endpoint"), "URL")
    words = {"api_key": "key", "model": "name", "headers": "header", **urls}
    (name,) = settings
    with pytest.raises(ConfigurationError, match=words.get(name, name)):
        JevDecisionModel(**{"api_key": KEY, **settings})


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("jev-1.13.0", (0.1, 0.2)),
        ("jev-1.14.0", (0.1, 0.2)),
        ("typesafe/jev-1.13-20260917", (0.1, 0.2)),
        ("typesafe/jev-1.14", (0.1, 0.2)),
        ("jev-1.13.1", (0.05, 0.1)),
        ("jev-1.15.0", (0.05, 0.1)),
        ("jev-2.0.0", (0.05, 0.1)),
        ("jev-latest", (0.05, 0.1)),
        ("xjev-1.13.0", (0.05, 0.1)),
    ],
)
def test_thresholds_belong_to_a_version(
    name: str, profile: tuple[float, float], caplog: pytest.LogCaptureFixture
) -> None:
    """An unknown version is warned about once and keeps more."""
    model = JevDecisionModel(KEY, model=name)
    assert model.thresholds == Thresholds(*profile)
    assert [model.thresholds_for(name) for _ in range(2)] == [Thresholds(*profile)] * 2
    assert len(caplog.records) == (profile == (0.05, 0.1))
