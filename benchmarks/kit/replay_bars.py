"""Draws groups of horizontal bars as SVG, without a plotting library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

__all__ = ["bar_panels"]

_COLOURS = ("#888888", "#c49a6c", "#e0b88a", "#9467bd", "#1f77b4", "#2ca02c")
_NAMES, _PANEL, _GAP, _ROW, _TOP = 230, 170, 60, 30, 76


def bar_panels(
    title: str, rows: Sequence[str], panels: Mapping[str, Sequence[float]], note: str = ""
) -> str:
    """One panel of bars per measure, all with the same rows.

    Args:
        title: Above everything.
        rows: Names of the rows.
        panels: Heading to one share per row; every panel begins at 0 and has its own scale.
        note: Below the title.
    """
    wide = _NAMES + len(panels) * (_PANEL + _GAP)
    high = _TOP + _ROW * len(rows) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{wide}" height="{high}" fill="white"/>',
        f'<text x="12" y="22" font-size="15">{escape(title)}</text>',
        f'<text x="12" y="40" fill="#666666">{escape(note)}</text>',
    ]
    for number, name in enumerate(rows):
        y = _TOP + _ROW * number + 15
        parts.append(f'<text x="{_NAMES - 12}" y="{y}" text-anchor="end">{escape(name)}</text>')
    for column, (heading, shares) in enumerate(panels.items()):
        left = _NAMES + column * (_PANEL + _GAP)
        parts.append(
            f'<text x="{left}" y="{_TOP - 12}" font-weight="bold">{escape(heading)}</text>'
        )
        parts += _bars(left, shares)
    return "\n".join([*parts, "</svg>", ""])


def _bars(left: int, shares: Sequence[float]) -> list[str]:
    most = max(shares, default=0.0) or 1.0
    parts = []
    for number, share in enumerate(shares):
        y, size = _TOP + _ROW * number, _PANEL * share / most
        colour = _COLOURS[number % len(_COLOURS)]
        parts += [
            f'<rect x="{left}" y="{y}" width="{size:.1f}" height="20" fill="{colour}"/>',
            f'<text x="{left + size + 5:.1f}" y="{y + 15}">{share:.1%}</text>',
        ]
    return parts
