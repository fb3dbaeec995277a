"""Secrets disappear from what is sent; ordinary code, prose and data stay as they are."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentscope_compaction.redaction import REDACTED, redact_and_count, redact_secrets
from agentscope_compaction.secret_formats import (
    FORMATS,
    PLACED,
    PLACES,
    holds_any,
    may_have_format,
)
from agentscope_compaction.secret_words import _STRONG, _WEAK, may_name, strength
from tests.redaction.harmless_texts import HARMLESS
from tests.redaction.secret_texts import SECRETS

FRAGMENTS = [text for text, _ in SECRETS] + HARMLESS + list("\"'\\:=,@ \n[]<>&?") + [REDACTED]

ADVERSARIAL = {
    "one word": "a" * 10**6,
    "dashed words": "a-" * 500_000,
    "dotted words": "a." * 500_000,
    "backslashes": "password=" + "\\" * 10**6,
    "unclosed quotes": "password='password=\"" * 50_000,
    "open key blocks": "-----BEGIN PRIVATE KEY-----" * 37_000,
    "block scalars": "password: |\n" * 80_000,
    "values": "password\n value" * 70_000,
    "commands": "mysql " * 170_000,
    "logins": "login a " * 120_000 + "password ",
    "escapes": "\\u0026" * 160_000,
    "key gaps": ("-----BEGIN PRIVATE KEY-----" + " 1:" * 300) * 1_000,
    "key lines": "-----BEGIN PRIVATE KEY-----\n" + "1\tMIIEfakefakefakefake\n" * 40_000,
    "empty key blocks": "-----BEGIN PRIVATE KEY----------END PRIVATE KEY-----" * 20_000,
    "schemes": "://" * 330_000,
    "long userinfo": ("http://" + "a" * 600) * 1_600,
    "at signs": "http://" + "@" * 10**6,
    "spaces": "password" + " " * 10**6,
    "webhooks": "/api/webhooks/12345678901234567/" * 30_000,
    "Q~": "aaa1Q~" * 170_000,
    "half tokens": "eyJaaaaaaaa." * 80_000,
    "prefixes": "sk-" * 300_000,
    "tags": "<password>" * 100_000,
    "flags": "--a " * 250_000,
    "pairs": "token: abcdefg1" * 70_000,
    "cells": "password | " * 90_000,
    "nested": 'password: {"value": ' * 50_000,
    "settings": "set -x " * 140_000 + "token",
    "options": "config -a -b -c " * 60_000,
    "paths": "setx " + "a/" * 500_000 + " token",
    "pipes": "echo aaa | a " * 80_000 + "chpasswd",
    "statements": "with password '" * 70_000,
    "values first": "abc123 is the very long " * 40_000 + "password",
}


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_is_replaced_once_and_for_all(text: str, secret: str) -> None:
    """The secret is gone, the replacement is visible and counted, and a second pass is idle."""
    redacted, count = redact_and_count(text)
    assert secret not in redacted
    assert REDACTED in redacted
    assert count >= 1
    assert redact_and_count(redacted) == (redacted, 0)


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_on_a_line_of_a_file_is_found_in_json(text: str, secret: str) -> None:
    """Tool inputs hold whole files: behind an escaped line break or tab a line begins, too."""
    for before, after in (("", ""), ("first line\n", "\nlast line"), ("\t", "\r\n")):
        written = before + text + after
        for _ in range(3):
            assert secret not in redact_secrets(written)
            written = json.dumps({"content": written}, ensure_ascii=False)


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_stays_byte_for_byte(text: str) -> None:
    """Hashes, ids, images, code, prose and ordinary URLs are not secrets."""
    assert redact_and_count(text) == (text, 0)


def test_names_and_structure_stay_readable() -> None:
    """Only values are replaced, so a decision model still sees what the call was about."""
    text = '{"headers":{"Authorization":"Bearer abc"},"url":"https://u:p@h/"}'
    assert redact_and_count(text) == (
        '{"headers":{"Authorization":"Bearer [redacted]"},"url":"https://[redacted]@h/"}',
        2,
    )


def test_what_was_json_stays_json() -> None:
    """The escapes that are written out end no string."""
    text = json.dumps({"note": '密码："hunter2" \\ \n \x00 \ud800 😀 "', "password": "hunter2"})
    for escaped in (text, text.replace('\\"', "\\u0022")):
        assert json.loads(redact_secrets(escaped))["password"] == REDACTED


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=8))
def test_redacting_twice_changes_nothing_more(fragments: list[str]) -> None:
    """Any mixture of secrets, code and punctuation reaches its final form in one pass."""
    once = redact_secrets("".join(fragments))
    assert redact_secrets(once) == once


@given(st.from_regex(FORMATS))
def test_no_format_is_ruled_out_at_a_glance(text: str) -> None:
    """What a search for the formats finds is searched for, whichever format it is."""
    assert may_have_format(text)


@given(st.from_regex(_STRONG) | st.from_regex(_WEAK))
def test_no_telling_name_is_ruled_out_at_a_glance(name: str) -> None:
    """A text with a name that announces a secret is searched for what stands behind it."""
    assert not strength(name) or may_name(name)


@given(st.from_regex(PLACED))
def test_no_place_is_ruled_out_at_a_glance(text: str) -> None:
    """The same for secrets that are given away by what is before them."""
    assert holds_any(text, PLACES)


@given(st.text())
def test_any_text_is_accepted(text: str) -> None:
    """No text raises."""
    redact_secrets(text)


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_time_is_linear(name: str) -> None:
    """A megabyte made to provoke backtracking ends within seconds, not hours."""
    started = time.process_time()
    redact_secrets(ADVERSARIAL[name])
    assert time.process_time() - started < 5
