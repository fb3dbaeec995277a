"""The decision model the environment asks for, without touching network or heavy imports."""

import subprocess
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from agentscope.classifier import BinaryQuestion
from jevcompat.mock import MockConfig, Running  # type: ignore[import-untyped]

from agentscope_compaction.errors import ConfigurationError
from agentscope_compaction.models.env import LazyClassifier, decision_model_from_env
from agentscope_compaction.models.jev import JevDecisionModel

pytestmark = pytest.mark.anyio

KEY = "sk-test-0123456789abcdef"
EMBEDDED = "agentscope_compaction.models.embedded"


class StandIn:
    """Takes the place of the embedded model, whose own tests are elsewhere."""

    local = True


@pytest.fixture(autouse=True)
def embedded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An embedded model that costs nothing, and a working directory without ``.env``."""
    module = types.ModuleType(EMBEDDED)
    module.EmbeddedDecisionModel = StandIn  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, EMBEDDED, module)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("env", "kind"),
    [
        ({}, StandIn),
        ({"DECISION_MODEL_API_KEY": " "}, StandIn),
        ({"DECISION_MODEL_BACKEND": "", "OPENAI_API_KEY": KEY}, StandIn),
        ({"DECISION_MODEL_BACKEND": "embedded", "DECISION_MODEL_API_KEY": KEY}, StandIn),
        ({"DECISION_MODEL_API_KEY": KEY}, JevDecisionModel),
        ({"TYPESAFE_API_KEY": KEY}, JevDecisionModel),
        ({"DECISION_MODEL_BACKEND": " JEV ", "TYPESAFE_API_KEY": KEY}, JevDecisionModel),
        (
            {"DECISION_MODEL_BACKEND": "jev", "DECISION_MODEL_BASE_URL": "http://127.0.0.1:1"},
            JevDecisionModel,
        ),
        ({"DECISION_MODEL_BACKEND": "agentscope", "TYPESAFE_API_KEY": KEY}, LazyClassifier),
        ({"DECISION_MODEL_BACKEND": "openai", "OPENAI_API_KEY": KEY}, LazyClassifier),
    ],
)
def test_the_backend(env: Mapping[str, str], kind: type) -> None:
    """A named backend, or Jev with a key and the embedded model without."""
    model = decision_model_from_env(env=env)
    assert type(model) is kind
    assert KEY not in repr(model)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"DECISION_MODEL_BACKEND": "gpt"}, "jev, agentscope, openai, embedded"),
        ({"DECISION_MODEL_BACKEND": "jev"}, "no API key"),
        ({"DECISION_MODEL_BACKEND": "agentscope"}, "no API key"),
        ({"DECISION_MODEL_BACKEND": "openai", "TYPESAFE_API_KEY": KEY}, "no API key"),
        ({"DECISION_MODEL_API_KEY": "a b"}, "printable ASCII"),
        ({"DECISION_MODEL_API_KEY": KEY, "DECISION_MODEL_BASE_URL": "http://host"}, "https"),
        (
            {
                "DECISION_MODEL_BACKEND": "openai",
                "DECISION_MODEL_API_KEY": KEY,
                "DECISION_MODEL_BASE_URL": "http://host",
            },
            "https",
        ),
    ],
)
def test_a_setting_that_cannot_work_is_refused_at_once(
    env: Mapping[str, str], message: str
) -> None:
    """The error names what is right, not the key."""
    with pytest.raises(ConfigurationError, match=message) as caught:
        decision_model_from_env(env=env)
    assert KEY not in str(caught.value)


def test_settings_come_from_the_given_variables_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mapping passed in stands for the whole environment."""
    monkeypatch.setenv("DECISION_MODEL_BASE_URL", "https://process.example")
    monkeypatch.setenv("TYPESAFE_DEFAULT_MODEL", "jev-process")
    model = decision_model_from_env(env={"DECISION_MODEL_API_KEY": KEY})
    assert repr(model) == (
        "JevDecisionModel(model='jev-1.13.0', endpoint='https://api.typesafe.ai/v1/systemone')"
    )


def test_a_dotenv_file_fills_in_and_the_environment_wins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The file is read from the working directory; setting a variable to nothing unsets it."""
    lines = [f'DECISION_MODEL_API_KEY="{KEY}"', "export DECISION_MODEL_NAME=jev-file", "EMPTY"]
    (tmp_path / ".env").write_text("\n".join(lines))
    for name in ("DECISION_MODEL_API_KEY", "DECISION_MODEL_BACKEND", "DECISION_MODEL_NAME"):
        monkeypatch.delenv(name, raising=False)
    model = decision_model_from_env()
    assert isinstance(model, JevDecisionModel)
    assert model.model == "jev-file"
    monkeypatch.setenv("DECISION_MODEL_NAME", "jev-process")
    assert "jev-process" in repr(decision_model_from_env())
    assert isinstance(decision_model_from_env(env={"DECISION_MODEL_API_KEY": ""}), StandIn)
    assert isinstance(decision_model_from_env(env={}, dotenv=False), StandIn)


def test_an_unreadable_dotenv_file_is_named_not_shown(tmp_path: Path) -> None:
    """A decoding error would carry the file's bytes."""
    (tmp_path / ".env").write_bytes(b"TYPESAFE_API_KEY=\xff" + KEY.encode())
    with pytest.raises(ConfigurationError, match=r"\.env") as caught:
        decision_model_from_env(env={})
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_url_without_key_and_backend_is_pointed_out(caplog: pytest.LogCaptureFixture) -> None:
    """Someone who sets a URL expects it to be used."""
    decision_model_from_env(env={"DECISION_MODEL_BASE_URL": "http://127.0.0.1:1"})
    assert "using the embedded model" in caplog.text


@pytest.mark.parametrize("backend", ["jev", "agentscope"])
async def test_both_clients_of_the_service_answer(backend: str) -> None:
    """The same variables serve either client, down to a real server."""
    with Running(MockConfig(key=KEY)) as server:
        env = {
            "DECISION_MODEL_BACKEND": backend,
            "DECISION_MODEL_API_KEY": KEY,
            "DECISION_MODEL_BASE_URL": f"{server.url}/v1",
        }
        model: Any = decision_model_from_env(env=env)
        response = await model({"goal": "x"}, {"call_t1": BinaryQuestion(instructions="Is it?")})
        await model.aclose()
    assert response.model == "jevcompat-mock-0.1"
    assert model.thresholds == (0.1, 0.2)


async def test_a_missing_package_is_named() -> None:
    """The import happens on the first call, and its failure says what to install."""

    def build() -> Any:
        raise ImportError("no such package")

    model = LazyClassifier(build, "agentscope", None)
    with pytest.raises(ConfigurationError, match=r"agentscope-compaction\[jev\]"):
        await model({}, {})
    await model.aclose()


def test_nothing_heavy_is_imported_before_the_first_call() -> None:
    """Choosing a model costs no HTTP library and no provider's client."""
    program = (
        "import sys\n"
        "from agentscope_compaction.models.env import decision_model_from_env as choose\n"
        "for name in ('jev', 'agentscope', 'openai'):\n"
        "    choose(env={'DECISION_MODEL_BACKEND': name, 'DECISION_MODEL_API_KEY': 'k'})\n"
        "print([m for m in ('httpx', 'openai', 'dotenv', 'agentscope') if m in sys.modules])\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(root)},
        check=True,
    )
    assert done.stdout.strip() == "[]"
