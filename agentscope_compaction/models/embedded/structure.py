"""Structural facts: what the shape of a history proves about one call, each with a name.

Facts are judged before any score. Keeping facts win over releasing ones, with one exception:
an exact copy that a later call holds may go whatever else is said about it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from agentscope_compaction.core.scan import STRONG
from agentscope_compaction.models.embedded.effects import Effect
from agentscope_compaction.models.embedded.history import Call
from agentscope_compaction.models.embedded.index import Index

__all__ = ["RELEASES", "Fact", "Verdict", "facts_of", "verdict_of"]

_RECENT = 4
"""Errors among this many newest calls are what the agent is working on."""
_OLD = 8
"""An error this many calls back, with a success of the same tool since, is history."""
_ACK_CHARS = 240
_RECEIPT_CHARS = 1_500
_READS_COMPARED = 16
_ERROR = re.compile(
    r"\A\s*(?:<\w+>\s*)?(?:error\b|fatal:|traceback \(|exception\b"
    r"|[\w./-]+: (?:no such|command not)|command failed|(?:exit|return) code:? [1-9])",
    re.IGNORECASE,
)


class Fact(StrEnum):
    """The closed set of structural facts."""

    UNFINISHED = "unfinished"
    OUTPUT_NOT_SHOWN = "output_not_shown"
    RECENT_ERROR = "recent_error"
    USER_ANSWER = "user_answer"
    RECEIPT = "receipt"
    QUOTED_BY_USER = "quoted_by_user"
    EXACT_DUPLICATE = "exact_duplicate"
    SUPERSEDED_IDENTICAL = "superseded_identical"
    SUPERSEDED_PLAN = "superseded_plan"
    COVERED_BY_LATER_READ = "covered_by_later_read"
    STALE_READ_AFTER_EDIT = "stale_read_after_edit"
    OLD_ERROR_UNREFERENCED = "old_error_unreferenced"
    BARE_ACKNOWLEDGEMENT = "bare_acknowledgement"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answers a fact stands for."""

    keep_call: float
    keep_result: float


_KEEP = Verdict(0.95, 0.95)
_VERDICTS = {
    Fact.EXACT_DUPLICATE: Verdict(0.6, 0.02),
    Fact.UNFINISHED: _KEEP,
    Fact.OUTPUT_NOT_SHOWN: Verdict(0.9, 0.9),
    Fact.RECENT_ERROR: _KEEP,
    Fact.USER_ANSWER: _KEEP,
    Fact.RECEIPT: _KEEP,
    Fact.QUOTED_BY_USER: Verdict(0.9, 0.9),
    Fact.SUPERSEDED_PLAN: Verdict(0.1, 0.03),
    Fact.SUPERSEDED_IDENTICAL: Verdict(0.6, 0.05),
    Fact.COVERED_BY_LATER_READ: Verdict(0.6, 0.05),
    Fact.STALE_READ_AFTER_EDIT: Verdict(0.6, 0.08),
    Fact.OLD_ERROR_UNREFERENCED: Verdict(0.6, 0.15),
    Fact.BARE_ACKNOWLEDGEMENT: Verdict(0.6, 0.1),
}
"""In the order in which the first fact that holds decides."""

RELEASES = frozenset(fact for fact, verdict in _VERDICTS.items() if verdict.keep_result < 0.5)
"""Facts that let an output go."""


def verdict_of(facts: list[Fact]) -> Verdict | None:
    """The answers of the first deciding fact; None where no fact holds."""
    return next((v for fact, v in _VERDICTS.items() if fact in facts), None)


def facts_of(call: Call, index: Index) -> list[Fact]:
    """Every fact that holds of a call, in deciding order."""
    return [fact for fact in _VERDICTS if _TESTS[fact](call, index)]


def fails(call: Call) -> bool:
    """Whether the call failed, by its state or by how its output begins."""
    return call.draft.state == "error" or bool(_ERROR.match(call.output[:200]))


def _unfinished(call: Call, index: Index) -> bool:
    return call.draft.state not in ("success", "error", "denied", "interrupted")


def _not_shown(call: Call, index: Index) -> bool:
    return call.draft.output is None and call.draft.chars > 0


def _recent_error(call: Call, index: Index) -> bool:
    return call.position >= len(index.ordered) - _RECENT and fails(call)


