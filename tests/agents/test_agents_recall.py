"""The agent's way back: ``recall_tool_output``."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agentscope.agent import Agent

from agentscope_compaction import with_compaction
from agentscope_compaction.testing.chat import say, use

pytestmark = pytest.mark.anyio


async def _recall(lab: Any, agent: Any, **arguments: Any) -> str:
    """Let the agent's model call the tool, and return what it was shown."""
    agent.model.turns = agent.model.turns[: len(agent.model.calls)]
    call = f"r{len(agent.model.calls)}"
    agent.model.turns += [[use("recall_tool_output", call, **arguments)], [say("thanks")]]
    answer = await agent.reply(lab.user("recall"))
    assert answer.get_text_content() == "thanks"  # no permission was asked
    output = lab.results(agent)[call].output
    return output if isinstance(output, str) else "\n".join(block.text for block in output)


async def _cut(lab: Any, **options: Any) -> Any:
    agent = await lab.worked(**options)
    await agent.accept_compaction(await agent.propose_compaction(goal="sum up"))
    return agent


async def test_the_original_comes_back_in_pages(lab: Any) -> None:
    """Pages of the archived original join to the very output that was cut."""
    agent = await _cut(lab)
    first = await _recall(lab, agent, call_id="c1", limit=2_000)
    head, _, page = first.partition("\n")
    assert "continue with offset=2000" in head
    second = await _recall(lab, agent, call_id="c1", offset=2_000)
    assert page + second.partition("\n")[2] == lab.page(1)


async def test_a_pattern_finds_lines(lab: Any) -> None:
    """Only the matching lines are shown, with their numbers; alternatives are separated."""
    agent = await _cut(lab)
    shown = await _recall(lab, agent, call_id="c2", pattern="CODE OF|nothing")
    assert shown.splitlines()[1:] == [f"91: the code of page 2 is {2 * 7919}"]


@pytest.mark.parametrize("limit", [1, 60, 500, 2_000, 50_000])
async def test_matching_lines_come_in_pages(lab: Any, limit: int) -> None:
    """Each page holds the next matching lines, as many as fit, and names the following offset."""
    agent = await _cut(lab)
    lines = [f"{number}: {line}" for number, line in enumerate(lab.page(2).splitlines(), start=1)]
    offset = 0
    for _ in range(4):
        shown = await _recall(lab, agent, call_id="c2", pattern="page", limit=limit, offset=offset)
        head, *page = shown.splitlines()
        assert page == [line[:limit] for line in lines[offset : offset + len(page)]]
        assert len("\n".join(page)) <= limit
        offset += len(page)
        if offset == len(lines):
            assert "continue" not in head
            return
        assert f"continue with offset={offset}]" in head
    assert limit < 2_000  # all of it has been shown by now


async def test_a_matching_line_longer_than_a_page(lab: Any) -> None:
    """Its beginning is shown, and the offset from which the whole of it can be read."""
    agent = await _cut(lab)
    shown = await _recall(lab, agent, call_id="c2", pattern="code", limit=20)
    where = int(shown.partition("without pattern from offset=")[2].partition("]")[0])
    whole = await _recall(lab, agent, call_id="c2", offset=where, limit=28)
    assert whole.splitlines()[1] == f"the code of page 2 is {2 * 7919}"


async def test_whole_numbers_as_floats(lab: Any) -> None:
    """A model may send a whole number as 5.0, which a JSON Schema counts as an integer."""
    agent = await _cut(lab)
    shown = await _recall(lab, agent, call_id="c1", offset=1.0, limit=5.0)
    assert shown.splitlines()[1] == lab.page(1)[1:6]


@pytest.mark.parametrize("call", ["c5", "unknown"])
async def test_it_says_what_it_does_not_know(lab: Any, call: str) -> None:
    """A whole output and an unknown call are told apart from an archived one."""
    agent = await _cut(lab)
    shown = await _recall(lab, agent, call_id=call)
    assert ("is whole in the context" in shown) == (call == "c5")
    assert ("No archived output is known" in shown) == (call == "unknown")


