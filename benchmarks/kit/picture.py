"""Draws line charts as SVG, without a plotting library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

__all__ = ["line_chart"]

_COLOURS = (
    "#d62728",
    "#bbbbbb",
    "#c49a6c",
    "#e377c2",
    "#ff7f0e",
    "#9467bd",
    "#17becf",
    "#1f77b4",
    "#999999",
    "#000000",
)
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 860, 460, 70, 40, 270, 60


def line_chart(
    title: str,
    axes: tuple[str, str],
    lines: Mapping[str, Sequence[tuple[float, float]]],
    marks: Sequence[str] = (),
) -> str:
    """An SVG of shares: both axes from 0, in percent; lines named in ``marks`` are bold."""
    right = max(x for points in lines.values() for x, _ in points)
    top = max(y for points in lines.values() for _, y in points) or 1.0
    wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        return _LEFT + wide * x / right, _TOP + high * (1 - y / top)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="15">{escape(title)}</text>',
        *_grid(right, top, place),
        f'<text x="{_LEFT + wide / 2}" y="{_HEIGHT - 16}" text-anchor="middle">{axes[0]}</text>',
        f'<text x="18" y="{_TOP + high / 2}" text-anchor="middle" '
        f'transform="rotate(-90 18 {_TOP + high / 2})">{escape(axes[1])}</text>',
    ]
    for number, (name, points) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*p) for p in points))
        width = 3 if name in marks else 1.6
        y = _TOP + 14 + 22 * number
        x = _WIDTH - _RIGHT + 16
        parts += [
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>',
            f'<line x1="{x}" y1="{y}" x2="{x + 24}" y2="{y}" stroke="{colour}" '
            f'stroke-width="{width}"/>',
            f'<text x="{x + 32}" y="{y + 4}">{escape(name)}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def _grid(right: float, top: float, place: object) -> list[str]:
    assert callable(place)
    parts = []
    for step in range(11):
        value = step / 10
        if value <= right + 1e-9:
            x, y = place(value, 0)
            parts.append(
                f'<text x="{x:.1f}" y="{y + 18:.1f}" text-anchor="middle">{step * 10}%</text>'
            )
        if value <= top + 1e-9:
            x, y = place(0, value)
            end, _ = place(right, value)
            parts.append(
                f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{end:.1f}" y2="{y:.1f}" stroke="#e5e5e5"/>'
                f'<text x="{x - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{step * 10}%</text>'
            )
    return parts
