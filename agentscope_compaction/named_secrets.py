"""Find the values that stand behind telling names, and take them out: ``password: x``.

What a value is depends on what surrounds it: quotes (escaped or not), a line, a query, a tag, a
list, or an expression of code, which is none.
"""

from __future__ import annotations

import re

from agentscope_compaction.secret_formats import NO_ESCAPE, REDACTED
from agentscope_compaction.secret_words import (
    is_expression,
    is_harmless,
    looks_random,
    strength,
)

__all__ = ["named_values"]

_MAX_VALUE = 8192
_ESC = r"\\{0,15}"
_NAMED = re.compile(
    rf"(?<![A-Za-z0-9_]{NO_ESCAPE})(?!(?<=\\)[nrtbf])"
    r"(?P<name>[A-Za-z_][A-Za-z0-9_.-]{0,63}+)"
    rf"(?P<quoted>{_ESC}[\"'])?\]?"
    r"(?:(?P<sep>[ \t]{0,8}(?:=>|={1,3}|!={1,2}|:=|:(?!:|//|\\/)(?:\*\*)?)[ \t]{0,8}"
    r"(?:\[\s{0,64}|[|>][-+0-9]{0,2}[ \t]{0,8}(?:\n|\\{1,15}n)[ \t]{1,64}(?!-)"
    rf"|\{{\s{{0,64}}{_ESC}[\"'](?:[a-z]{{1,20}}V|v)alue{_ESC}[\"']\s{{0,4}}:\s{{0,4}})?)"
    rf"|(?P<pair>,\s{{0,64}}{_ESC}[\"']value{_ESC}[\"'][ \t]{{0,8}}:[ \t]{{0,8}}"
    r"|(?:\s|\\{1,15}[nrt]){1,64}value(?::[ \t]{1,8}|=))"
    r"|(?P<comma>,\s{0,64})|(?P<tag>>)|(?P<cell>[ \t]{0,64}\|[ \t]{0,64}|\t|\\{1,15}t))"
)
_OPENING = re.compile(
    rf"(?:[fFrRbBuU]{{1,2}}(?=\\{{0,15}}[\"']))?(?P<escape>{_ESC})(?P<mark>[\"'`])"
)
_FIRST_ARGUMENT = re.compile(r"[A-Za-z0-9_]\(\s{0,16}\\{0,15}[\"']\Z")
_LIST_COMMA = re.compile(r"\\{0,15}[\"'`]\s{0,64},\s{0,64}")
_SCHEME = re.compile(
    r"(?:Bearer|Basic|Token|Digest|Negotiate|ApiKey|Api-Key|Key|OAuth|DPoP|Bot)\s{1,4}", re.I
)
_LINE_HEAD = re.compile(
    r"(?:\A|\n|\\n)[ \t]*(?:-[ \t]+|#[ \t]*|export[ \t]+|set[ \t]+|ENV[ \t]+|ARG[ \t]+)?\Z"
)
_ASSIGNING = ("export ", "set ", "ENV ", "ARG ")
_BARE = re.compile(r"[^\s\"'`,;&<>(){}\[\]\\|]{1,8192}+")
_LINE_BARE = re.compile(r"[^\s\"'`\\]{1,8192}+")
_QUERY_BARE = re.compile(r"[^\s\"'`&#<>\\,;)}\]]{1,8192}+")
_TAG_BARE = re.compile(r"[^<\n]{1,1024}+(?=</)")
_COOKIE_BARE = re.compile(r"[^\n\"'\\]{1,8192}+")


def named_values(text: str) -> tuple[str, int]:
    """Replace values that follow a telling name; each character is looked at once."""
    out: list[str] = []
    position = search_from = 0
    while match := _NAMED.search(text, search_from):
        search_from = match.end()
        level = strength(match["name"])
        if not level:
            continue
        span = _value_span(text, match, level)
        while span is not None:
            out += [text[position : span[0]], REDACTED]
            position = span[1]
            search_from = max(search_from, position)
            span = _next_in_list(text, match, position, level)
    return "".join([*out, text[position:]]), len(out) // 2


