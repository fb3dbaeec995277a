"""Bring a drafted view within its budget: named stages, each only as far as needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from agentscope_compaction.core.estimate import measure
from agentscope_compaction.core.view import Draft, Entry, Stage, shorten
from agentscope_compaction.errors import ObservationBudgetError

__all__ = ["reduce_view"]

_INPUT_CAPS = (400, 160, 60, 0)
_OLD_TEXT_CAPS = (1_000, 300, 80)
_ANY_TEXT_CAPS = (4_000, 1_000, 300)
_NEWEST_OPEN_CALLS = 4
"""Calls without a result that stay visible in every stage: the agent may be waiting for them."""
_NEWEST_TEXTS = 4
"""Texts spared until everything older is short: they tell what the agent is about to do."""


def reduce_view(draft: Draft, limit: int) -> None:
    """Reduce the draft in place until it fits ``limit`` estimated tokens.

    Raises:
        ObservationBudgetError: The last stage does not fit either.
    """
    if draft.fits(limit):
        return
    draft.measure_parts()
    for stage, apply in _STAGES:
        draft.stage = stage
        if apply(draft, limit):
            return
    raise ObservationBudgetError(
        f"the observation needs about {draft.total.tokens} tokens in its last stage, "
        f"{limit} are allowed"
    )


def _shorten_inputs(draft: Draft, limit: int) -> bool:
    for cap in _INPUT_CAPS:
        for key, record in draft.calls.items():
            if len(record["input"]) > cap:
                record["input"] = shorten(record["input"], cap)
                draft.remeasure_call(key)
                if draft.fits(limit):
                    return True
        for entry in draft.open_calls:
            if len(entry.value["input"]) > cap:
                entry.value["input"] = shorten(entry.value["input"], cap)
                draft.remeasure(entry)
                if draft.fits(limit):
                    return True
    return False


def _shorten_texts(draft: Draft, limit: int) -> bool:
    texts = _texts(draft)
    return any(
        _cap_texts(draft, limit, some, cap)
        for some, caps in ((texts[:-_NEWEST_TEXTS], _OLD_TEXT_CAPS), (texts, _ANY_TEXT_CAPS))
        for cap in caps
    )


def _cap_texts(draft: Draft, limit: int, entries: Iterable[Entry], cap: int) -> bool:
    for entry in entries:
        if len(entry.value["text"]) > cap:
            entry.value["text"] = shorten(entry.value["text"], cap)
            draft.remeasure(entry)
            if draft.fits(limit):
                return True
    return False


def _drop_texts(draft: Draft, limit: int) -> bool:
    """Old text-only messages first, then the old narration between calls."""
    old = _texts(draft)[:-_NEWEST_TEXTS]
    gone: set[int] = set()
    draft.total += measure('"omitted_texts":1000000,')
    for entry in [e for e in old if e.droppable] + [e for e in old if not e.droppable]:
        gone.add(id(entry))
        draft.omitted_texts += 1
        draft.total -= entry.cost
        if draft.fits(limit):
            break
    draft.conversation = [e for e in draft.conversation if id(e) not in gone]
    return draft.fits(limit)


def _merge_calls(draft: Draft, limit: int) -> bool:
    gone: set[str] = set()
    named = {id(entry): len(entry.value["calls"]) for entry in draft.home.values()}
    for key in [key for key in draft.calls if key not in draft.candidates]:
        gone.add(key)
        draft.merge(draft.calls.pop(key)["tool"])
        draft.total -= draft.costs.pop(key)
        _unname(draft, draft.home[key], key, named)
        if draft.fits(limit):
            break
    for entry in draft.conversation:
        if "calls" in entry.value:
            entry.value["calls"] = [key for key in entry.value["calls"] if key not in gone]
    draft.conversation = [e for e in draft.conversation if e.value.get("calls") != []]
    return draft.fits(limit) or _merge_open_calls(draft, limit)


def _merge_open_calls(draft: Draft, limit: int) -> bool:
    """Merge abandoned calls, so that they never stand in the way; the newest may be pending."""
    while len(draft.open_calls) > _NEWEST_OPEN_CALLS and not draft.fits(limit):
        entry = draft.open_calls.pop(0)
        draft.total -= entry.cost
        draft.merge(f"{entry.value['tool']} (no result)")
    return draft.fits(limit)


def _unname(draft: Draft, entry: Entry, key: str, named: dict[int, int]) -> None:
    """Uncount a merged call's name in its conversation entry; with the last, the entry."""
    reference = measure(f'"{key}",')
    named[id(entry)] -= 1
    gone = reference if named[id(entry)] else entry.cost
    draft.total -= gone
    entry.cost -= gone


def _texts(draft: Draft) -> list[Entry]:
    return [e for e in draft.conversation if "text" in e.value]


_STAGES: Sequence[tuple[Stage, Callable[[Draft, int], bool]]] = (
    (Stage.INPUTS, _shorten_inputs),
    (Stage.TEXTS, _shorten_texts),
    (Stage.DROP_TEXTS, _drop_texts),
    (Stage.MERGE_CALLS, _merge_calls),
)
