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

from agentscope_compaction.secret_formats import (
    COMMAND,
    COMMANDS,
    FORMATS,
    INFIXED,
    INFIXES,
    PROSE,
    holds_any,
    is_expression,
    is_harmless,
    looks_random,
    may_have_format,
    may_name,
    strength,
)

__all__ = ["REDACTED", "redact_and_count", "redact_secrets"]

REDACTED = "[redacted]"
"""What stands in for a secret."""

_MAX_VALUE = 8192
_MAX_PASSES = 8
_ESC = r"\\{0,15}"
_UNICODE_ESCAPE = re.compile(r"(?P<escape>\\{1,15})u(?P<code>[0-9A-Fa-f]{4})")
_KEY_BEGIN = re.compile(
    r"----[- ]BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?[- ]----|Private-Lines: [0-9]{1,4}"
)
_KEY_END = re.compile(r"----[- ]END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?[- ]----|Private-MAC:")
_KEY_GAP = (
    r"(?:\\{1,15}[nrt]|[\s>+|#*\"',]|[0-9]{1,6}(?=\s{0,8}(?:[\t|:→]|\\{1,15}t))|[:→]"
    r"|(?:(?<=\n)|(?<=\\n))-(?!-))*+"
)
"""Between the lines of a key: breaks, line numbers, quoting and the marks of a diff."""
_KEY_LINES = re.compile(
    rf"(?:{_KEY_GAP}(?:[A-Za-z0-9/=][A-Za-z0-9+/=]{{15,}}+"
    r"|(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset):[^\n\\]{0,200}+))*+"
    rf"(?:{_KEY_GAP}[A-Za-z0-9+/=]{{1,15}}+(?={_KEY_GAP}\W{{0,8}}\Z))?+"
)
_USERINFO = re.compile(r"(?<=[A-Za-z0-9])(:(?:\\{0,3}/){2})([^\s/?#\"'<>\\`]{1,512})@(?=[\w\[$])")
_NAMED = re.compile(
    r"(?<![A-Za-z0-9_])(?P<name>[A-Za-z_][A-Za-z0-9_.-]{0,63}+)"
    rf"(?P<quoted>{_ESC}[\"'])?\]?"
    r"(?:(?P<sep>[ \t]{0,8}(?:=>|={1,3}|!={1,2}|:=|:(?!:|//|\\/)(?:\*\*)?)[ \t]{0,8}"
    r"(?:\[\s{0,64}|[|>][-+0-9]{0,2}[ \t]{0,8}(?:\n|\\{1,15}n)[ \t]{1,64}(?!-))?)"
    rf"|(?P<pair>,\s{{0,64}}{_ESC}[\"']value{_ESC}[\"'][ \t]{{0,8}}:[ \t]{{0,8}}"
    r"|(?:\s|\\{1,15}[nrt]){1,64}value(?::[ \t]{1,8}|=))"
    r"|(?P<comma>,\s{0,64})|(?P<tag>>))"
)
_OPENING = re.compile(
    rf"(?:[fFrRbBuU]{{1,2}}(?=\\{{0,15}}[\"']))?(?P<escape>{_ESC})(?P<mark>[\"'`])"
)
_FLAG = re.compile(
    r"(?<![\w-])(?P<head>--(?P<name>[A-Za-z][A-Za-z0-9-]{0,40}+)\s{1,4}(?:\\{0,15}[\"'])?)"
    r"(?P<value>[^\s\"'\\=-][^\s\"'\\]{0,1023}+)"
)
_BASIC_USER = re.compile(
    r"(?<=\s)(?P<head>(?:-u(?:[ =]\s{0,4})?|--user[ =]\s{0,4})(?:\\{0,15}[\"'])?"
    r"[^\s:\"'\\/]{1,128}:)"
    r"(?P<value>[^\s\"'\\]{1,256})"
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
        for step in (_key_blocks, _userinfo, _named, _flags, _formats, _prose):
            text, count = step(text)
            found += count
        if not found:
            break
        total += found
    return text, total


def _key_blocks(text: str) -> tuple[str, int]:
    """Replace what is inside private-key blocks, cut-off ones included; the BEGIN line stays."""
    if "PRIVATE KEY" not in text and "Private-Lines" not in text:
        return text, 0
    out: list[str] = []
    position = 0
    begins = list(_KEY_BEGIN.finditer(text))
    end = _KEY_END.search(text)
    for index, begin in enumerate(begins):
        following = begins[index + 1].start() if index + 1 < len(begins) else len(text)
        while end is not None and end.start() < begin.end():
            end = _KEY_END.search(text, end.end())
        if end is not None and end.start() < following:
            stop = end.start()
        else:
            lines = _KEY_LINES.match(text, begin.end())
            stop = lines.end() if lines else begin.end()
        if text[begin.end() : stop].strip() in ("", REDACTED):
            continue
        out += [text[position : begin.end()], REDACTED]
        position = stop
    return "".join([*out, text[position:]]), len(out) // 2


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
    if not may_have_format(text):
        return text, 0
    text, count = FORMATS.subn(REDACTED, text)
    if not holds_any(text, INFIXES):
        return text, count
    text, more = INFIXED.subn(REDACTED, text)
    return text, count + more


def _prose(text: str) -> tuple[str, int]:
    """Replace what a sentence gives away: ``the password is x1``."""
    lowered = text.lower()
    total = 0
    for words, pattern in PROSE:
        if holds_any(lowered, words):
            text, count = pattern.subn(lambda match: match["head"] + REDACTED, text)
            total += count
    return text, total


def _flags(text: str) -> tuple[str, int]:
    """Replace ``--password x``, ``curl -u user:x`` and ``sshpass -p x``."""
    count = 0

    def flag(match: re.Match[str]) -> str:
        nonlocal count
        if not strength(match["name"]) or is_harmless(match["value"]):
            return match[0]
        count += 1
        return match["head"] + REDACTED

    def user(match: re.Match[str]) -> str:
        nonlocal count
        if match["value"].isdigit() or is_harmless(match["value"]):
            return match[0]
        count += 1
        return match["head"] + REDACTED

    def command(match: re.Match[str]) -> str:
        nonlocal count
        if is_harmless(match["value"]):
            return match[0]
        count += 1
        return match["head"] + REDACTED

    if "--" in text or "-u" in text:
        text = _BASIC_USER.sub(user, _FLAG.sub(flag, text))
    if any(name in text for name in COMMANDS):
        text = COMMAND.sub(command, text)
    return text, count


def _named(text: str) -> tuple[str, int]:
    """Replace values that follow a telling name; each character is looked at once."""
    if not may_name(text):
        return text, 0
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
