"""Choose a decision model from the environment; nothing is opened before it is first asked."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never
from weakref import WeakKeyDictionary

from agentscope_compaction.core.types import Thresholds
from agentscope_compaction.errors import ConfigurationError
from agentscope_compaction.models.endpoint import check_key, require_key, resolve_endpoint
from agentscope_compaction.models.jev import (
    DEFAULT_BASE_URL,
    DEFAULT_MODEL,
    JevDecisionModel,
)
from agentscope_compaction.models.profiles import CAUTIOUS_PROFILE, jev_thresholds

if TYPE_CHECKING:
    from agentscope.classifier import BinaryQuestion, ClassifierModelBase, ClassifierResponse

    from agentscope_compaction.models.seam import DecisionModel

__all__ = ["Backend", "LazyClassifier", "decision_model_from_env"]

OPENAI_MODEL = "gpt-6-luna"
"""The model AgentScope's ``OpenAIClassifierModel`` uses by default."""

logger = logging.getLogger("agentscope_compaction")


class Backend(StrEnum):
    """What ``DECISION_MODEL_BACKEND`` may name."""

    JEV = "jev"
    AGENTSCOPE = "agentscope"
    OPENAI = "openai"
    EMBEDDED = "embedded"


def decision_model_from_env(
    *, env: Mapping[str, str] | None = None, dotenv: bool = True
) -> DecisionModel:
    """Return the decision model that the environment asks for.

    ``DECISION_MODEL_BACKEND`` is ``jev`` (this package's client), ``agentscope`` (AgentScope's
    ``JevClassifierModel``), ``openai`` (AgentScope's ``OpenAIClassifierModel``) or ``embedded``;
    unset, it is ``jev`` if there is a key and ``embedded`` otherwise. ``DECISION_MODEL_API_KEY``,
    ``DECISION_MODEL_NAME`` and ``DECISION_MODEL_BASE_URL`` apply to the chosen one; without them
    ``TYPESAFE_API_KEY``, ``TYPESAFE_DEFAULT_MODEL`` and ``TYPESAFE_BASE_URL`` (for ``openai``:
    ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL``).

    Args:
        env: Variables; None takes those of the process.
        dotenv: Whether a ``.env`` file in the working directory fills in what is not set.

    Raises:
        ConfigurationError: An unknown backend, a missing or malformed key, a refused URL, or an
            unreadable ``.env``.
    """
    values = {**(_read_dotenv() if dotenv else {}), **(os.environ if env is None else env)}
    values = {name: value.strip() for name, value in values.items() if value.strip()}
    match _backend(values):
        case Backend.JEV:
            key, url, model = _jev_settings(values)
            return JevDecisionModel(key, url, model)
        case Backend.AGENTSCOPE:
            return _agentscope(*_jev_settings(values))
        case Backend.OPENAI:
            return _openai(values)
        case Backend.EMBEDDED:
            from agentscope_compaction.models.embedded import EmbeddedDecisionModel

            return EmbeddedDecisionModel()
        case never:
            assert_never(never)


class LazyClassifier:
    """An AgentScope classifier that is imported and built on its first call, per event loop."""

    def __init__(
        self, build: Callable[[], ClassifierModelBase], name: str, thresholds: Thresholds | None
    ) -> None:
        """Remember how to build; ``name`` is for ``repr`` only."""
        self.thresholds = thresholds
        """Keep thresholds of the model behind it; None when nothing is known about it."""
        self._build = build
        self._name = name
        self._built: WeakKeyDictionary[asyncio.AbstractEventLoop, ClassifierModelBase] = (
            WeakKeyDictionary()
        )

    def __repr__(self) -> str:
        return f"LazyClassifier({self._name})"

    async def __call__(
        self, state: dict[str, Any], questions: Mapping[str, BinaryQuestion]
    ) -> ClassifierResponse:
        """Ask the classifier.

        Raises:
            ConfigurationError: A package that the classifier needs is not installed.
        """
        loop = asyncio.get_running_loop()
        if loop not in self._built:
            try:
                self._built[loop] = self._build()
            except ImportError as error:
                raise ConfigurationError(
                    f"{self._name} needs a package that is missing; install "
                    "agentscope-compaction[jev] or AgentScope's extra for it"
                ) from error
        return await self._built[loop](state, questions)

    async def aclose(self) -> None:
        """Close the client that the classifier opened in the running event loop."""
        built = self._built.pop(asyncio.get_running_loop(), None)
        client = getattr(built, "client", None)
        close: Callable[[], Awaitable[None]] | None
        close = getattr(client, "aclose", None) or getattr(client, "close", None)
        if close is not None:
            await close()


