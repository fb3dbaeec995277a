"""A user's program on agents: decorator, hook, by hand, and parts of their own; never run."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self, assert_type

from agentscope.agent import Agent
from agentscope.classifier import BinaryAnswer, BinaryQuestion, ClassifierResponse
from agentscope.message import Msg
from agentscope.middleware import MiddlewareBase
from agentscope.model import ChatModelBase

from agentscope_compaction import (
    Archive,
    ArchiveEntry,
    ArchiveRef,
    CompactionMiddleware,
    CompactionMixin,
    CompactionOptions,
    CompactionProposal,
    Compactor,
    InMemoryArchive,
    Outcome,
    OutcomeKind,
    SqlArchive,
    Thresholds,
    __version__,
    accept_all,
    accept_if,
    archive_from_url,
    compaction_middlewares,
    decide_pending,
    with_compaction,
)


class MyModel:
    """A decision model is anything that is called like one; what it says of itself is optional."""

    local = False
    thresholds = Thresholds(0.1, 0.2)

    async def __call__(
        self, state: dict[str, Any], questions: Mapping[str, BinaryQuestion]
    ) -> ClassifierResponse:
        """Keep everything."""
        return ClassifierResponse(model="mine", content={q: BinaryAnswer(1.0) for q in questions})


class MyArchive:
    """An archive is what has its methods; nothing is inherited."""

    async def save(
        self,
        session_id: str,
        messages: Sequence[dict[str, Any]],
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> ArchiveRef:
        """Save."""
        return ArchiveRef("ref")

    async def load(self, ref: str) -> list[dict[str, Any]]:
        """Load."""
        return []

    async def load_result(self, ref: str, call_id: str) -> dict[str, Any]:
        """Load one output."""
        return {}

    async def record(
        self, ref: str, proposal: CompactionProposal, outcome: Outcome | str | Mapping[str, Any]
    ) -> None:
        """Record an outcome."""

    async def list(self, session_id: str | None = None) -> list[ArchiveEntry]:
        """List."""
        return []

    async def delete(self, session_id: str) -> int:
        """Delete."""
        return 0

    async def prune(self, older_than: datetime) -> int:
        """Prune."""
        return 0

    async def close(self) -> None:
        """Close."""

    async def __aenter__(self) -> Self:
        """Open."""
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""


compactor = Compactor(MyModel(), MyArchive(), eligible_tool_names=["Read"])


@with_compaction(compactor, trigger_ratio=0.5)
class Coder(CompactionMixin):
    """An agent that decides itself."""

    def review_compaction(self, proposal: CompactionProposal) -> bool:
        """Accept what changes something."""
        return proposal.changed


def some(agent: Agent, proposal: CompactionProposal) -> list[str]:
    """A reviewer that accepts some."""
    return [decision.id for decision in proposal.decisions]


async def later(agent: Agent, proposal: CompactionProposal) -> bool:
    """A reviewer that takes its time."""
    return False


def nothing(agent: Agent, proposal: CompactionProposal) -> int:
    """No reviewer."""
    return 0


async def program(model: ChatModelBase, messages: list[Msg]) -> None:
    """Use agents as the README does."""
    archives: list[Archive] = [MyArchive(), InMemoryArchive(), SqlArchive("a.db")]
    assert_type(archive_from_url("memory:"), SqlArchive | InMemoryArchive)
    assert_type(__version__, str)

    coder = Coder(name="coder", system_prompt="You fix bugs.", model=model)
    assert_type(coder, Coder)
    proposal = await coder.propose_compaction(goal="fix it")
    assert_type(proposal, CompactionProposal)
    assert_type(proposal.to_html(), str)
    assert_type(await coder.accept_compaction(proposal, calls=["t1"]), tuple[str, ...])
    assert_type(await coder.restore_compaction(), tuple[str, ...])
    await coder.reject_compaction(proposal, reason="keep it")

    for review in (accept_all, accept_if(min_saved_tokens=100), some):
        CompactionMiddleware(compactor, review=review)
    hooks: list[MiddlewareBase] = [CompactionMiddleware(compactor, later, target_tokens=9_000)]
    CompactionMiddleware(compactor, nothing)  # type: ignore[arg-type]
    CompactionMiddleware(compactor, trigger=0.5)  # type: ignore[call-arg]
    agent = Agent(name="plain", system_prompt="", model=model, middlewares=hooks)
    assert_type(with_compaction(compactor, review=some)(agent), Agent)
    assert_type(with_compaction(compactor)(Coder), type[Coder])

    proposal = await compactor.propose(agent, target_tokens=9_000)
    proposal = await compactor.propose(messages, goal="go on", session_id="s")
    assert_type(await compactor.accept(agent, proposal, ["t1"], decided_by="me"), tuple[str, ...])
    assert_type(await compactor.restore(agent, proposal), tuple[str, ...])
    await compactor.reject(agent, proposal, "keep it")
    decide_pending(agent.state, True)
    compaction_middlewares(compactor, some, trigger_ratio=0.5)

    async with SqlArchive() as archive:
        Compactor(None, archive, CompactionOptions.for_agents(), ["Read"], profile="profile.json")
        ref = await archive.save("s", [], meta={"a": 1})
        assert_type(ref, ArchiveRef)
        await archive.record(ref, proposal, Outcome(OutcomeKind.ACCEPTED, ("t1",)))
        assert_type(await archive.list("s"), list[ArchiveEntry])
    Compactor(archive="a.db")  # type: ignore[arg-type]
    assert archives
