from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentscope_compaction.core.scan import CHUNK, Kind, classify, clip, identifiers, terms


@pytest.mark.parametrize(
    ("chunk", "kind"),
    [
        ("https://example.org/a", Kind.URL),
        ("/srv/app/main.py", Kind.PATH),
        ("src/app/main.py", Kind.PATH),
        ("and/or", Kind.WORD),
        ("client/server", Kind.NAME),
        ("3f9c2ab", Kind.HASH),
        ("123e4567-e89b-12d3-a456-426614174000", Kind.HASH),
        ("HAT028", Kind.ID),
        ("JG7FMM", Kind.ID),
        ("credit_card_2929732", Kind.ID),
        ("#2E3440", Kind.ID),
        ("929732", Kind.NUMBER),
        ("10000", Kind.WORD),
        ("2026", Kind.WORD),
        ("2026-12-02", Kind.WORD),
        ("100px", Kind.WORD),
        ("utf-8", Kind.WORD),
        ("retry_budget", Kind.NAME),
        ("maxRetries", Kind.NAME),
        ("parser", Kind.WORD),
    ],
)
def test_kinds(chunk: str, kind: Kind) -> None:
    """Each kind of chunk is told by its shape."""
    assert classify(chunk) is kind


def test_terms_meet() -> None:
    """Words of compound names meet plain words, endings aside; Chinese is read in pairs."""
    assert terms("maxRetries") == ("max", "retry")
    assert terms("retrying") == terms("retry")
    assert terms("足球网页") == ("足球", "球网", "网页")


@given(text=st.text(st.characters()), limit=st.integers(2, 40))
def test_clip_is_bounded(text: str, limit: int) -> None:
    """A clipped text is at most as long as allowed, and a short one is untouched."""
    assert len(clip(text, limit)) <= max(limit, 0)
    assert len(text) > limit or clip(text, limit) == text


@given(text=st.text(st.characters()))
def test_identifiers_are_verbatim(text: str) -> None:
    """Whatever the text, identifiers are substrings of it."""
    assert all(name in text for name in identifiers(CHUNK.findall(text)))