def _backend(values: Mapping[str, str]) -> Backend:
    name = values.get("DECISION_MODEL_BACKEND")
    if name is not None:
        try:
            return Backend(name.lower())
        except ValueError:
            choices = ", ".join(Backend)
        raise ConfigurationError(f"DECISION_MODEL_BACKEND must be one of: {choices}")
    if _first(values, "DECISION_MODEL_API_KEY", "TYPESAFE_API_KEY"):
        return Backend.JEV
    if _first(values, "DECISION_MODEL_BASE_URL", "TYPESAFE_BASE_URL"):
        logger.warning(
            "a decision model URL is set, but no key and no DECISION_MODEL_BACKEND: "
            "using the embedded model"
        )
    return Backend.EMBEDDED


def _jev_settings(values: Mapping[str, str]) -> tuple[str, str, str]:
    return (
        _first(values, "DECISION_MODEL_API_KEY", "TYPESAFE_API_KEY"),
        _first(values, "DECISION_MODEL_BASE_URL", "TYPESAFE_BASE_URL") or DEFAULT_BASE_URL,
        _first(values, "DECISION_MODEL_NAME", "TYPESAFE_DEFAULT_MODEL") or DEFAULT_MODEL,
    )


def _agentscope(api_key: str, base_url: str, model: str) -> LazyClassifier:
    key = check_key(api_key)
    require_key(resolve_endpoint(base_url, None), key, {})

    def build() -> ClassifierModelBase:
        from agentscope.classifier import JevClassifierModel
        from agentscope.credential import TypeSafeCredential

        # The official client insists on a key; a loopback server ignores it.
        secret = key.get_secret_value() if key else "no-key"
        root = base_url.rstrip("/").removesuffix("/systemone").removesuffix("/v1")
        credential = TypeSafeCredential(api_key=secret, base_url=root)
        return JevClassifierModel(credential, model)

    return LazyClassifier(build, "agentscope", jev_thresholds(model) or CAUTIOUS_PROFILE)


def _openai(values: Mapping[str, str]) -> LazyClassifier:
    key = check_key(_first(values, "DECISION_MODEL_API_KEY", "OPENAI_API_KEY"))
    base_url = _first(values, "DECISION_MODEL_BASE_URL", "OPENAI_BASE_URL") or None
    if base_url is not None:
        resolve_endpoint(base_url, None)
    if key is None:
        raise ConfigurationError("no API key: set DECISION_MODEL_API_KEY or OPENAI_API_KEY")
    model = values.get("DECISION_MODEL_NAME", OPENAI_MODEL)

    def build() -> ClassifierModelBase:
        from agentscope.classifier import OpenAIClassifierModel
        from agentscope.credential import OpenAICredential

        return OpenAIClassifierModel(OpenAICredential(api_key=key, base_url=base_url), model)

    return LazyClassifier(build, "openai", None)


def _read_dotenv() -> dict[str, str]:
    """The variables of ``.env`` in the working directory; none without such a file."""
    path = Path.cwd() / ".env"
    if not path.is_file():
        return {}
    from dotenv import dotenv_values

    try:
        return {name: value or "" for name, value in dotenv_values(path).items()}
    except (OSError, UnicodeError):
        pass  # raised outside, since a decoder's error holds the file's content
    raise ConfigurationError("the .env file in the working directory cannot be read")


def _first(values: Mapping[str, str], *names: str) -> str:
    return next((values[name] for name in names if name in values), "")
