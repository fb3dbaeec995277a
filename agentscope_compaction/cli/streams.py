"""Standard streams: strings of a history made inert, colour only where it is wanted."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["abandon_stdout", "command_line", "console_for", "inert", "say_error", "tame_streams"]

_PROGRAM = "agentscope-compaction"
_UNKNOWN_WIDTH = 100
"""Columns where no terminal says how many it has and COLUMNS is not set."""


def inert(text: str, limit: int = 2_000) -> str:
    """Return the text as one printable line: control, format and lone surrogates escaped.

    Names and ids come from a history, that is from anybody: an escape sequence must not reach
    the terminal, nor may a direction override turn a line around.
    """
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else _escaped(c) for c in shown)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def command_line(*words: str) -> str:
    """Return a line that runs this command again from here, however it was started."""
    started = Path(sys.argv[0])
    if started.name != _PROGRAM:
        program = "python -m agentscope_compaction"
    elif shutil.which(_PROGRAM) == str(started):
        program = _PROGRAM
    else:
        program = shlex.quote(inert(os.path.relpath(started)))
    return " ".join((program, *words))


def tame_streams() -> None:
    """Let no character that a stream's encoding lacks end the run, and no stream that is closed.

    Python has None for a stream that the process was started without (``>&-``, a service).
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def say_error(text: str, *, help_text: bool = False) -> None:
    """Print one line on standard error; a help text as it is."""
    line = text.rstrip("\n") if help_text else f"{_PROGRAM}: {inert(text)}"
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:  # nobody listens
        pass


def console_for(stream: TextIO) -> Console:
    """Return a console that never interprets what it is given as markup.

    Colour needs a terminal and no ``NO_COLOR``; the width is the terminal's, or ``COLUMNS``.
    """
    from rich.console import Console

    return Console(
        file=stream,
        width=_width(stream),
        markup=False,
        emoji=False,
        highlight=False,
    )


def _width(stream: TextIO) -> int:
    """Columns to print in; a width of 0, which some set and some terminals report, is none."""
    given = os.environ.get("COLUMNS", "").strip()
    if given.isascii() and given.isdigit() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _UNKNOWN_WIDTH
    except (OSError, ValueError):
        return _UNKNOWN_WIDTH


def abandon_stdout(*, only_if_broken: bool = False) -> None:
    """Point standard output at nothing, so that the interpreter's last flush cannot fail."""
    if only_if_broken:
        try:
            sys.stdout.flush()
        except OSError:
            pass
        else:
            return
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, descriptor)
    os.close(nothing)
