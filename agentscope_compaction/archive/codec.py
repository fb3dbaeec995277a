"""Exact bytes of any JSON value Python can hold, and the compressed bodies a database keeps.

Three layers, each pure:

* ``encode`` / ``decode``: a value and its *raw* bytes. Exact where ``json`` is not: lone and paired
  surrogates stay code points, integers have no digit limit, nesting has no depth limit, ``1`` is
  not ``1.0`` is not ``True``, ``-0.0``, NaN and the infinities survive, keys keep their order.
* ``address``: SHA-256 of the raw bytes, the name of a stored object.
* ``pack`` / ``unpack``: raw bytes and the *stored* body, compressed where that pays, with a SHA-256
  over the stored bytes themselves.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

from agentscope_compaction.errors import ArchiveError, ArchiveIntegrityError

__all__ = ["Body", "Encoded", "address", "decode", "encode", "pack", "unpack"]

_PLAIN, _FLAT = b"J", b"F"
_MAX_DEPTH = 200
"""Deeper values are stored flat; ``json`` itself gives up near the interpreter's limit."""
_MAX_BITS = 12_000
"""Larger integers are stored flat; Python refuses decimal strings beyond 4300 digits."""
_STORED, _DEFLATED = b"0", b"1"
_MIN_DEFLATE = 64
_LEVEL = 6
_DICTIONARY = (
    b'"is_error":false,"truncated":false,"usage":null,"finished_reason":null,'
    b'"structured_output":null,"error":null}J{"name":"assistant","content":null,"role":"assistant"'
    b',"id":"J{"type":"text","text":"J{"type":"thinking","thinking":"J{"type":"tool_call","id":"'
    b'call_","name":"","input":"{\\"command\\": \\"file_path\\": \\"","state":"finished",'
    b'"suggested_rules":[],"created_at":"2025-01-01T00:00:00","finished_at":"2025-01-01T00:00:00"}'
    b'J{"type":"tool_result","id":"call_","name":"","output":[{"type":"text","text":"","id":"'
    b'","created_at":"2025-01-01T00:00:00","finished_at":"2025-01-01T00:00:00"}],'
    b'"state":"success","metadata":{},"created_at":"2025-01-01T00:00:00","finished_at":"'
)
"""What most blocks hold in common. Part of the stored format: never edit, add a new body tag."""

_ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))


class Encoded(NamedTuple):
    """Raw bytes of one value."""

    raw: bytes
    """What is hashed and stored."""
    chars: int
    """Characters of its compact JSON text."""


class Body(NamedTuple):
    """One object as the database keeps it."""

    stored: bytes
    """A tag byte and the raw or compressed bytes."""
    checksum: bytes | None
    """SHA-256 of ``stored``; None where it holds the raw bytes, which the address covers."""


def encode(value: object) -> Encoded:
    """Encode a JSON value exactly.

    Raises:
        ArchiveError: The value is not JSON: another type than dict, list, str, int, float, bool or
            None, a key that is not a string, or a container that contains itself.
    """
    try:
        flat = _needs_flat(value)
        text = _ENCODER.encode(_flatten(value) if flat else value)
    except RuntimeError as exc:
        raise ArchiveError("the value changed while it was being archived") from exc
    tag = _FLAT if flat else _PLAIN
    return Encoded(tag + text.encode("utf-8", "surrogatepass"), len(text))


def decode(raw: bytes) -> Any:
    """The value that :func:`encode` turned into ``raw``.

    Raises:
        ArchiveIntegrityError: The bytes are not what :func:`encode` writes.
    """
    try:
        value = json.loads(raw[1:].decode("utf-8", "surrogatepass"))
        match raw[:1]:
            case b"J":
                return value
            case b"F":
                return _unflatten(value)
            case tag:
                raise ValueError(f"unknown format {tag!r}")
    except (ValueError, RecursionError, TypeError, IndexError) as exc:
        raise ArchiveIntegrityError("stored bytes are not an archived value") from exc


def address(raw: bytes) -> bytes:
    """SHA-256 of raw bytes, the name under which they are stored."""
    return hashlib.sha256(raw).digest()


