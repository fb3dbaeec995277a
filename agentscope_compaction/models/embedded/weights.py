"""Weights of the scorer and where they come from; the numbers are data, in ``fitted.py``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Weights"]


@dataclass(frozen=True, slots=True)
class Weights:
    """One weight per feature and question, in log odds; ``bias`` sets the point where both meet.

    Features missing here weigh nothing, and names that are no feature are ignored.
    """

    result: Mapping[str, float] = field(default_factory=dict)
    """Must the full output stay?"""
    call: Mapping[str, float] = field(default_factory=dict)
    """Does the call still matter?"""
    note: str = ""
    """How these numbers were found, and what they were worth on histories left out."""
