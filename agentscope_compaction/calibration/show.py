"""Prints a calibration: the curve as a table, and the suggestion in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentscope_compaction.calibration.curve import Point, Suggestion
from agentscope_compaction.calibration.judged import JudgedCut

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["show"]


def show(
    console: Console,
    judged: Sequence[JudgedCut],
    points: Sequence[Point],
    suggestion: Suggestion,
    loss: float,
) -> None:
    """Print what was measured and what it suggests."""
    from rich.table import Table

    histories = len({cut.history for cut in judged})
    calls = sum(len(cut.calls) for cut in judged)
    strings = sum(need.only_outputs for cut in judged for need in cut.needs)
    print_line = console.print
    print_line(
        f"{histories} histories, {len(judged)} cuts, {calls} judged calls, "
        f"{strings} later-used strings that only outputs held"
    )
    table = Table(title="Savings and loss by keep_result_threshold, no call removed")
    for heading in ("threshold", "saved", "loss", "90 % interval"):
        table.add_column(heading, justify="right")
    for point in points:
        low, high = point.interval
        table.add_row(
            f"{point.threshold:.4f}",
            f"{point.saved:.1%}",
            f"{point.loss:.1%}",
            f"{low:.1%} to {high:.1%}",
        )
    print_line(table)
    low, high = suggestion.interval
    print_line(
        f"For a loss of at most {loss:.1%}: keep_call_threshold={suggestion.thresholds.call:g}, "
        f"keep_result_threshold={suggestion.thresholds.result:g}"
    )
    print_line(
        f"They free {suggestion.saved:.1%} at a loss of {suggestion.loss:.1%} "
        f"({low:.1%} to {high:.1%})"
    )
    if suggestion.held_out is not None:
        print_line(
            f"Chosen without each history in turn, they lose {suggestion.held_out:.1%} of it"
        )
