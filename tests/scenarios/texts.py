"""Varied tool outputs, drawn from a seed: logs, tables, style sheets, search results."""

from __future__ import annotations

import random
from collections.abc import Sequence

__all__ = ["listing", "log", "reviews", "stylesheet", "table"]

_PEOPLE = ("Mira Okafor", "Jonas Lindqvist", "Priya Raman", "Tomas Varga", "Lena Abe")


def log(seed: int, service: str, events: Sequence[str], lines: int) -> str:
    """Log lines; an event may name ``{id}``, ``{n}`` and ``{who}``."""
    draw = random.Random(seed)
    out = []
    second = draw.randrange(3_000)
    for _ in range(lines):
        second += draw.randrange(1, 40)
        clock = f"{8 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        level = draw.choices(("INFO", "DEBUG", "WARN"), (6, 3, 1))[0]
        event = draw.choice(events).format(
            id=f"{draw.randrange(16**8):08x}", n=draw.randrange(1, 900), who=draw.choice(_PEOPLE)
        )
        out.append(f"2026-03-14T{clock}Z {level} {service}: {event}")
    return "\n".join(out)


def table(seed: int, columns: Sequence[str], rows: int) -> str:
    """A Markdown table; a column's name says what it holds."""
    draw = random.Random(seed)
    out = [f"| {' | '.join(columns)} |", "|" + " --- |" * len(columns)]
    for row in range(1, rows + 1):
        cells = [_cell(draw, column, row) for column in columns]
        out.append(f"| {' | '.join(cells)} |")
    return "\n".join(out)


def _cell(draw: random.Random, column: str, row: int) -> str:
    if column.endswith("%"):
        return f"{draw.uniform(0, 40):.1f}"
    if column in ("sku", "campaign", "run"):
        return f"{column[:2].upper()}-{draw.randrange(1000, 9999)}-{row}"
    if column in ("owner", "buyer"):
        return draw.choice(_PEOPLE)
    if column in ("place", "channel", "status", "weather"):
        return draw.choice(_WORDS[column])
    return str(draw.randrange(5, 9_000))


_WORDS = {
    "place": ("north hall", "south hall", "mezzanine", "returns bay", "cold room"),
    "channel": ("newsletter", "search ads", "partner page", "podcast", "leaflet"),
    "status": ("counted", "estimated", "in transit", "blocked", "written off"),
    "weather": ("light rain", "clear", "fog until noon", "gusts", "snow showers"),
}


def stylesheet(seed: int, theme: str, rules: int) -> str:
    """CSS rules of a theme."""
    draw = random.Random(seed)
    parts = ("card", "banner", "menu", "badge", "tooltip", "footer", "drawer", "chip", "toast")
    out = [f"/* {theme} theme, generated from the palette of the design team */"]
    for number in range(rules):
        colour, ink = draw.randrange(16**6), draw.randrange(16**6)
        out.append(
            f".{theme}-{draw.choice(parts)}--{number} {{\n"
            f"  background: #{colour:06x};\n  color: #{ink:06x};\n"
            f"  padding: {draw.randrange(2, 24)}px {draw.randrange(2, 24)}px;\n"
            f"  transition: opacity {draw.randrange(80, 400)}ms ease-in-out;\n}}"
        )
    return "\n".join(out)


def listing(seed: int, subject: str, hits: int) -> str:
    """Search results with a made-up address and a line of description each."""
    draw = random.Random(seed)
    kinds = ("outline", "filled", "duotone", "sharp", "rounded")
    return "\n".join(
        f"{n}. {subject} {draw.choice(kinds)} set, {draw.randrange(20, 900)} items, by "
        f"{draw.choice(_PEOPLE)}: https://assets.example/{draw.randrange(16**6):06x}/{n}"
        for n in range(1, hits + 1)
    )


def reviews(seed: int, topic: str, count: int) -> str:
    """Short opinions about a topic."""
    draw = random.Random(seed)
    openings = ("I would", "We should perhaps", "Nobody needs to", "Marketing wants to", "Let us")
    verbs = ("keep", "revisit", "simplify", "translate", "postpone", "illustrate")
    return "\n".join(
        f"{draw.choice(_PEOPLE)}: {draw.choice(openings)} {draw.choice(verbs)} the {topic} "
        f"part {draw.randrange(1, 40)}, score {draw.randrange(1, 6)} of 5."
        for _ in range(count)
    )