def pack(raw: bytes) -> Body:
    """Compress raw bytes where that pays, and sum what is stored."""
    if len(raw) >= _MIN_DEFLATE:
        deflater = zlib.compressobj(_LEVEL, zdict=_DICTIONARY)
        small = deflater.compress(raw) + deflater.flush()
        if len(small) + 32 < len(raw):
            stored = _DEFLATED + small
            return Body(stored, hashlib.sha256(stored).digest())
    return Body(_STORED + raw, None)


def unpack(digest: bytes, stored: bytes, checksum: bytes | None) -> bytes:
    """Raw bytes of a stored body, after checking both of its digests.

    Raises:
        ArchiveIntegrityError: The stored bytes, their checksum or the address do not agree.
    """
    try:
        if checksum is not None and hashlib.sha256(stored).digest() != checksum:
            raise ValueError("checksum")
        match stored[:1]:
            case b"0":
                raw = bytes(stored[1:])
            case b"1":
                raw = zlib.decompressobj(zdict=_DICTIONARY).decompress(stored[1:])
            case tag:
                raise ValueError(f"unknown body {tag!r}")
        if address(raw) != digest:
            raise ValueError("address")
    except (ValueError, TypeError, zlib.error) as exc:
        raise ArchiveIntegrityError(
            f"stored bytes of object {bytes(digest).hex()[:16]} do not match their digest"
        ) from exc
    return raw


def _not_json(node: object) -> ArchiveError:
    return ArchiveError(f"only JSON can be archived exactly, not {type(node).__name__}")


def _is_scalar(node: object) -> bool:
    return node is None or isinstance(node, str | int | float)


def _needs_flat(value: object) -> bool:
    """Whether ``json`` could not carry the value; refuses what is not JSON on the way."""
    stack: list[tuple[object, int]] = [(value, 0)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, dict | list):
            if depth == _MAX_DEPTH:
                return True
            children = _checked_values(node) if isinstance(node, dict) else node
            stack.extend((child, depth + 1) for child in children)
        elif isinstance(node, int):
            if node.bit_length() > _MAX_BITS:
                return True
        elif not _is_scalar(node):
            raise _not_json(node)
    return False


def _checked_values(node: dict[Any, Any]) -> Iterator[object]:
    for key in node:
        if not isinstance(key, str):
            raise ArchiveError(f"a JSON key is a string, not {type(key).__name__}")
    return iter(node.values())


def _flatten(value: object) -> list[list[object]]:
    """Postfix tokens: ``["v", scalar]``, ``["i", hex]``, ``["l", items]``, ``["d", pairs]``."""
    tokens: list[list[object]] = []
    open_ids: set[int] = set()
    stack: list[tuple[object, bool]] = [(value, False)]
    while stack:
        node, leaving = stack.pop()
        if leaving and isinstance(node, dict | list):
            open_ids.discard(id(node))
            tokens.append(["d" if isinstance(node, dict) else "l", len(node)])
        elif isinstance(node, dict | list):
            if id(node) in open_ids:
                raise ArchiveError("a value that contains itself is not JSON")
            open_ids.add(id(node))
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(_parts(node)))
        elif isinstance(node, int) and not isinstance(node, bool):
            tokens.append(["i", hex(node)])
        elif _is_scalar(node):
            tokens.append(["v", node])
        else:
            raise _not_json(node)
    return tokens


def _parts(node: dict[Any, Any] | list[Any]) -> list[object]:
    if isinstance(node, list):
        return list(node)
    return list(chain.from_iterable(zip(node, _checked_values(node), strict=True)))


def _unflatten(tokens: list[Any]) -> Any:
    stack: list[Any] = []
    for tag, payload in tokens:
        match tag:
            case "v":
                stack.append(payload)
            case "i":
                stack.append(int(payload, 16))
            case "l" | "d":
                size = payload if tag == "l" else 2 * payload
                start = len(stack) - size
                if start < 0:
                    raise ValueError("too few tokens")
                items = stack[start:]
                del stack[start:]
                stack.append(
                    items if tag == "l" else dict(zip(items[::2], items[1::2], strict=True))
                )
            case _:
                raise ValueError("unknown token")
    (value,) = stack
    return value
