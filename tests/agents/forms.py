"""The ways to say that an agent compacts."""

from __future__ import annotations

from typing import Any

from agentscope.agent import Agent

from agentscope_compaction import (
    CompactionMiddleware,
    CompactionMixin,
    with_compaction,
)

FORMS = ["hook", "class", "instance", "mixin", "both"]


def build(lab: Any, form: str, compactor: Any, turns: Any, **kwargs: Any) -> Any:
    """Return an agent that compacts, in one of the ways to say so."""
    base: Any = kwargs.pop("base", Agent)
    model = {key: kwargs.pop(key) for key in ("context_size", "stream") if key in kwargs}
    more: dict[str, Any] = {"cls": base} | {
        k: kwargs.pop(k) for k in ("state", "tools") if k in kwargs
    }
    if form in ("hook", "both"):
        more["middlewares"] = [CompactionMiddleware(compactor, **kwargs)]
    decorate = with_compaction(compactor, **kwargs)
    if form in ("class", "both"):
        more["cls"] = decorate(base)
    if form == "mixin":

        @decorate
        class Typed(CompactionMixin, base):  # type: ignore[misc]
            pass

        more["cls"] = Typed
    agent = lab.agent(turns, **more, **model)
    return decorate(agent) if form == "instance" else agent
