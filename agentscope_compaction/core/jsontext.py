"""JSON values as text: one compact form, one digest, one copy.

Compact JSON with non-ASCII characters as they are is the unit of every ``chars_*`` figure. Lone
surrogates are legal in a Python string and survive; digests are taken over ``surrogatepass``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from agentscope_compaction.errors import InvalidSnapshotError

__all__ = [
    "canonical_input",
    "compact",
    "copy_json",
    "digest",
    "object_of",
    "scrub_surrogates",
    "sized",
]

MAX_DEPTH = 400
"""Deepest nesting of a history; well within Python's stack, so never half done."""
_CONTAINERS = (dict, list, tuple)
_SURROGATE = re.compile("[\ud800-\udfff]")


def compact(value: object) -> str:
    """Return the value as compact JSON, non-ASCII as is."""
    return _ENCODER.encode(value)


def digest(text: str) -> str:
    """Return the SHA-256 of the text, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def sized(messages: Sequence[object]) -> tuple[int, str]:
    """Return the length of a list as compact JSON, and its digest.

    Item by item: the text of a whole history at once would be as large as all else together.
    """
    chars, hashed = len("[]") + max(0, len(messages) - 1), hashlib.sha256(b"[")
    for number, message in enumerate(messages):
        text = compact(message)
        chars += len(text)
        hashed.update(b"," if number else b"")
        hashed.update(text.encode("utf-8", "surrogatepass"))
    hashed.update(b"]")
    return chars, hashed.hexdigest()


def copy_json(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Copy containers deeply and share the (immutable) leaves.

    Raises:
        InvalidSnapshotError: Containers are nested too deeply.
    """
    if not isinstance(value, _CONTAINERS):
        return value
    if depth < 0:
        raise InvalidSnapshotError(f"messages are nested more than {MAX_DEPTH} deep")
    # Plain loops: a comprehension would cost a second stack frame per level.
    if isinstance(value, dict):
        copied = dict(value)
        for key, item in value.items():
            if not isinstance(item, str) and isinstance(item, _CONTAINERS):
                copied[key] = copy_json(item, depth - 1)
        return copied
    items = list(value)
    for index, item in enumerate(value):
        if isinstance(item, _CONTAINERS):
            items[index] = copy_json(item, depth - 1)
    return items if isinstance(value, list) else tuple(items)


def scrub_surrogates(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot carry, by U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def object_of(raw: object) -> dict[str, Any] | None:
    """Parse a tool input; None unless it is the JSON text of an object with finite numbers."""
    if not isinstance(raw, str):
        return None
    try:
        value = _STRICT.decode(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def canonical_input(raw: str) -> str:
    """Return one form for equal tool inputs: key order, blanks and 1 versus 1.0 do not count.

    An object that names a key twice has no agreed meaning, so its raw text stands for itself.
    """
    try:
        value = json.loads(raw, object_pairs_hook=_unique, parse_float=_integral)
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    except (ValueError, RecursionError):
        return raw


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError("number overflows")
    return number


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_STRICT = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
"""Built once: ``json.loads`` and ``json.dumps`` with arguments build a new one per call."""


def _integral(digits: str) -> float | int:
    number = float(digits)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("duplicate key")
    return value