def _news(call: Call, index: Index) -> int:
    """Identifiers of the output that neither its input nor anything before it named."""
    return sum(
        kind in STRONG
        and index.first_held.get(name, call.position) >= call.position
        and name not in call.input_scan.ids
        and index.told_first.get(name, call.position) >= call.position
        for name, kind in call.scan.ids.items()
    ) + sum(n not in call.input_scan.numbers for n in call.scan.numbers)


def _user_answer(call: Call, index: Index) -> bool:
    """The user's own words, which arrived as a tool's output."""
    return call.effect is Effect.ASK


def _receipt(call: Call, index: Index) -> bool:
    short = call.draft.chars <= _RECEIPT_CHARS
    return call.effect is Effect.WRITE and not call.path and short and _news(call, index) > 0


def _quoted(call: Call, index: Index) -> bool:
    place = call.position
    for name in (*call.scan.ids, *call.scan.numbers):
        digits = any(map(str.isdigit, name))
        if digits and index.user_ids.get(name, -1) >= place:
            if index.first_held.get(name, place) == place and name not in call.input_scan.ids:
                return True
    if not index.user_lines:
        return False
    lines = {line.strip(" \t>`*-\"'") for line in call.output[:50_000].splitlines()}
    return any(index.user_lines[line] >= place for line in lines & index.user_lines.keys())


def _duplicate(call: Call, index: Index) -> bool:
    holder = index.by_output.get(call.digest or "")
    return holder is not None and holder.position > call.position and call.draft.chars >= 40


def _superseded_identical(call: Call, index: Index) -> bool:
    """The same reading call was made again later, and its answer is no mere "unchanged"."""
    later = index.by_input.get(call.identity or "")
    if later is None or later.position <= call.position or call.effect is Effect.WRITE:
        return False
    return _stands_in(later, call)


def _stands_in(later: Call, earlier: Call) -> bool:
    return (
        later.draft.state == "success"
        and later.draft.output is not None
        and len(later.output) * 2 >= len(earlier.output)
        and "<<<TRUNCATED>>>" not in later.output
        and not fails(later)
    )


def _superseded_plan(call: Call, index: Index) -> bool:
    return call.effect is Effect.PLAN and index.plans.get(call.draft.tool, -1) > call.position


def _later_cover(call: Call, index: Index) -> bool:
    if call.effect is not Effect.READ or not call.path or not call.span:
        return False
    return any(
        later.position > call.position
        and later.draft.tool == call.draft.tool
        and later.span is not None
        and later.span.covers(call.span)
        and _stands_in(later, call)
        for later in index.reads.get(call.path, [])[-_READS_COMPARED:]
    )


def _covered(call: Call, index: Index) -> bool:
    return _later_cover(call, index) and not _edited(call, index)


def _stale(call: Call, index: Index) -> bool:
    """The file was changed since, and read again since: this copy is of the past."""
    return _later_cover(call, index) and _edited(call, index)


def _edited(call: Call, index: Index) -> bool:
    return index.writes.get(call.path or "", -1) > call.position


def _old_error(call: Call, index: Index) -> bool:
    if len(index.ordered) - call.position <= _OLD or not fails(call):
        return False
    recovered = index.successes.get(call.draft.tool, -1) > call.position
    named = any(index.tail.get(name, -1) > call.position for name in call.scan.ids)
    return recovered and not named


def _acknowledgement(call: Call, index: Index) -> bool:
    if not call.draft.output or call.draft.chars > _ACK_CHARS or fails(call):
        return False
    return call.effect in (Effect.WRITE, Effect.PLAN) and _news(call, index) == 0


_TESTS: dict[Fact, Callable[[Call, Index], bool]] = {
    Fact.UNFINISHED: _unfinished,
    Fact.OUTPUT_NOT_SHOWN: _not_shown,
    Fact.RECENT_ERROR: _recent_error,
    Fact.USER_ANSWER: _user_answer,
    Fact.RECEIPT: _receipt,
    Fact.QUOTED_BY_USER: _quoted,
    Fact.EXACT_DUPLICATE: _duplicate,
    Fact.SUPERSEDED_IDENTICAL: _superseded_identical,
    Fact.SUPERSEDED_PLAN: _superseded_plan,
    Fact.COVERED_BY_LATER_READ: _covered,
    Fact.STALE_READ_AFTER_EDIT: _stale,
    Fact.OLD_ERROR_UNREFERENCED: _old_error,
    Fact.BARE_ACKNOWLEDGEMENT: _acknowledgement,
}
