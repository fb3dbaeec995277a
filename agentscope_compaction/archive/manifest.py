"""A snapshot as content-addressed objects: block by block, named by a tree that shares its past.

The messages become one sequence of leaves: each message's *envelope* (the message with its
``content`` left out) followed by its blocks. The sequence is cut into groups where the content says
so (an entry whose digest ends in three zero bits closes a group), groups become objects named by
their digest, and so on upwards until few entries are left: the *root*, kept with the snapshot. A
history that grew, or lost a block in the middle, shares every group but the few around the change.

An entry is one kind byte, a 32-byte address, and for results an 8-byte tag of the call id.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agentscope_compaction.archive.codec import address, decode, encode
from agentscope_compaction.archive.protocol import ArchiveRef
from agentscope_compaction.core.types import JSONObject
from agentscope_compaction.errors import ArchiveError, ArchiveIntegrityError

__all__ = [
    "Entry",
    "Snapshot",
    "assemble",
    "call_tag",
    "entries_of",
    "freeze",
    "node_entries",
    "session_bytes",
    "take_apart",
]

_ENVELOPE, _WHOLE, _BLOCK, _RESULT, _NODE = b"m", b"w", b"b", b"r", b"n"
_DIGEST, _TAG = 32, 8
_ROOT_ENTRIES = 16
_GROUP_MASK = 0b111
_GROUP_MAX = 32
_NODE_TAG = b"N"


class Entry(NamedTuple):
    """One step of a snapshot: a leaf, or a group of entries."""

    kind: bytes
    digest: bytes
    tag: bytes = b""

    @property
    def is_node(self) -> bool:
        """Whether it names a group of entries."""
        return self.kind == _NODE

    @property
    def is_result(self) -> bool:
        """Whether it names a ``tool_result`` block."""
        return self.kind == _RESULT


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One history taken apart."""

    ref: ArchiveRef
    """Its name, from session and content."""
    root: bytes
    """The top entries of its tree."""
    objects: Mapping[bytes, bytes] = field(repr=False)
    """Address to raw bytes of every leaf and group."""
    messages: int
    """Number of messages."""
    chars: int
    """Characters of the messages as compact JSON."""


def freeze(messages: Sequence[JSONObject]) -> list[object]:
    """A copy of the lists that a living history appends to, cheap enough for the event loop."""
    if not isinstance(messages, list | tuple):
        raise ArchiveError(f"messages must be a list, not {type(messages).__name__}")
    return [
        {**m, "content": list(m["content"])}
        if isinstance(m, dict) and isinstance(m.get("content"), list)
        else m
        for m in messages
    ]


def session_bytes(session_id: str) -> bytes:
    """A session id as bytes, whatever characters it has."""
    if not isinstance(session_id, str):
        raise ArchiveError(f"session_id must be a str, not {type(session_id).__name__}")
    return session_id.encode("utf-8", "surrogatepass")


def call_tag(call_id: object) -> bytes:
    """What a result's entry shows of its call id."""
    return address(encode(call_id).raw)[:_TAG]


def take_apart(session_id: str, messages: Sequence[object]) -> Snapshot:
    """Turn a history into objects and the root that names them.

    Raises:
        ArchiveError: The history is not JSON.
    """
    objects: dict[bytes, bytes] = {}
    leaves: list[Entry] = []
    chars = 2 + max(0, len(messages) - 1)
    for message in messages:
        chars += _message_leaves(message, leaves, objects)
    root = b"".join(_packed(entry) for entry in _fold(leaves, objects))
    name = session_bytes(session_id)
    digest = hashlib.sha256(b"snapshot 1\0%d\0" % len(name) + name + root).digest()[:21]
    ref = ArchiveRef("ar_" + base64.urlsafe_b64encode(digest).decode())
    return Snapshot(ref, root, objects, len(messages), chars)


def entries_of(root: bytes) -> list[Entry]:
    """The entries of a root.

    Raises:
        ArchiveIntegrityError: The bytes are not entries.
    """
    found: list[Entry] = []
    at = 0
    while at < len(root):
        kind = root[at : at + 1]
        if kind not in (_ENVELOPE, _WHOLE, _BLOCK, _RESULT, _NODE):
            raise ArchiveIntegrityError("a stored manifest is damaged")
        end = at + 1 + _DIGEST
        stop = end + _TAG if kind == _RESULT else end
        if stop > len(root):
            raise ArchiveIntegrityError("a stored manifest is cut short")
        found.append(Entry(kind, root[at + 1 : end], root[end:stop]))
        at = stop
    return found


def node_entries(raw: bytes) -> list[Entry]:
    """The entries of a group from its raw bytes.

    Raises:
        ArchiveIntegrityError: The bytes are not a group.
    """
    if raw[:1] != _NODE_TAG:
        raise ArchiveIntegrityError("a stored manifest is damaged")
    return entries_of(raw[1:])


def assemble(leaves: Iterable[Entry], raw: Mapping[bytes, bytes]) -> list[JSONObject]:
    """The history from its leaves, in fresh objects.

    Args:
        leaves: Entries without groups, in order.
        raw: Address to checked raw bytes.

    Raises:
        ArchiveIntegrityError: The leaves do not form a history.
    """
    messages: list[Any] = []
    content: list[Any] | None = None
    for leaf in leaves:
        value = decode(raw[leaf.digest])
        match leaf.kind:
            case b"w":
                messages.append(value)
                content = None
            case b"m":
                content = value["content"] = []
                messages.append(value)
            case _ if content is not None:
                content.append(value)
            case _:
                raise ArchiveIntegrityError("a stored block belongs to no message")
    return messages


def _message_leaves(message: object, leaves: list[Entry], objects: dict[bytes, bytes]) -> int:
    """Append one message's leaves; return the characters of its compact JSON."""
    if not (isinstance(message, dict) and isinstance(message.get("content"), list)):
        return _leaf(_WHOLE, message, leaves, objects)
    content = message["content"]
    chars = _leaf(_ENVELOPE, {**message, "content": None}, leaves, objects) - len("null")
    for block in content:
        result = isinstance(block, dict) and block.get("type") == "tool_result" and "id" in block
        kind = _RESULT if result else _BLOCK
        tag = call_tag(block["id"]) if result else b""
        chars += _leaf(kind, block, leaves, objects, tag)
    return chars + len("[]") + max(0, len(content) - 1)


def _leaf(
    kind: bytes, value: object, leaves: list[Entry], objects: dict[bytes, bytes], tag: bytes = b""
) -> int:
    raw, chars = encode(value)
    digest = address(raw)
    objects[digest] = raw
    leaves.append(Entry(kind, digest, tag))
    return chars


def _fold(entries: list[Entry], objects: dict[bytes, bytes]) -> list[Entry]:
    """Group entries, then the groups, until a root's worth is left."""
    while len(entries) > _ROOT_ENTRIES:
        above: list[Entry] = []
        group: list[Entry] = []
        for position, entry in enumerate(entries, 1):
            group.append(entry)
            closes = len(group) > 1 and not entry.digest[-1] & _GROUP_MASK
            if closes or len(group) == _GROUP_MAX or position == len(entries):
                raw = _NODE_TAG + b"".join(_packed(member) for member in group)
                digest = address(raw)
                objects[digest] = raw
                above.append(Entry(_NODE, digest))
                group = []
        entries = above
    return entries


def _packed(entry: Entry) -> bytes:
    return entry.kind + entry.digest + entry.tag
