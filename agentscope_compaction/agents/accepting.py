"""Carry out decisions with an archive at hand: load the original, then swap synchronously."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from pydantic import ValidationError

from agentscope_compaction.agents.apply import accept_edits, restore_edits
from agentscope_compaction.agents.bounded import stops_asked
from agentscope_compaction.agents.notes import Notes
from agentscope_compaction.agents.read_cache import evict_unseen
from agentscope_compaction.agents.settings import names_in
from agentscope_compaction.archive.protocol import Archive, AuditedArchive
from agentscope_compaction.archive.records import ArchiveRecord
from agentscope_compaction.core.jsontext import compact, digest
from agentscope_compaction.core.options import CompactionOptions
from agentscope_compaction.core.rebuild import Edit, rebuild
from agentscope_compaction.core.replay import edits_of
from agentscope_compaction.core.types import CompactionProposal, JSONObject
from agentscope_compaction.errors import (
    ArchiveIntegrityError,
    ArchiveNotFoundError,
    ConfigurationError,
)

if TYPE_CHECKING:
    from agentscope.agent import Agent

__all__ = ["accept", "load_proposal", "newest_proposal", "restore"]


async def accept(
    archive: Archive,
    agent: Agent,
    proposal: CompactionProposal,
    calls: Collection[str] | None,
    *,
    reply_over: bool | None,
) -> tuple[tuple[str, ...], bool]:
    """Apply the chosen decisions; return the ids carried out, and whether some were left out."""
    ref, original, edits = await _prepared(archive, proposal)
    chosen = _chosen(proposal, edits, calls)
    before = list(agent.state.context)
    change = accept_edits(agent.state, original, edits, chosen, ref, reply_over=reply_over)
    notes = Notes(agent.state)
    if change.done:
        evict_unseen(agent.state, before)
        notes.add_accepted(proposal.proposal_id, ref)
    notes.clear_pending(proposal.proposal_id)
    return change.done, chosen != set(edits)


async def restore(archive: Archive, agent: Agent, proposal: CompactionProposal) -> tuple[str, ...]:
    """Undo a proposal in the live context; return the ids undone."""
    ref, original, edits = await _prepared(archive, proposal)
    change = restore_edits(agent.state, original, edits, ref)
    Notes(agent.state).remove_accepted(proposal.proposal_id)
    return change.done


async def load_proposal(archive: Archive, proposal_id: str, archive_ref: str) -> CompactionProposal:
    """Build a proposal from the archive's records."""
    for record in reversed(await _history(archive, archive_ref)):
        if record.proposal.get("proposal_id") == proposal_id:
            return await _rebuilt(archive, archive_ref, record)
    raise ArchiveNotFoundError("the archive holds no such proposal")


async def newest_proposal(archive: Archive, archive_ref: str) -> CompactionProposal | None:
    """Build the newest proposal about a snapshot; None when there is none."""
    records = await _history(archive, archive_ref)
    return await _rebuilt(archive, archive_ref, records[-1]) if records else None


async def _history(archive: Archive, archive_ref: str) -> Sequence[ArchiveRecord]:
    if not isinstance(archive, AuditedArchive):
        raise ConfigurationError("this archive cannot read its records")
    return await archive.history(archive_ref)


async def _rebuilt(archive: Archive, archive_ref: str, record: ArchiveRecord) -> CompactionProposal:
    fields = {**record.proposal, "archive_ref": archive_ref, "messages": []}
    proposal = CompactionProposal.model_validate(fields)
    _, original, edits = await _prepared(archive, proposal)
    return proposal.model_copy(update={"messages": rebuild(original, list(edits.values()))})


async def _prepared(
    archive: Archive, proposal: CompactionProposal
) -> tuple[str, list[JSONObject], dict[str, Edit]]:
    """Load the original and derive the proposal's edits from it."""
    ref = proposal.archive_ref
    if ref is None:
        raise ConfigurationError("the proposal was made without an archive")
    asked = stops_asked()
    original = await archive.load(ref)
    if stops_asked() > asked:
        raise asyncio.CancelledError  # the archive caught it; nothing is applied any more
    return ref, original, await asyncio.to_thread(_edits, original, proposal, ref)


def _edits(original: list[JSONObject], proposal: CompactionProposal, ref: str) -> dict[str, Edit]:
    if digest(compact(original)) != proposal.snapshot_digest:
        raise ArchiveIntegrityError("the archived original is not the proposal's snapshot")
    try:
        options = CompactionOptions.model_validate(proposal.stats["options"])
    except (KeyError, ValidationError):
        raise ConfigurationError(
            "the proposal does not hold the options it was made with"
        ) from None
    refs = {decision.call_id: ref for decision in proposal.decisions}
    return edits_of(original, proposal.decisions, options, refs)


def _chosen(
    proposal: CompactionProposal, edits: Collection[str], calls: Collection[str] | None
) -> set[str]:
    """Resolve decision ids or call ids to the decisions that act."""
    if calls is None:
        return set(edits)
    chosen: set[str] = set()
    for name in names_in(calls, "calls"):
        named = {d.id for d in proposal.decisions if name == d.id}  # a call id may read "t3" too
        named = named or {d.id for d in proposal.decisions if name == d.call_id}
        if not named:
            raise ConfigurationError(f"the proposal has no call {name!r}")
        chosen |= named
    return chosen & set(edits)
