"""Make strings of a history inert in HTML, and visible where a browser would hide or obey them."""

from __future__ import annotations

import html
import json
import re

__all__ = ["attribute", "data", "shortened", "text"]

_HIDDEN = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
    "\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]"
)
"""Control characters, direction overrides, invisible blanks, and what UTF-8 cannot carry."""


def text(value: object) -> str:
    """Return a value as HTML text, which no character of it can leave."""
    return html.escape(_HIDDEN.sub(_named, str(value)), quote=True)


def attribute(value: object) -> str:
    """Return a value as a quoted attribute value, quotes included."""
    return f'"{text(value)}"'


def data(value: object) -> str:
    """Return JSON for a ``<script type="application/json">``, which it cannot end."""
    raw = json.dumps(value, separators=(",", ":"))
    return raw.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def shortened(value: str, limit: int) -> str:
    """Return the text, its middle replaced by a note where it is longer than ``limit``."""
    if len(value) <= limit:
        return value
    half = limit // 2
    left_out = len(value) - 2 * half
    return (
        f"{value[:half]}\n[… {left_out:,} characters are not shown in this report …]\n"
        + (value[-half:])
    )


def _named(match: re.Match[str]) -> str:
    return match.group().encode("unicode_escape", "surrogatepass").decode("ascii")
