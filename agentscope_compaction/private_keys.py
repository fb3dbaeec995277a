"""Empty private-key blocks in a text, cut-off ones included; the line that begins one stays.

A tool may have shown the key with line numbers, quoted, or as a diff.
"""

from __future__ import annotations

import re

from agentscope_compaction.secret_formats import REDACTED

__all__ = ["key_blocks"]

_KEY_BEGIN = re.compile(
    r"----[- ]BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?[- ]----|Private-Lines: [0-9]{1,4}"
)
_KEY_END = re.compile(r"----[- ]END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?[- ]----|Private-MAC:")
_KEY_GAP = (
    r"(?:\\{1,15}[nrt\"']|[\s>+|#*\"',]|[0-9]{1,6}(?=\s{0,8}(?:[\t|:→]|\\{1,15}t))|[:→]"
    r"|(?:(?<=\n)|(?<=\\n))-(?!-))*+"
)
"""Between the lines of a key: breaks, line numbers, quoting and the marks of a diff."""
_KEY_LINES = re.compile(
    rf"(?:{_KEY_GAP}(?:[A-Za-z0-9/=][A-Za-z0-9+/=]{{15,}}+"
    r"|(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset):[^\n\\]{0,200}+))*+"
    rf"(?:{_KEY_GAP}(?:[A-Za-z0-9+/]{{1,14}}+={{1,2}}"
    rf"|[A-Za-z0-9+/=]{{1,15}}+(?={_KEY_GAP}\W{{0,8}}\Z)))?+"
)


def key_blocks(text: str) -> tuple[str, int]:
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
