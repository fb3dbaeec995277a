"""Take secrets out of text before it leaves the process; names and structure stay readable.

A secret is recognised by the name in front of it (``password: x``, ``"api_key": "x"``,
``--token x``, ``?sig=x``, ``export X_TOKEN=x``), by its own format (``ghp_...``, ``AKIA...``, a
JWT), by its place in a URL (``https://user:x@host``), or as a private-key block. JSON escaped any
number of times inside JSON is read too, because tool inputs are raw JSON strings. Doubt redacts
values under plain names such as ``password`` and leaves ordinary code alone: calls, attributes,
type names, placeholders, hashes, UUIDs and base64 data.

Best effort, not a guarantee: a secret without a telling name or format is not recognised. Time is
linear in the text; redacting twice changes nothing more.
"""

from __future__ import annotations

import re

from agentscope_compaction.named_secrets import named_values
from agentscope_compaction.private_keys import key_blocks
from agentscope_compaction.secret_formats import (
    FORMATS,
    INFIXED,
    INFIXES,
    PLACED,
    PLACES,
    REDACTED,
    holds_any,
    may_have_format,
)
from agentscope_compaction.secret_words import is_harmless, may_name
from agentscope_compaction.told_secrets import (
    commands,
    flags,
    sentences,
    sentences_elsewhere,
    settings,
)

__all__ = ["REDACTED", "redact_and_count", "redact_secrets"]

_MAX_PASSES = 8
_UNICODE_ESCAPE = re.compile(r"(?P<escape>\\{1,15})u(?P<code>[0-9A-Fa-f]{4})")
_USERINFO = re.compile(r"(?<=[A-Za-z0-9])(:(?:\\{0,15}/){2})([^\s/?#\"'<>\\`]{1,512})@(?=[\w\[$])")


def redact_secrets(text: str) -> str:
    """Return the text with every recognised secret replaced by ``[redacted]``."""
    return redact_and_count(text)[0]


def redact_and_count(text: str) -> tuple[str, int]:
    r"""Return the redacted text and how many secrets were replaced in it.

    A text without any comes back as it is; in one with some, JSON's escapes of plain characters
    (``\u0026`` for ``&``) are written out.
    """
    readable = _UNICODE_ESCAPE.sub(_written_out, text) if "\\u" in text else text
    clean, total = _passes(readable)
    return (clean, total) if total else (text, 0)


def _written_out(match: re.Match[str]) -> str:
    """The character of an escape, unless it would end or break the string it stands in."""
    character = chr(int(match["code"], 16))
    if character == '"':
        return match["escape"] + character
    return character if character.isprintable() and character != "\\" else match[0]


def _passes(text: str) -> tuple[str, int]:
    total = 0
    for _ in range(_MAX_PASSES):  # a replacement can uncover the secret glued to it
        found = 0
        for step in _STEPS if may_name(text) else _STEPS_WITHOUT_NAMES:
            text, count = step(text)
            found += count
        if not found:
            break
        total += found
    return text, total


def _userinfo(text: str) -> tuple[str, int]:
    if "@" not in text:
        return text, 0
    count = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal count
        head, info = match.groups()
        web = text[max(0, match.start() - 5) : match.start()].lower().endswith(("http", "https"))
        if info == REDACTED or is_harmless(info) or not (":" in info or (web and len(info) > 7)):
            return match[0]
        count += 1
        return f"{head}{REDACTED}@"

    return _USERINFO.sub(replace, text), count


def _formats(text: str) -> tuple[str, int]:
    placed = marked = total = 0
    if may_have_format(text):
        text, total = FORMATS.subn(REDACTED, text)
    if holds_any(text, PLACES):
        text, placed = PLACED.subn(REDACTED, text)
    if holds_any(text, INFIXES):
        text, marked = INFIXED.subn(REDACTED, text)
    return text, total + placed + marked


_STEPS = (
    *(key_blocks, _userinfo, named_values, flags, commands, settings),
    *(_formats, sentences, sentences_elsewhere),
)
_STEPS_WITHOUT_NAMES = (key_blocks, _userinfo, flags, commands, _formats, sentences_elsewhere)
"""Those that can find anything in a text without a telling word, as most are."""
