"""What goes into any archive comes out the same: every value, every id, every size."""

from typing import Any

import anyio
import pytest

from agentscope_compaction.errors import ArchiveError
from tests.archive.conftest import AnyArchive, Build
from tests.archive.spelling import spelled

pytestmark = pytest.mark.anyio

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
