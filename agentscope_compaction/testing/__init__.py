"""Fakes for tests of code that uses this package: a scripted model, histories, cassettes."""

from agentscope_compaction.testing.cassettes import Cassette
from agentscope_compaction.testing.histories import HistoryBuilder
from agentscope_compaction.testing.invariants import check_proposal
from agentscope_compaction.testing.scripted import ScriptedDecisionModel

__all__ = ["Cassette", "HistoryBuilder", "ScriptedDecisionModel", "check_proposal"]
