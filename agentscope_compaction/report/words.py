"""Fates in the reader's words."""

from __future__ import annotations

from agentscope_compaction.report.calls import Fate

__all__ = ["FATES"]

FATES = {
    Fate.KEEP: "kept",
    Fate.CUT: "output cut",
    Fate.REMOVE: "removed",
    Fate.NOT_SHORTER: "kept, stub not shorter",
}
