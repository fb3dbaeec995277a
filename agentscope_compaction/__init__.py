"""Reviewable, lossless context compaction for AgentScope 2.x agents."""

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

__all__ = [
    "Action",
    "CallDecision",
    "CompactionOptions",
    "CompactionProposal",
    "CompactionRequest",
    "DecisionReason",
    "ProposalReason",
    "Thresholds",
]
