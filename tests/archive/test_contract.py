"""What every archive promises, on each of them: references, entries, results and outcomes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from agentscope_compaction.archive import (
    Archive,
    ArchiveRef,
    AuditedArchive,
    InMemoryArchive,
    Outcome,
    OutcomeKind,
    recall_counts,
)
from agentscope_compaction.core.types import CompactionProposal
from agentscope_compaction.errors import ArchiveError, ArchiveNotFoundError
from tests.archive.conftest import AnyArchive, Build

pytestmark = pytest.mark.anyio


async def test_is_an_archive(archive: AnyArchive) -> None:
    """Both shipped archives satisfy the protocols."""
    assert isinstance(archive, Archive)
    assert isinstance(archive, AuditedArchive)


async def test_references_are_opaque_safe_and_reproducible(
    archive: AnyArchive, reply: Build
) -> None:
    """A reference is short, URL-safe, and follows from session and messages alone."""
    ref = await archive.save("s", reply(2), meta={"a": 1})
    assert isinstance(ref, ArchiveRef)
    assert len(ref) <= 128
    assert ref.replace("_", "").replace("-", "").isalnum()
    assert ref.isascii()
    assert await InMemoryArchive().save("s", reply(2)) == ref
    assert await archive.save("t", reply(2)) != ref
    assert await archive.save("s", reply(3)) != ref
    assert await archive.save("s", [{"a": 1}]) != await archive.save("s", [{"a": 1.0}])


async def test_saving_again_renews(archive: AnyArchive, reply: Build) -> None:
    """The same messages again: same reference, newest in the list, meta replaced where given."""
    first = await archive.save("s", reply(1), meta={"n": 1})
    second = await archive.save("s", reply(2))
    assert [e.ref for e in await archive.list()] == [second, first]
    assert await archive.save("s", reply(1)) == first
    assert [(e.ref, e.meta) for e in await archive.list()] == [(first, {"n": 1}), (second, {})]
    await archive.save("s", reply(1), meta={"n": 2})
    assert (await archive.entry(first)).meta == {"n": 2}
    assert len(await archive.list()) == 2


async def test_entries_describe_snapshots(archive: AnyArchive, reply: Build) -> None:
    """An entry says what was saved, for whom, when, and how large it is."""
    meta = {"options": {"keep_threshold": 0.5}, "\ud83d": [float("inf"), 10**5000]}
    before = datetime.now(UTC)
    ref = await archive.save("s", [{"é": 1}, {"content": [{}, {}]}], meta=meta)
    (entry,) = await archive.list("s")
    assert entry.ref == ref
    assert entry.session_id == "s"
    assert before <= entry.created_at <= datetime.now(UTC)
    assert entry.created_at.utcoffset() == timedelta(0)
    assert entry.messages == 2
    assert entry.chars == len('[{"é":1},{"content":[{},{}]}]')
    assert entry.meta == meta
    assert await archive.entry(ref) == entry


async def test_list_is_newest_first_and_by_session(archive: AnyArchive, reply: Build) -> None:
    """The newest comes first, and a session's list holds its own."""
    refs = [await archive.save(f"s{n % 2}", reply(1, seed=n)) for n in range(6)]
    assert [e.ref for e in await archive.list()] == refs[::-1]
    assert [e.ref for e in await archive.list("s1")] == refs[5::-2]
    assert await archive.list("nobody") == []
    assert await archive.survey("s1") == (await archive.list("s1"), [])


async def test_load_result_finds_the_last(archive: AnyArchive, reply: Build) -> None:
    """A call's result block is found; of several with its id the last; else not found."""
    messages = reply(40)
    messages[1]["content"].append({"type": "tool_result", "id": "call_0_0", "output": "again"})
    messages[1]["content"].append({"type": "tool_result", "id": 5, "output": "number"})
    messages[1]["content"].append({"type": "tool_call", "id": "pending"})
    ref = await archive.save("s", messages)
    assert await archive.load_result(ref, "call_0_7") == messages[1]["content"][15]
    assert (await archive.load_result(ref, "call_0_0"))["output"] == "again"
    assert (await archive.load_result(ref, 5))["output"] == "number"  # type: ignore[arg-type]
    for absent in ("pending", "5", "", "call_0_40"):
        with pytest.raises(ArchiveNotFoundError):
            await archive.load_result(ref, absent)


