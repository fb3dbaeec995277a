"""Arguments that are none get one clear error at once; foreign failures undo no decision."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from agentscope_compaction import (
    CompactionMiddleware,
    CompactionOptions,
    Compactor,
    ConfigurationError,
    InMemoryArchive,
    InvalidSnapshotError,
    with_compaction,
)

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "keywords",
    [
        {"options": "x"},
        {"options": 5},
        {"options": []},
        {"options": {"unknown_option": 1}},
        {"options": {"keep_threshold": 2}},
        {"archive": "a.db"},
        {"archive": 5},
        {"eligible_tool_names": "Read"},
    ],
)
def test_a_compactor_refuses_what_is_none(keywords: dict[str, Any]) -> None:
    """A wrong type is named when the compactor is built, not at the first proposal."""
    with pytest.raises(ConfigurationError):
        Compactor(**keywords)


def test_options_may_be_a_mapping() -> None:
    """Options read from a file become options."""
    assert Compactor(options={"dedupe": True}).options == CompactionOptions(dedupe=True)


@pytest.mark.parametrize("value", [5, "x", None, Compactor])
@pytest.mark.parametrize("form", [CompactionMiddleware, with_compaction])
def test_hook_and_decorator_refuse_what_is_no_compactor(form: Any, value: Any) -> None:
    """A forgotten compactor is found at once, before any agent runs."""
    if value is Compactor:
        value = object()
    with pytest.raises(ConfigurationError, match="a compactor is needed"):
        form(value)


@pytest.mark.parametrize("subject", [None, 5, "abc", b"abc", {"messages": []}, iter(()), object()])
async def test_what_is_neither_agent_nor_messages(subject: Any) -> None:
    """Something else than an agent or a list has no history."""
    archive = InMemoryArchive()
    with pytest.raises(ConfigurationError, match="an agent or a list of messages is needed"):
        await Compactor(archive=archive).propose(subject, goal="go on")


@pytest.mark.parametrize("messages", [[1], ["a"], [None], [{"role": "user", "content": []}, 5]])
async def test_what_is_no_message(messages: Any) -> None:
    """An item that is no message is a bad snapshot, as in ``compact_context``."""
    with pytest.raises(InvalidSnapshotError):
        await Compactor(archive=InMemoryArchive()).propose(messages, goal="go on")


@pytest.mark.parametrize("error", [OSError("disk SECRET-7"), RuntimeError("SECRET-7")])
@pytest.mark.parametrize("step", ["accept", "reject", "restore"])
async def test_a_foreign_archive_that_cannot_record_undoes_no_decision(
    lab: Any, step: str, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever its archive raises, a decision that was carried out is returned as such."""
    agent = await lab.worked()
    proposal = await agent.propose_compaction(goal="sum up")
    if step == "restore":
        await agent.accept_compaction(proposal)

    async def fail(*args: object) -> None:
        raise error

    lab.archive.record = fail
    with caplog.at_level(logging.WARNING):
        if step == "reject":
            await agent.reject_compaction(proposal)
        elif step == "accept":
            assert await agent.accept_compaction(proposal) == ("t1", "t2", "t3", "t4", "t5")
        else:
            assert await agent.restore_compaction(proposal) == ("t1", "t2", "t3", "t4", "t5")
    assert len(lab.cut(agent)) == (5 if step == "accept" else 0)
    assert agent.pending_proposal is None
    assert type(error).__name__ in caplog.text and "SECRET-7" not in caplog.text
