"""Reviewable, lossless context compaction for AgentScope 2.x agents."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agentscope_compaction.compact import compact_context
from agentscope_compaction.core.options import CompactionOptions
from agentscope_compaction.core.types import (
    Action,
    CallDecision,
    CompactionProposal,
    CompactionRequest,
    DecisionReason,
    ProposalReason,
    Thresholds,
)
from agentscope_compaction.errors import (
    ArchiveError,
    ArchiveIntegrityError,
    ArchiveNotFoundError,
    CompactionError,
    ConfigurationError,
    DecisionAnswerError,
    DecisionHTTPError,
    DecisionModelError,
    DecisionTimeoutError,
    InvalidSnapshotError,
    ObservationBudgetError,
    StaleProposalError,
)
from agentscope_compaction.models.embedded import EmbeddedDecisionModel
from agentscope_compaction.models.env import decision_model_from_env
from agentscope_compaction.models.jev import JevDecisionModel
from agentscope_compaction.models.seam import DecisionModel
from agentscope_compaction.redaction import redact_secrets

if TYPE_CHECKING:
    from agentscope_compaction.agents.decorator import CompactionMixin, with_compaction
    from agentscope_compaction.agents.hook import CompactionMiddleware, compaction_middlewares
    from agentscope_compaction.agents.notes import decide_pending
    from agentscope_compaction.agents.reviewers import accept_all, accept_if
    from agentscope_compaction.archive import (
        Archive,
        ArchiveEntry,
        ArchiveRef,
        InMemoryArchive,
        Outcome,
        OutcomeKind,
        SqlArchive,
        archive_from_url,
    )
    from agentscope_compaction.compactor import Compactor

    __version__: str

_ARCHIVE = "agentscope_compaction.archive"
_LAZY = {
    "Archive": _ARCHIVE,
    "ArchiveEntry": _ARCHIVE,
    "ArchiveRef": _ARCHIVE,
    "CompactionMiddleware": "agentscope_compaction.agents.hook",
    "CompactionMixin": "agentscope_compaction.agents.decorator",
    "Compactor": "agentscope_compaction.compactor",
    "InMemoryArchive": _ARCHIVE,
    "Outcome": _ARCHIVE,
    "OutcomeKind": _ARCHIVE,
    "SqlArchive": _ARCHIVE,
    "accept_all": "agentscope_compaction.agents.reviewers",
    "accept_if": "agentscope_compaction.agents.reviewers",
    "archive_from_url": _ARCHIVE,
    "compaction_middlewares": "agentscope_compaction.agents.hook",
    "decide_pending": "agentscope_compaction.agents.notes",
    "with_compaction": "agentscope_compaction.agents.decorator",
}
"""Loaded when first used: AgentScope's agent stack takes seconds to import."""

__all__ = [
    "Action",
    "Archive",
    "ArchiveEntry",
    "ArchiveError",
    "ArchiveIntegrityError",
    "ArchiveNotFoundError",
    "ArchiveRef",
    "CallDecision",
    "CompactionError",
    "CompactionMiddleware",
    "CompactionMixin",
    "CompactionOptions",
    "CompactionProposal",
    "CompactionRequest",
    "Compactor",
    "ConfigurationError",
    "DecisionAnswerError",
    "DecisionHTTPError",
    "DecisionModel",
    "DecisionModelError",
    "DecisionReason",
    "DecisionTimeoutError",
    "EmbeddedDecisionModel",
    "InMemoryArchive",
    "InvalidSnapshotError",
    "JevDecisionModel",
    "ObservationBudgetError",
    "Outcome",
    "OutcomeKind",
    "ProposalReason",
    "SqlArchive",
    "StaleProposalError",
    "Thresholds",
    "accept_all",
    "accept_if",
    "archive_from_url",
    "compact_context",
    "compaction_middlewares",
    "decide_pending",
    "decision_model_from_env",
    "redact_secrets",
    "with_compaction",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("agentscope-compaction")
    except PackageNotFoundError:
        return "0+source"
