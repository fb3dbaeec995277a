"""Exact bytes: any JSON value in, the same value out, every damage noticed."""

import hashlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentscope_compaction.archive import codec, manifest
from agentscope_compaction.archive.records import Outcome, OutcomeKind
from agentscope_compaction.errors import ArchiveError, ArchiveIntegrityError
from tests.archive.spelling import spelled

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A slow machine is no failure."""
TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=40)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
BIG = st.integers(min_value=3900, max_value=5000).map(lambda digits: -(10**digits))
JSON = st.recursive(
    SCALARS | BIG,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=30,
)
BLOCK = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool_call", "tool_result"])},
    optional={"id": JSON, "output": JSON, "content": JSON},
)
MESSAGE = (
    st.fixed_dictionaries({"content": st.lists(BLOCK | JSON, max_size=60)}, optional={"id": JSON})
    | st.dictionaries(TEXT, JSON, max_size=4)
    | JSON
)

GOLDEN = "3178bbac51d15fc315e18949d4854ab500e53826b7"
GOLDEN_REF = "ar_PF3M4_av--0aT5G4I-lKdmnrWKMU"


def leaves(root: bytes, objects: Any) -> list[manifest.Entry]:
    """The leaves under a root."""
    found = []
    for entry in manifest.entries_of(root):
        if entry.is_node:
            raw = objects[entry.digest]
            found += leaves(raw[1:], objects)
        else:
            found.append(entry)
    return found


@patient
@given(JSON)
def test_values_round_trip(value: object) -> None:
    """Encoding and decoding give the same value, types and order included."""
    assert spelled(codec.decode(codec.encode(value).raw)) == spelled(value)


@patient
@given(JSON)
def test_equal_bytes_are_equal_values(value: object) -> None:
    """The encoding is a function of the value, so equal content has one address."""
    again = codec.decode(codec.encode(value).raw)
    assert codec.encode(again) == codec.encode(value)


@patient
@given(st.lists(MESSAGE, max_size=6))
def test_histories_round_trip(messages: list[Any]) -> None:
    """A history taken apart and put together is the same history, whatever its messages are."""
    shot = manifest.take_apart("s", messages)
    rebuilt = manifest.assemble(leaves(shot.root, shot.objects), shot.objects)
    assert spelled(rebuilt) == spelled(messages)


@patient
@given(st.binary(max_size=600), st.booleans())
def test_bodies_round_trip(raw: bytes, repeated: bool) -> None:
    """Stored bodies give their raw bytes back, compressed or not."""
    data = raw * 9 if repeated else raw
    body = codec.pack(data)
    assert codec.unpack(codec.address(data), *body) == data
    assert len(body.stored) <= len(data) + 1


@patient
@given(st.binary(min_size=1, max_size=300), st.booleans(), st.data())
def test_any_flipped_bit_is_noticed(raw: bytes, repeated: bool, data: st.DataObject) -> None:
    """No bit of a stored body can change without an integrity error."""
    content = raw * 9 if repeated else raw
    digest, (stored, checksum) = codec.address(content), codec.pack(content)
    bit = data.draw(st.integers(0, 8 * len(stored) - 1))
    damaged = bytearray(stored)
    damaged[bit // 8] ^= 1 << bit % 8
    with pytest.raises(ArchiveIntegrityError):
        codec.unpack(digest, bytes(damaged), checksum)


@patient
@given(st.binary(max_size=80))
def test_arbitrary_bytes_are_an_integrity_error(data: bytes) -> None:
    """Bytes we did not write decode, or raise the one documented error."""
    for read in (codec.decode, manifest.entries_of, manifest.node_entries):
        try:
            read(data)
        except ArchiveIntegrityError:
            pass


def test_deep_cycles_are_refused() -> None:
    """A value that contains itself far below is refused rather than walked for ever."""
    inner: list[Any] = []
    value = inner
    for _ in range(500):
        value = [value]
    inner.append(value)
    with pytest.raises(ArchiveError):
        codec.encode(value)


def test_shared_containers_are_no_cycle() -> None:
    """One list in two places is legal JSON."""
    shared = [10**5000]
    assert codec.decode(codec.encode([shared, shared]).raw) == [shared, shared]


def test_the_dictionary_is_part_of_the_format() -> None:
    """A body written by the first release still reads: the compression dictionary never changes."""
    raw = b'J{"type":"text","text":"' + b"ab" * 40 + b'"}'
    stored = bytes.fromhex(GOLDEN)
    assert codec.unpack(codec.address(raw), stored, hashlib.sha256(stored).digest()) == raw


def test_references_are_part_of_the_format() -> None:
    """A reference is the same in every release: stubs in living histories name it."""
    shot = manifest.take_apart("s\ud83d", [{"content": [{"type": "tool_result", "id": "c"}] * 40}])
    assert shot.ref == GOLDEN_REF


@pytest.mark.parametrize("kind", list(OutcomeKind))
def test_outcomes_are_read_from_all_their_forms(kind: OutcomeKind) -> None:
    """An outcome, its kind, its value and its JSON object mean the same."""
    for form in (kind, kind.value, {"kind": kind.value}, Outcome(kind), Outcome(kind).as_json()):
        assert Outcome.of(form) == Outcome(kind)
