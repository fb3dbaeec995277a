"""Every member of the closed sets has its words, told apart from the others."""

from __future__ import annotations

from agentscope_compaction import DecisionReason, ProposalReason
from agentscope_compaction.cli.words import ACTIONS
from agentscope_compaction.core.types import Action
from agentscope_compaction.core.words import OUTCOMES, REASONS
from agentscope_compaction.report.calls import Fate
from agentscope_compaction.report.words import FATES


def test_every_member_has_words() -> None:
    """No reason, outcome, action or fate is without words, and no two share them."""
    for words, members in (
        (REASONS, DecisionReason),
        (OUTCOMES, ProposalReason),
        (ACTIONS, Action),
        (FATES, Fate),
    ):
        assert list(words) == list(members)
        assert len(set(words.values())) == len(words)