def _next_in_list(
    text: str, match: re.Match[str], position: int, level: int
) -> tuple[int, int] | None:
    """Where the next secret of a list after a name begins and ends; None when there is none."""
    comma = _LIST_COMMA.match(text, position) if "[" in (match["sep"] or "") else None
    opening = _OPENING.match(text, comma.end()) if comma else None
    if opening is None:
        return None
    end = _closing(text, opening)
    return _checked(text, opening.end(), end, level)


def _value_span(text: str, match: re.Match[str], level: int) -> tuple[int, int] | None:
    """Where the secret after a name begins and ends; None when there is none."""
    if match["tag"] is not None:
        opened = match.start() > 0 and text[match.start() - 1] == "<"
        value = _TAG_BARE.match(text, match.end()) if opened else None
        return _checked(text, value.start(), value.end(), level) if value else None
    if match["cell"] is not None:
        cell = _BARE.match(text, match.end()) if level == 2 and not match["quoted"] else None
        return _checked(text, cell.start(), cell.end(), 1) if cell else None
    opening = _OPENING.match(text, match.end())
    if match["comma"] is not None and not (match["quoted"] and _is_header(match["name"])):
        # getenv("API_KEY", "x1"), define('DB_PASSWORD', 'x1'): code, so it must look like one
        before = text[max(0, match.start() - 40) : match.start()]
        if not match["quoted"] or not _FIRST_ARGUMENT.search(before):
            return None
        level = 1
    if opening:
        end = _closing(text, opening)
        if text[opening.end() : end][:1].isspace() or _is_header(text[opening.end() : end]):
            return None
        return _checked(text, opening.end(), end, level)
    return _bare_span(text, match, level) if match["sep"] or match["pair"] else None


def _is_header(name: str) -> bool:
    return name.lower() in ("authorization", "proxy-authorization", "x-api-key", "cookie")


def _closing(text: str, opening: re.Match[str]) -> int:
    """The end of a quoted value: the next same quote that is escaped no deeper than the first."""
    mark, depth = opening["mark"], len(opening["escape"])
    limit = min(len(text), opening.end() + _MAX_VALUE)
    at = opening.end()
    while (at := text.find(mark, at, limit)) >= 0:
        escapes = at
        while escapes > opening.end() and text[escapes - 1] == "\\":
            escapes -= 1
        if at - escapes <= depth:
            return escapes
        at += 1
    line = text.find("\n", opening.end(), limit)
    return line if line >= 0 else limit


def _bare_span(text: str, match: re.Match[str], level: int) -> tuple[int, int] | None:
    """The span of an unquoted value, read as its surroundings suggest."""
    name, start, separator = match["name"], match.end(), (match["sep"] or ":").strip()
    before = text[max(0, match.start() - 16) : match.start()]
    if name.lower().endswith("cookie") and separator == ":":
        cookie = _COOKIE_BARE.match(text, start)
        return _checked(text, start, cookie.end(), 2) if cookie and "=" in cookie[0] else None
    scheme = _SCHEME.match(text, start) if "auth" in name.lower() else None
    start = scheme.end() if scheme else start
    if match["sep"] == "=" and before.endswith(("?", "&", "&amp;", ";")):
        value = _QUERY_BARE.match(text, start)
        return _checked(text, start, value.end(), 2) if value else None
    at_line = bool(_LINE_HEAD.search(before))
    shell = match["sep"] == "=" and (name.isupper() or before.endswith(_ASSIGNING))
    value = (_LINE_BARE if shell or at_line else _BARE).match(text, start)
    if value is None or separator in ("==", "===", "!=", "!=="):
        return None
    end = start + len(value[0] if shell else value[0].rstrip(",;)}]>"))
    if not shell and _is_code(text, start):
        return None
    return _checked(text, start, end, 2 if shell or scheme else level)


def _is_code(text: str, start: int) -> bool:
    """Whether an expression begins here: a call, an attribute, another variable."""
    word = _BARE.match(text, start)
    return word is None or is_expression(word[0], text[word.end() : word.end() + 1])


def _checked(text: str, start: int, end: int, level: int) -> tuple[int, int] | None:
    """The span without the scheme word, unless its content is harmless."""
    scheme = _SCHEME.match(text, start, end)
    start = scheme.end() if scheme else start
    value = text[start:end]
    if is_harmless(value.strip()) or text.startswith(REDACTED, start) or REDACTED in value:
        return None
    if value.isdigit() and len(value) < 4:
        return None
    return (start, end) if level == 2 or looks_random(value) else None
