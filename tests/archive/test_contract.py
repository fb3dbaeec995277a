"""What every archive promises, on each of them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
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
    SqlArchive,
    recall_counts,
)
from agentscope_compaction.core.types import CompactionProposal
from agentscope_compaction.errors import (
    ArchiveError,
    ArchiveNotFoundError,
    ConfigurationError,
)

pytestmark = pytest.mark.anyio

AnyArchive = SqlArchive | InMemoryArchive
Build = Callable[..., list[dict[str, Any]]]
IDS = [
    "../../escape",
    "..\\x",
    "a/b",
    "CON",
    "",
    "x" * 5000,
    "\0",
    "a\0b",
    "\ud83d",
    "😀",
    "'; DROP TABLE compaction_session; --",
    "%s %(x)s :name ?",
    " ",
    "\n",
    "é",
    "e\u0301",
]
ODD: list[Any] = [
    None,
    True,
    False,
    0,
    -0.0,
    0.0,
    1,
    1.0,
    1e308,
    5e-324,
    10**30,
    10**5000,
    -(10**5000),
    "",
    "\0",
    "\ud83d",
    "\ud83d\ude00",
    "😀",
    "NaN",
    "\u2028",
    [],
    {},
    [[]],
    {"": {"\ud83d": []}},
    {"b": 1, "a": 2},
]


def deep(levels: int) -> list[Any]:
    """Lists in lists."""
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def spelled(value: object) -> object:
    """A value in which 1, 1.0 and True, or 0.0 and -0.0, or two orders of keys, differ."""
    if isinstance(value, dict):
        return [(key, spelled(item)) for key, item in value.items()]
    if isinstance(value, list):
        return [spelled(item) for item in value]
    return type(value), hex(value) if isinstance(value, int) else repr(value)


async def test_is_an_archive(archive: AnyArchive) -> None:
    """Both shipped archives satisfy the protocols."""
    assert isinstance(archive, Archive)
    assert isinstance(archive, AuditedArchive)


async def test_round_trip_is_exact_for_odd_values(archive: AnyArchive) -> None:
    """Values that JSON libraries bend come back with their type, order and every code point."""
    messages: list[dict[str, Any]] = [
        {"content": ODD, "id": 7},
        {"content": "text"},
        {},
        {"content": {"a": ODD}},
    ]
    loaded = await archive.load(await archive.save("s", messages))
    assert loaded == messages
    assert spelled(loaded) == spelled(messages)


async def test_nan_and_depth_round_trip(archive: AnyArchive) -> None:
    """NaN, the infinities and nesting that json refuses come back."""
    values = [float("nan"), float("inf"), float("-inf")]
    loaded = await archive.load(await archive.save("s", [{"content": [values, deep(3000)]}]))
    odd, nested = loaded[0]["content"]
    assert repr(odd) == repr(values)
    levels = 0
    while nested:
        nested, levels = nested[0], levels + 1
    assert levels == 3000


async def test_five_megabytes_round_trip(archive: AnyArchive) -> None:
    """A string of five megabytes comes back."""
    messages = [{"content": [{"type": "text", "text": "ab\0cé" * 1_000_000}]}]
    assert await archive.load(await archive.save("s", messages)) == messages


async def test_empty_history(archive: AnyArchive) -> None:
    """No messages are a history too."""
    ref = await archive.save("s", [])
    assert await archive.load(ref) == []
    assert [(e.messages, e.chars) for e in await archive.list()] == [(0, 2)]


async def test_input_is_untouched_and_output_is_fresh(archive: AnyArchive, reply: Build) -> None:
    """Saving changes nothing, and what is loaded shares nothing with what was saved."""
    messages = reply(3)
    ref = await archive.save("s", messages)
    assert messages == reply(3)
    loaded = await archive.load(ref)
    loaded[1]["content"].clear()
    messages.clear()
    assert await archive.load(ref) == reply(3)


async def test_history_that_grows_meanwhile_is_saved_as_it_was(
    archive: AnyArchive, reply: Build
) -> None:
    """Blocks appended while a save is on its way do not enter it."""
    messages = reply(200)
    refs: list[str] = []

    async def save() -> None:
        refs.append(await archive.save("s", messages))

    async with anyio.create_task_group() as group:
        group.start_soon(save)
        await anyio.lowlevel.checkpoint()
        messages[1]["content"].append({"type": "text", "text": "later"})
        messages.append({"content": []})
    assert await archive.load(refs[0]) == reply(200)


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


async def test_ids_are_data(archive: AnyArchive) -> None:
    """Ids of any length and characters name sessions, messages and calls, each distinct."""
    refs = {}
    for session in IDS:
        blocks = [{"type": "tool_result", "id": i, "output": f"{n}"} for n, i in enumerate(IDS)]
        refs[session] = await archive.save(session, [{"id": session, "content": blocks}])
    assert len(set(refs.values())) == len(IDS)
    for n, session in enumerate(IDS):
        assert (await archive.load(refs[session]))[0]["id"] == session
        assert (await archive.load_result(refs[session], session))["output"] == f"{n}"
        assert [e.ref for e in await archive.list(session)] == [refs[session]]
    assert {e.session_id for e in await archive.list()} == set(IDS)
    for session in IDS:
        assert await archive.delete(session) == 1
    assert await archive.list() == []


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


def cyclic() -> list[Any]:
    """A list that holds itself."""
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "content", [[object()], [b"x"], [(1,)], [{1: 2}], [{None: 1}], cyclic(), [{"a": {1, 2}}]]
)
async def test_what_is_not_json_is_refused(archive: AnyArchive, content: list[Any]) -> None:
    """Types that would come back different, or not at all, are refused; nothing is stored."""
    with pytest.raises(ArchiveError):
        await archive.save("s", [{"content": content}])
    with pytest.raises(ArchiveError):
        await archive.save("s", [{"other": content}])
    with pytest.raises(ArchiveError):
        await archive.save("s", [], meta={"a": content})
    assert await archive.list() == []


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


async def test_delete_leaves_other_sessions_whole(
    archive: AnyArchive, reply: Build, proposal: CompactionProposal
) -> None:
    """Deleting a session takes its snapshots and records, and no block another session holds."""
    gone = [await archive.save("a", reply(n)) for n in (1, 5, 30)]
    kept = await archive.save("b", reply(30))
    for ref in (gone[0], kept):
        await archive.record(ref, proposal, "accepted")
    assert await archive.delete("a") == 3
    assert await archive.delete("a") == 0
    for ref in gone:
        with pytest.raises(ArchiveNotFoundError):
            await archive.load(ref)
    assert await archive.load(kept) == reply(30)
    assert len(await archive.history(kept)) == 1
    assert [e.ref for e in await archive.list()] == [kept]
    assert await archive.save("a", reply(5)) == gone[1]
    assert await archive.load(gone[1]) == reply(5)
    assert await archive.history(gone[1]) == []


async def test_prune_deletes_what_is_older(
    archive: AnyArchive, reply: Build, proposal: CompactionProposal
) -> None:
    """Snapshots saved before the moment go, later ones and those saved again stay whole."""
    old = [await archive.save("a", reply(n)) for n in (10, 20)]
    only_old = await archive.save("b", reply(3, seed=1))
    renewed = await archive.save("c", reply(4, seed=2))
    await archive.record(renewed, proposal, "accepted")
    moment = (await archive.list())[0].created_at + timedelta(microseconds=1)
    new = await archive.save("a", reply(30))
    await archive.save("c", reply(4, seed=2))
    assert await archive.prune(moment.astimezone(timezone(timedelta(hours=5)))) == 3
    assert await archive.prune(moment) == 0
    for ref in (*old, only_old):
        with pytest.raises(ArchiveNotFoundError):
            await archive.load(ref)
    assert await archive.load(new) == reply(30)
    assert await archive.load(renewed) == reply(4, seed=2)
    assert len(await archive.history(renewed)) == 1
    assert {usage.session_id for usage in await archive.sessions()} == {"a", "c"}


@pytest.mark.parametrize("when", [datetime(2030, 1, 1), "2030-01-01", 3, None])
async def test_prune_needs_a_moment(archive: AnyArchive, when: Any) -> None:
    """A time without a zone names no moment and is refused, and so is anything but a time."""
    await archive.save("a", [])
    with pytest.raises(ConfigurationError, match="time zone"):
        await archive.prune(when)
    assert len(await archive.list()) == 1


async def test_usage_by_session(archive: AnyArchive, reply: Build) -> None:
    """Counts and sizes are told by session, and a snapshot that grew costs what it grew by."""
    await archive.save("a", reply(10))
    (before,) = await archive.sessions()
    await archive.save("a", reply(11))
    await archive.save("b", [])
    after = {usage.session_id: usage for usage in await archive.sessions()}
    assert after["a"].snapshots == 2
    assert after["a"].chars == sum(e.chars for e in await archive.list("a"))
    assert before.stored_bytes < after["a"].stored_bytes < 1.5 * before.stored_bytes
    assert after["b"].snapshots == 1


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