async def test_odd_paging_never_fails(lab: Any) -> None:
    """Offsets and limits out of range give an empty or short page, not an error."""
    agent = await _cut(lab)
    assert "continue" not in await _recall(lab, agent, call_id="c1", offset=10**9)
    assert lab.page(1)[:1] in await _recall(lab, agent, call_id="c1", offset=-5, limit=-1)


class _Mute:
    """An archive of which one method never answers."""

    def __init__(self, inner: Any, method: str) -> None:
        self._inner, self._method = inner, method

    def __getattr__(self, name: str) -> Any:
        return self._wait if name == self._method else getattr(self._inner, name)

    async def _wait(self, *args: Any) -> Any:
        await asyncio.Event().wait()


@pytest.mark.parametrize("mute", ["load_result", "record"])
async def test_an_archive_that_never_answers(lab: Any, mute: str) -> None:
    """The agent is told so, or is shown what was found, and goes on."""
    agent = await _cut(lab, total_timeout_seconds=0.1)
    agent.compaction_driver.compactor._archive = _Mute(lab.archive, mute)
    async with asyncio.timeout(10):
        shown = await _recall(lab, agent, call_id="c1")
    assert ("does not answer" in shown) == (mute == "load_result")
    assert (lab.page(1) in shown) == (mute == "record")


async def test_removed_calls_and_later_passes(lab: Any) -> None:
    """Removed calls are found by the notes of accepted proposals, also after several passes."""
    agent = await _cut(lab, judge=lab.remover())
    await agent.reply(lab.user("go on"))
    await agent.accept_compaction(await agent.propose_compaction(goal="sum up"))
    assert lab.page(0) in await _recall(lab, agent, call_id="c0")
    assert lab.page(5) in await _recall(lab, agent, call_id="c5")


@pytest.mark.parametrize("passes", [["t1"], ["t1", "t2"], ["t2"]], ids=str)
@pytest.mark.parametrize("again", [False, True])
async def test_an_id_that_every_reply_uses(lab: Any, passes: list[str], again: bool) -> None:
    """Of the results that share an id exactly those that were cut are shown, in order."""
    compactor = lab.compactor(reused_ids="pair")
    cls = with_compaction(compactor, before_reply=False, during_reply=False)(Agent)
    turns = [turn for n in range(4) for turn in ([use("look", "call_0", page=n)], [say("seen")])]
    agent = lab.agent(turns, cls=cls)
    for _ in range(4):
        await agent.reply(lab.user("look at the next page"))
    await agent.accept_compaction(await agent.propose_compaction(goal="sum up"), calls=passes)
    cut = [int(name[1:]) - 1 for name in passes]
    if again:
        await agent.accept_compaction(await agent.propose_compaction(goal="sum up"), calls=["t3"])
        cut.append(2)
    shown = await _recall(lab, agent, call_id="call_0", limit=50_000)
    places = [shown.find(lab.page(n)) for n in range(4)]
    assert [n for n, place in enumerate(places) if place >= 0] == cut
    assert [place for place in places if place >= 0] == sorted(places)[-len(cut) :]
    assert shown.count("under this id") == (len(cut) if len(cut) > 1 else 0)


async def test_recalls_are_counted_in_the_archive(lab: Any) -> None:
    """A recall of a cut output is recorded about its proposal: an observed false drop."""
    agent = await _cut(lab)
    await _recall(lab, agent, call_id="c1")
    (ref,) = [entry.ref for entry in await lab.archive.list()]
    assert (await lab.kinds(ref))[-1] == "recalled"
    assert (await lab.archive.history(ref))[-1].outcome.calls == ("c1",)


async def test_what_was_recalled_is_not_cut_at_once(lab: Any) -> None:
    """The tool's own outputs are not on the allow-list, so the next pass leaves them whole."""
    agent = await _cut(lab)
    shown = await _recall(lab, agent, call_id="c1")
    proposal = await agent.propose_compaction(goal="sum up")
    await agent.accept_compaction(proposal)
    assert "compaction" not in lab.results(agent)["r7"].metadata
    assert lab.page(1) in shown
