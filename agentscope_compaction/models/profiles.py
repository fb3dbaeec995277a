"""Keep thresholds of System One models, by the version that answered."""

from __future__ import annotations

import re

from agentscope_compaction.core.types import Thresholds

__all__ = ["CAUTIOUS_PROFILE", "PROFILE", "jev_thresholds"]

PROFILE = Thresholds(call=0.1, result=0.2)
"""Keep thresholds of the known versions, from public reports: at 0.5 they keep almost nothing."""
CAUTIOUS_PROFILE = Thresholds(call=0.05, result=0.1)
"""Thresholds for any other version: half, so that more is kept, not less."""
_KNOWN_VERSIONS = frozenset({"1.13", "1.14"})
_VERSION = re.compile(r"~?(?:typesafe/)?jev-(?P<minor>\d+\.\d+)(?:\.0)?(?:-\d{8})?")


def jev_thresholds(model: str) -> Thresholds | None:
    """Return the profile of a known version (``jev-1.13.0``, ``typesafe/jev-1.13-20260917``)."""
    match = _VERSION.fullmatch(model)
    return PROFILE if match and match["minor"] in _KNOWN_VERSIONS else None