@pytest.mark.parametrize("ref", ["", "nothing", "ar_x", "\0", "\ud83d", "x" * 9999, "' OR 1=1"])
async def test_unknown_references(
    archive: AnyArchive, ref: str, proposal: CompactionProposal
) -> None:
    """Whatever names nothing is not found, by every method that takes a reference."""
    await archive.save("s", [])
    with pytest.raises(ArchiveNotFoundError):
        await archive.load(ref)
    with pytest.raises(ArchiveNotFoundError):
        await archive.load_result(ref, "c")
    with pytest.raises(ArchiveNotFoundError):
        await archive.record(ref, proposal, "accepted")
    with pytest.raises(ArchiveNotFoundError):
        await archive.history(ref)
    with pytest.raises(ArchiveNotFoundError):
        await archive.entry(ref)


async def test_wrong_arguments_are_archive_errors(
    archive: AnyArchive, proposal: CompactionProposal
) -> None:
    """Whatever is no history, session id, meta, proposal or outcome is refused as such."""
    with pytest.raises(ArchiveError):
        await archive.save("s", {"role": "user"})  # type: ignore[arg-type]
    with pytest.raises(ArchiveError):
        await archive.save(5, [])  # type: ignore[arg-type]
    with pytest.raises(ArchiveError):
        await archive.list(5)  # type: ignore[arg-type]
    with pytest.raises(ArchiveError):
        await archive.delete(None)  # type: ignore[arg-type]
    for meta in (5, "options", ["options"]):
        with pytest.raises(ArchiveError):
            await archive.save("s", [], meta=meta)  # type: ignore[arg-type]
    ref = await archive.save("s", [])
    for given in (None, "t1", proposal.model_dump(mode="json")):
        with pytest.raises(ArchiveError):
            await archive.record(ref, given, "accepted")  # type: ignore[arg-type]
    wrong: list[Any] = ["maybe", {"kind": "accepted", "calls": "t1"}, {"calls": []}, 5, {"x": 1}]
    for outcome in wrong:
        with pytest.raises(ArchiveError):
            await archive.record(ref, proposal, outcome)
    assert await archive.history(ref) == []


async def test_outcomes_are_kept_in_order(
    archive: AnyArchive, reply: Build, proposal: CompactionProposal
) -> None:
    """Every outcome is kept with proposal, options, who, why and when; recalls are counted."""
    ref = await archive.save("s", reply(1), meta={"options": {"keep_threshold": 0.5}})
    await archive.record(ref, proposal, "proposed")
    partly = Outcome(OutcomeKind.PARTLY, ("t1", "\ud83d\0"), "reviewer", "rest is needed")
    await archive.record(ref, proposal, partly)
    for _ in range(2):
        await archive.record(ref, proposal, {"kind": "recalled", "calls": ["call_0_0"]})
    await archive.record(ref, proposal, OutcomeKind.RESTORED)
    await archive.save("s", reply(1))
    records = await archive.history(ref)
    kinds = ["proposed", "partly", "recalled", "recalled", "restored"]
    assert [r.outcome.kind for r in records] == kinds
    assert records[1].outcome == partly
    times = [r.recorded_at for r in records]
    assert times == sorted(times)
    assert all(r.options == {"keep_threshold": 0.5} and r.ref == ref for r in records)
    kept = proposal.model_dump(mode="json", exclude={"messages"})
    assert all(r.proposal == kept for r in records)
    assert recall_counts(records) == {"call_0_0": 2}


async def test_concurrent_saves_in_one_loop(archive: AnyArchive, reply: Build) -> None:
    """Tasks that save at once lose nothing."""
    refs: dict[int, str] = {}

    async def save(n: int) -> None:
        refs[n] = await archive.save(f"s{n % 3}", reply(n))

    async with anyio.create_task_group() as group:
        for n in range(12):
            group.start_soon(save, n)
    for n, ref in refs.items():
        assert await archive.load(ref) == reply(n)


async def test_close_twice(archive: AnyArchive) -> None:
    """Closing is idempotent, and a later use opens again."""
    ref = await archive.save("s", [{"content": []}])
    await archive.close()
    await archive.close()
    assert await archive.load(ref) == [{"content": []}]
