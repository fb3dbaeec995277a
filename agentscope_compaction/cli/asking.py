"""Ask a decision model for one proposal, from synchronous code."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, cast

from agentscope_compaction.cli.streams import console_for
from agentscope_compaction.compact import compact_context
from agentscope_compaction.models.embedded import EmbeddedDecisionModel
from agentscope_compaction.models.env import Backend, decision_model_from_env
from agentscope_compaction.models.seam import DecisionModel

if TYPE_CHECKING:
    from agentscope.classifier import BinaryQuestion, ClassifierResponse

    from agentscope_compaction.core.types import CompactionProposal

__all__ = ["Explained", "ask_for_proposal", "choose_model"]


def choose_model(backend: Backend | None) -> DecisionModel:
    """Return the named decision model, or the one that the environment asks for.

    Raises:
        ConfigurationError: It cannot work, for want of a key for instance.
    """
    if backend is None:
        return decision_model_from_env()
    return decision_model_from_env(env={**os.environ, "DECISION_MODEL_BACKEND": backend.value})


def ask_for_proposal(request: dict[str, Any], model: DecisionModel) -> CompactionProposal:
    """Run ``compact_context``, with a spinner where somebody watches, and close the model."""
    with _spinner():
        return asyncio.run(_asked(request, model))


async def _asked(request: dict[str, Any], model: DecisionModel) -> CompactionProposal:
    try:
        return await compact_context(request, decision_model=model)
    finally:
        close = getattr(model, "aclose", None)
        if close is not None:
            await close()


def _spinner() -> AbstractContextManager[object]:
    if not sys.stderr.isatty():
        return nullcontext()
    return console_for(sys.stderr).status("Judging the calls ...")


class Explained:
    """The embedded model, with what it says about its answers kept for whoever asks later."""

    local = True
    """As the model inside: it runs in this process."""

    def __init__(self, inner: EmbeddedDecisionModel) -> None:
        self.thresholds = inner.thresholds
        self.explanations: dict[str, dict[str, Any]] = {}
        """Question id to ``facts`` and ``contributions``; see ``EmbeddedDecisionModel.explain``."""
        self._inner = inner

    async def __call__(
        self, state: dict[str, Any], questions: Mapping[str, BinaryQuestion]
    ) -> ClassifierResponse:
        """Ask the model inside."""
        response = await self._inner(state, questions)
        said = cast("dict[str, Any]", response.metadata or {}).get("explanations", {})
        self.explanations.update(said)
        return response
