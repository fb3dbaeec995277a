"""Facts: what a stub keeps of an output it omits, word for word.

When an output is cut, the strings nobody can reconstruct go with it: paths, URLs, ids, hashes,
long numbers, the line that says what failed, the row that defines a name. ``select_facts`` picks
those most worth their characters. It is a pure function, and writes no word of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from agentscope_compaction.core.scan import CHUNK, Kind, classify, clip, trim

__all__ = ["select_facts"]

_READ_LIMIT = 200_000
"""Characters of a text that are looked at: its head and a fifth as much from its end."""
_LINE_CHARS = 200
"""A longer line is data, not a statement: it is read in the pieces its quotes mark off."""
_ALIKE = 2
"""Lines of one shape (numbers apart) that are taken; a log repeats itself."""
_SHARE = 0.7
"""Share of the budget that one kind may fill while others wait."""
_SEPARATOR = "\n"

_WORTH: dict[str, float] = {
    "row": 5.0,
    "error": 5.0,
    Kind.ID: 5.0,
    Kind.URL: 3.0,
    Kind.HASH: 3.0,
    Kind.PATH: 2.0,
    Kind.NUMBER: 2.0,
    "heading": 2.0,
    "command": 2.0,
    "signature": 1.2,
    Kind.NAME: 0.8,
    "key": 0.4,
}
"""Uses per hundred facts of a kind in the rest of real histories, rounded; where a kind was too
rare to tell (URLs, hashes, numbers), a guess between ids and paths."""

_ERROR = re.compile(
    r"(?i)\b(?:error|exception|failed|failure|fatal|denied|panic|cannot|could not|not found|"
    r"undefined|unable|invalid|refused|timed? ?out|missing|traceback)\b"
)
_HEADING = re.compile(r"#{1,6} \S|\*\*[^*]{2,80}\*\*:?\Z|[=-]{3,} \S")
_SIGNATURE = re.compile(
    r"(?:(?:export|public|private|protected|static|async|abstract|pub|default) ){0,4}"
    r"(?:def|class|function|interface|type|enum|struct|fn|func|impl|trait|const|module)\s+[A-Za-z_]"
)
_COMMAND = re.compile(r"(?:[$>] )?(?:[A-Z_]{2,40}=\S{1,80} )*[a-z][\w./-]{1,60} (?:\S+ )*?--?[a-z]")
_ROW = re.compile(r"\|.*\|\s*\Z|(?:[-*+] )?`[^`]{2,80}`\s*[:|=–—-]")
_RULE = re.compile(r"[\s|:=+_*#-]*\Z")
_KEY = re.compile(r'"([A-Za-z_][\w.-]{2,60})"\s*:')
_PIECE = re.compile(r'[^\n"{}\[\]\\]{8,}')
_CLAUSE = re.compile(r"[^:;.]{8,200}")
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class _Candidate:
    text: str
    place: int
    kind: str
    density: float
    is_line: bool


def select_facts(text: str, budget_chars: int, *, known: str | frozenset[str] = "") -> str:
    """The facts of ``text`` that are most worth keeping, one per line, in order of appearance.

    Args:
        text: The omitted part of an output.
        budget_chars: Upper bound on the length of what is returned, separators included.
        known: Text that stays visible elsewhere, or its strings; what it names is not repeated.

    Returns:
        Verbatim substrings of ``text``, each once, joined by newlines; '' where nothing fits.
        The same arguments always give the same string. Time is linear in the part that is read,
        at most the first 160,000 and last 40,000 characters.
    """
    if budget_chars < 4 or len(text) < 4:
        return ""
    text = clip(text, _READ_LIMIT)
    seen = _strings(known) if isinstance(known, str) else known
    ranked = sorted(
        (c for c in _candidates(text) if c.text not in seen),
        key=lambda c: (-c.density, c.place, c.text),
    )
    first = _fill(_shared_out(ranked, budget_chars), budget_chars)
    # A line that was taken makes its own identifiers redundant: their space goes to others.
    told = {trim(chunk) for c in first if c.is_line for chunk in CHUNK.findall(c.text)}
    lines = [c for c in first if c.is_line]
    rest = [c for c in ranked if not c.is_line and c.text not in told]
    more = [c for c in ranked if c.is_line and c not in set(lines)]
    order = [*lines, *_shared_out(rest, budget_chars), *more]
    chosen = _fill(order, budget_chars)
    return _SEPARATOR.join(c.text for c in sorted(chosen, key=lambda c: (c.place, c.text)))


def _shared_out(ranked: list[_Candidate], budget: int) -> list[_Candidate]:
    """Let no kind have more than its share before every other kind had its turn.

    What will be asked for is uncertain; five hundred ids must not crowd out the one error.
    """
    used: Counter[str] = Counter()
    first: list[_Candidate] = []
    later: list[_Candidate] = []
    for candidate in ranked:
        used[candidate.kind] += len(candidate.text) + len(_SEPARATOR)
        within = used[candidate.kind] <= budget * _SHARE
        (first if within else later).append(candidate)
    return first + later


def _fill(ranked: list[_Candidate], budget: int) -> list[_Candidate]:
    """Take candidates in order while they fit."""
    left = budget + len(_SEPARATOR)
    taken: list[_Candidate] = []
    for candidate in ranked:
        cost = len(candidate.text) + len(_SEPARATOR)
        if cost <= left:
            left -= cost
            taken.append(candidate)
            if left < 5:
                break
    return taken


def _strings(text: str) -> frozenset[str]:
    text = clip(text, _READ_LIMIT)
    lines = {line.strip() for line in text.split("\n")}
    return frozenset(lines | {trim(chunk) for chunk in CHUNK.findall(text)})


def _candidates(text: str) -> Iterator[_Candidate]:
    """Every fact of a text, each string once."""
    found: set[str] = set()
    for line, place, kind in _lines(text):
        if line not in found:
            found.add(line)
            yield _candidate(line, place, kind, is_line=True)
    counts: Counter[str] = Counter()
    places: dict[str, int] = {}
    for match in CHUNK.finditer(text):
        name = trim(match.group())
        counts[name] += 1
        places.setdefault(name, match.start())
    keys = {match.group(1) for match in _KEY.finditer(text)}
    for name, place in places.items():
        kind = classify(name)
        label = "key" if kind is Kind.WORD and name in keys else str(kind)
        if label in _WORTH and name not in found:
            # What a text repeats all over is its subject; what it says once or twice is news.
            yield _candidate(name, place, label, common=counts[name] > 2)


def _candidate(
    text: str, place: int, kind: str, *, is_line: bool = False, common: bool = False
) -> _Candidate:
    worth = _WORTH[kind] * (0.7 if common else 1.0)
    return _Candidate(text, place, kind, worth / (len(text) + len(_SEPARATOR)), is_line)


def _lines(text: str) -> Iterator[tuple[str, int, str]]:
    """Lines that say something by themselves, with their place and kind."""
    alike: Counter[str] = Counter()
    place = 0
    for raw in text.split("\n"):
        for piece, start in _pieces(raw):
            kind = _kind_of_line(piece)
            if kind:
                shape = _DIGITS.sub("0", piece)
                alike[shape] += 1
                if alike[shape] <= _ALIKE:
                    yield piece, place + start, kind
        place += len(raw) + 1


def _pieces(raw: str) -> Iterator[tuple[str, int]]:
    if len(raw) <= _LINE_CHARS:
        line = raw.strip()
        yield line, len(raw) - len(raw.lstrip())
        return
    for match in _PIECE.finditer(raw):
        piece, start = match.group(), match.start()
        if len(piece) <= _LINE_CHARS:
            yield piece.strip(" ,:"), start
            continue
        for clause in _CLAUSE.finditer(piece):
            yield clause.group().strip(" ,:"), start + clause.start()


def _kind_of_line(line: str) -> str | None:
    if not 8 <= len(line) <= _LINE_CHARS or _RULE.match(line):
        return None
    if _ROW.match(line):
        return "row"
    if _HEADING.match(line):
        return "heading"
    if _SIGNATURE.match(line):
        return "signature"
    if _ERROR.search(line):
        return "error"
    return "command" if _COMMAND.match(line) else None
