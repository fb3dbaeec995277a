"""Put a proposal's edits into a live context, or take them out again: compare, check, swap.

Everything here is synchronous, so nothing can change between comparing and the one assignment to
``state.context``. Blocks that are not edited stay the very same objects: a running batch of calls
holds on to its own (``agent/_agent.py``), and copies would detach it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentscope_compaction.agents.align import Alignment, Tolerance, align
from agentscope_compaction.agents.invariants import check
from agentscope_compaction.agents.limits import finished_from
from agentscope_compaction.agents.snapshot import dump
from agentscope_compaction.core.pairing import Spot, find_pairs, result_text
from agentscope_compaction.core.rebuild import Edit, with_text
from agentscope_compaction.core.types import JSONObject
from agentscope_compaction.errors import StaleProposalError

if TYPE_CHECKING:
    from agentscope.message import Msg
    from agentscope.state import AgentState

__all__ = ["Change", "accept_edits", "restore_edits"]

_Edits = Mapping[str, Edit]


@dataclass(frozen=True, slots=True)
class Change:
    """What one swap did: the decisions it carried out, by id."""

    done: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Live:
    """The live messages with their JSON form."""

    messages: Sequence[Msg]
    json: Sequence[JSONObject]


def accept_edits(
    state: AgentState,
    snapshot: Sequence[JSONObject],
    edits: _Edits,
    chosen: Collection[str],
    ref: str,
    *,
    reply_over: bool | None = None,
) -> Change:
    """Apply the chosen edits to the live context; what is applied already stays as it is.

    Args:
        state: The agent's state; ``context`` is assigned once, or not at all.
        snapshot: The archived original the proposal was made of.
        edits: Every acting edit of the proposal, by decision id.
        chosen: Decision ids to carry out.
        ref: Archive reference that goes into the results' metadata.
        reply_over: Whether the newest reply is known to be over (or not).

    Raises:
        StaleProposalError: The context changed otherwise than by growing, or a check refused.
    """
    live = _Live(list(state.context), dump(state.context))
    placed = align(snapshot, live.json, _tolerance(snapshot, edits, ref))
    finished = finished_from(live.json, state.reply_id, reply_over)
    replaced: dict[Spot, Any] = {}
    removed: set[Spot] = set()
    done = []
    for key in (key for key in edits if key in chosen):
        edit = edits[key]
        if edit.text is None:
            spots = [placed.blocks.get(s) for s in (edit.pair.call_at, edit.pair.result_at)]
            here = {spot for spot in spots if spot is not None}
            if any(mi >= finished for mi, _ in here):
                raise StaleProposalError("refused: the edit would remove a call of a running reply")
            removed |= here
            done += [key] if here else []
        elif spot := placed.blocks.get(edit.pair.result_at):
            new = _stubbed(edit, ref)
            if live.json[spot[0]]["content"][spot[1]] != new:
                replaced[spot] = _with_output(live.messages[spot[0]].content[spot[1]], new)
                done.append(key)
    if done:
        _swap(state, live, replaced, removed, shrinking=True)
    return Change(tuple(done))


def restore_edits(
    state: AgentState, snapshot: Sequence[JSONObject], edits: _Edits, ref: str
) -> Change:
    """Bring back the archived originals of every edit that is applied in the live context.

    Messages that left the context since (AgentScope's own compression) are passed over.

    Raises:
        StaleProposalError: A check refused.
    """
    live = _Live(list(state.context), dump(state.context))
    placed = align(snapshot, live.json, _tolerance(snapshot, edits, ref, by_identity=True))
    replaced: dict[Spot, Any] = {}
    back: set[Spot] = set()
    done = []
    for key, edit in edits.items():
        if edit.text is None:
            spots = {edit.pair.call_at, edit.pair.result_at}
            missing = {s for s in spots if s not in placed.blocks and _has_home(s, placed)}
            if missing == spots:
                back |= spots
                done.append(key)
        elif spot := placed.blocks.get(edit.pair.result_at):
            if live.json[spot[0]]["content"][spot[1]] == _stubbed(edit, ref):
                replaced[spot] = _block(edit.pair.result)
                done.append(key)
    if done:
        grown = _with_back(live, snapshot, placed, replaced, back)
        check(dump(grown), live.json, shrinking=False)  # undoing is accepting, seen backwards
        state.context = grown
    return Change(tuple(done))


def _tolerance(
    snapshot: Sequence[JSONObject], edits: _Edits, ref: str, *, by_identity: bool = False
) -> Tolerance:
    removals = [edit.pair for edit in edits.values() if edit.text is None]
    return Tolerance(
        edited={e.pair.result_at: _stubbed(e, ref) for e in edits.values() if e.text is not None},
        removable={spot for pair in removals for spot in (pair.call_at, pair.result_at)},
        open_calls=set(find_pairs(snapshot).open_calls),
        by_identity=by_identity,
    )


def _stubbed(edit: Edit, ref: str) -> JSONObject:
    """Return the result's live form after its output was cut: the note in its metadata."""
    result = edit.pair.result
    note = {"archive_ref": ref, "call_id": edit.pair.call_id, "chars": len(edit.pair.text or "")}
    metadata = {**(result.get("metadata") or {}), "compaction": note}
    return {**with_text(result, edit.text or ""), "metadata": metadata}


def _with_output(block: Any, new: JSONObject) -> Any:
    """Return the live result with the new output and metadata; every other field is kept."""
    output: Any = new["output"]
    if not isinstance(output, str):
        output = [block.output[0].model_copy(update={"text": result_text(new)})]
    return block.model_copy(update={"output": output, "metadata": new["metadata"]})


def _block(original: JSONObject) -> Any:
    from agentscope.message import ToolCallBlock, ToolResultBlock

    kind = ToolCallBlock if original["type"] == "tool_call" else ToolResultBlock
    return kind.model_validate(original)


def _swap(
    state: AgentState,
    live: _Live,
    replaced: Mapping[Spot, Any],
    removed: Collection[Spot],
    *,
    shrinking: bool,
) -> None:
    touched = {mi for mi, _ in (*replaced, *removed)}
    context = []
    for mi, message in enumerate(live.messages):
        if mi not in touched:
            context.append(message)
            continue
        content = [
            replaced.get((mi, bi), block)
            for bi, block in enumerate(message.content)
            if (mi, bi) not in removed
        ]
        if content:
            context.append(message.model_copy(update={"content": content}))
    check(live.json, dump(context), shrinking=shrinking)
    state.context = context


def _has_home(spot: Spot, placed: Alignment) -> bool:
    """Whether a removed block can return: its message is there, or one that stood before it."""
    return any(mi <= spot[0] for mi in placed.messages)


def _with_back(
    live: _Live,
    snapshot: Sequence[JSONObject],
    placed: Alignment,
    replaced: Mapping[Spot, Any],
    back: Collection[Spot],
) -> list[Msg]:
    """Build the context with outputs replaced and removed blocks put back where they were."""
    from agentscope.message import Msg

    inserts: dict[int, list[tuple[int, Any]]] = {}
    whole: dict[int, list[Msg]] = {}
    last = -1
    for mi, message in enumerate(snapshot):
        missing = [bi for bi in range(len(message["content"])) if (mi, bi) in back]
        if mi in placed.messages:
            last = placed.messages[mi]
            inserts[last] = [
                (_place_before(mi, bi, placed), _block(message["content"][bi])) for bi in missing
            ]
        elif missing and len(missing) == len(message["content"]):
            whole.setdefault(last, []).append(Msg.model_validate(message))
    context = list(whole.get(-1, ()))
    for li, current in enumerate(live.messages):
        context.append(_filled(current, li, replaced, inserts.get(li, ())))
        context += whole.get(li, ())
    return context


def _place_before(mi: int, bi: int, placed: Alignment) -> int:
    """Live index of the block before which snapshot block ``bi`` stood."""
    earlier = [placed.blocks[mi, n][1] for n in range(bi) if (mi, n) in placed.blocks]
    return earlier[-1] + 1 if earlier else 0


def _filled(
    message: Msg, li: int, replaced: Mapping[Spot, Any], inserts: Sequence[tuple[int, Any]]
) -> Msg:
    if not inserts and not any(spot[0] == li for spot in replaced):
        return message
    content: list[Any] = []
    for bi, block in enumerate([*message.content, None]):
        content += [new for place, new in inserts if place == bi]
        if block is not None:
            content.append(replaced.get((li, bi), block))
    return message.model_copy(update={"content": content})
