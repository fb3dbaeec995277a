"""A proposal in two pure steps: ``plan(request)`` before the model is asked, ``conclude`` after.

Between them stands only the asking; both work on plain JSON and may run in any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentscope_compaction.core.batching import batch, room_for_view
from agentscope_compaction.core.decisions import Answer
from agentscope_compaction.core.dedupe import find_duplicates
from agentscope_compaction.core.jsontext import sized
from agentscope_compaction.core.pairing import Pair, Pairing, find_pairs
from agentscope_compaction.core.reduce import reduce_view
from agentscope_compaction.core.rules import protect
from agentscope_compaction.core.types import CompactionRequest, DecisionReason
from agentscope_compaction.core.view import Draft, Observation, Stage, draft_view
from agentscope_compaction.errors import InvalidSnapshotError

__all__ = [
    "Inspection",
    "Plan",
    "Snapshot",
    "inspect",
    "plan",
    "take_snapshot",
    "without_questions",
]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A request whose messages are ours alone, with their size and digest."""

    request: CompactionRequest
    chars: int
    digest: str


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a history holds, before any budget matters."""

    snapshot: Snapshot
    pairing: Pairing
    rules: Mapping[str, DecisionReason]
    """The rule that protects each pair that has one, by decision id."""
    duplicates: Mapping[str, Pair]
    """Candidate to the newest pair with the same output."""
    asked: tuple[Pair, ...]
    """The candidates a model is asked about."""
    known: Mapping[str, Answer] = field(default_factory=dict)
    """Answers from before about candidates that did not change, by decision id."""
    unremovable: frozenset[str] = frozenset()
    """Pairs a host forbids to remove; their ``drop_call`` becomes ``drop_result``."""

    @property
    def candidates(self) -> int:
        """Pairs no rule protects."""
        return len(self.pairing.pairs) - len(self.rules)

    def knowing(self, known: Mapping[str, Answer]) -> Inspection:
        """Return the inspection with answers from before, so that these are not asked again."""
        asked = tuple(pair for pair in self.asked if pair.id not in known)
        return replace(self, asked=asked, known=known)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to ask: the view and its batches of decision ids."""

    inspection: Inspection
    observation: Observation
    state_tokens: int
    stage: Stage
    batches: tuple[tuple[str, ...], ...]


def take_snapshot(request: CompactionRequest) -> Snapshot:
    """Measure a request whose messages nobody else holds.

    Raises:
        InvalidSnapshotError: The messages are not JSON.
    """
    try:
        return Snapshot(request, *sized(request.messages))
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidSnapshotError(f"messages are not JSON: {type(exc).__name__}") from exc


def inspect(
    snapshot: Snapshot, unremovable: Callable[[Pair], bool] = lambda pair: False
) -> Inspection:
    """Find the pairs, their protections, duplicates, and the calls to ask about.

    Args:
        snapshot: The request.
        unremovable: Says which pairs a host must not lose altogether.
    """
    request = snapshot.request
    pairing = find_pairs(request.messages, request.options.reused_ids)
    rules = protect(request, pairing)
    duplicates = find_duplicates(pairing.pairs, rules) if request.options.dedupe else {}
    asked = tuple(p for p in pairing.pairs if p.id not in rules and p.id not in duplicates)
    return Inspection(
        snapshot=snapshot,
        pairing=pairing,
        rules=rules,
        duplicates=duplicates,
        asked=asked,
        unremovable=frozenset(pair.id for pair in asked if unremovable(pair)),
    )


def plan(inspection: Inspection, redact: Callable[[str], str]) -> Plan:
    """Build the view of an inspected history and split its questions into requests.

    Args:
        inspection: The history; with nothing to ask, the plan has no batches.
        redact: Sees every string of the view before it is shortened.

    Raises:
        ObservationBudgetError: The view or one pair of questions does not fit.
    """
    if not inspection.asked:
        return without_questions(inspection)
    request = inspection.snapshot.request
    asked = [pair.id for pair in inspection.asked]
    limit = room_for_view(asked, request.options)
    draft = draft_view(request, inspection.pairing, frozenset(asked), redact)
    reduce_view(draft, limit)
    return _planned(inspection, draft, asked)


def without_questions(inspection: Inspection) -> Plan:
    """Return a plan that asks nothing: no view is built and no budget matters."""
    return Plan(inspection, Observation(), 0, Stage.FULL, ())


def _planned(inspection: Inspection, draft: Draft, asked: Sequence[str]) -> Plan:
    tokens = draft.total.tokens
    batches = batch(asked, tokens, inspection.snapshot.request.options)
    return Plan(inspection, draft.observation(), tokens, draft.stage, batches)
