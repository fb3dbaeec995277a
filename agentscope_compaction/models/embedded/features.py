"""The numbers the scorer weighs: one dictionary per call, every value finite and bounded."""

from __future__ import annotations

import math

from agentscope_compaction.core.scan import STRONG, Kind
from agentscope_compaction.models.embedded.effects import Effect
from agentscope_compaction.models.embedded.history import Call
from agentscope_compaction.models.embedded.index import Index
from agentscope_compaction.models.embedded.structure import fails

__all__ = ["FEATURES", "features_of"]

FEATURES = (
    "goal_overlap",
    "tail_overlap",
    "task_overlap",
    "ids_in_tail",
    "input_in_tail",
    "only_copy",
    "only_names",
    "older_copy",
    "came_back",
    "recency",
    "age",
    "reread",
    "edited",
    "error",
    "reads",
    "writes",
    "runs",
    "plans",
    "size",
    "input_only",
)
"""Names of the features, in the order of the weights."""


def _log(count: float, full: float) -> float:
    """0 at 0, 1 at ``full`` and never more."""
    return min(1.0, math.log1p(count) / math.log1p(full))


def features_of(call: Call, index: Index) -> dict[str, float]:
    """Measure one call.

    ``only_copy`` counts identifiers that no text or input repeats and no later output holds:
    what is lost for good with this output. ``came_back`` counts those it introduced that later
    texts or inputs use: it has served as a source before.
    """
    place, total = call.position, max(1, len(index.ordered))
    counts = _count_ids(call, index)
    age = total - 1 - place
    values = {
        "goal_overlap": call.goal_overlap,
        "tail_overlap": call.tail_overlap,
        "task_overlap": call.task_overlap,
        "ids_in_tail": _log(counts["tail"], 12),
        "input_in_tail": _log(_input_in_tail(call, index), 6),
        "only_copy": _log(counts["only"], 100),
        "only_names": _log(counts["only_names"], 100),
        "older_copy": _log(counts["older"], 100),
        "came_back": _log(counts["back"], 40),
        "recency": math.exp(-age / 8),
        "age": age / total,
        "reread": float(_read_again(call, index)),
        "edited": float(index.writes.get(call.path or "", -1) > place),
        "error": float(fails(call)),
        "reads": float(call.effect is Effect.READ),
        "writes": float(call.effect is Effect.WRITE),
        "runs": float(call.effect is Effect.RUN),
        "plans": float(call.effect is Effect.PLAN),
        "size": _log(call.draft.chars, 100_000),
        "input_only": _log(_input_only(call, index), 40),
    }
    return {name: values[name] for name in FEATURES}


def _count_ids(call: Call, index: Index) -> dict[str, int]:
    place = call.position
    counts = dict.fromkeys(("tail", "only", "only_names", "older", "back"), 0)
    for name, kind in call.scan.ids.items():
        introduced = index.first_held[name] == place and name not in call.input_scan.ids
        told, asked = index.told.get(name), index.asked.get(name)
        if introduced and index.tail.get(name, -1) > place:
            counts["tail"] += 1
        if (
            introduced
            and max(-1 if told is None else told, -1 if asked is None else asked - 1) >= place
        ):
            counts["back"] += 1
        if told is None and asked is None:
            if index.last_held[name] > place:
                counts["older"] += kind in STRONG
            elif kind in STRONG:
                counts["only"] += 1
            elif kind is Kind.NAME:
                counts["only_names"] += 1
    return counts


def _input_in_tail(call: Call, index: Index) -> int:
    return sum(index.tail.get(name, -1) > call.position for name in call.input_scan.ids)


def _input_only(call: Call, index: Index) -> int:
    """Identifiers that only this input, the newest of its kind, names."""
    place = call.position
    return sum(
        index.asked[name] == place and name not in index.told and name not in index.last_held
        for name in call.input_scan.ids
    )


def _read_again(call: Call, index: Index) -> bool:
    reads = index.reads.get(call.path or "", [])
    return bool(reads) and reads[-1].position > call.position
