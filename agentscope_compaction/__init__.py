"""Reviewable, lossless context compaction for AgentScope 2.x agents."""

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

__all__ = [
    "Action",
    "ArchiveError",
    "ArchiveIntegrityError",
    "ArchiveNotFoundError",
    "CallDecision",
    "CompactionError",
    "CompactionOptions",
    "CompactionProposal",
    "CompactionRequest",
    "ConfigurationError",
    "DecisionAnswerError",
    "DecisionHTTPError",
    "DecisionModel",
    "DecisionModelError",
    "DecisionReason",
    "DecisionTimeoutError",
    "EmbeddedDecisionModel",
    "InvalidSnapshotError",
    "JevDecisionModel",
    "ObservationBudgetError",
    "ProposalReason",
    "StaleProposalError",
    "Thresholds",
    "compact_context",
    "decision_model_from_env",
    "redact_secrets",
]
