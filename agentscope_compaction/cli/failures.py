"""What went wrong, in one line, and the exit code it means."""

from __future__ import annotations

import os
import traceback
from dataclasses import dataclass

import typer

from agentscope_compaction.environment import Variable
from agentscope_compaction.errors import (
    CompactionError,
    DecisionHTTPError,
    DecisionTimeoutError,
    ObservationBudgetError,
)

__all__ = ["CommandError", "Failure", "describe_failure"]

TRACEBACK_VARIABLE = Variable.AGENTSCOPE_COMPACTION_TRACEBACK.value

_CLICK_ERROR: type = typer.BadParameter.__mro__[2]
"""``ClickException``: Typer carries its own copy of Click since 0.26 and uses Click's before."""


class CommandError(Exception):
    """The command failed; the text is the line the user sees."""


@dataclass(frozen=True, slots=True)
class Failure:
    """How a run that failed ends."""

    code: int
    text: str
    help_text: bool = False
    """Whether the text is the help of a command, which may have many lines."""


def describe_failure(error: Exception) -> Failure:
    """Return the exit code and the line for an exception that ended a command."""
    if isinstance(error, _CLICK_ERROR):
        return _usage(error)
    if os.environ.get(TRACEBACK_VARIABLE):
        return Failure(1, "".join(traceback.format_exception(error)), help_text=True)
    if isinstance(error, ObservationBudgetError):
        return Failure(1, f"{error}; raise --option max_state_tokens=N and max_request_tokens=N")
    if isinstance(error, CommandError | CompactionError):
        return Failure(1, (str(error) or type(error).__name__) + _way_out(error))
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return Failure(1, f"{where}{error.strerror or error}")
    if isinstance(error, ImportError):
        return Failure(1, str(error))
    if isinstance(error, MemoryError):
        return Failure(1, "out of memory")
    if isinstance(error, RecursionError):
        return Failure(1, "the input is nested too deeply")
    first = str(error).partition("\n")[0]
    return Failure(
        1, f"unexpected {type(error).__name__}: {first} ({TRACEBACK_VARIABLE}=1 shows where)"
    )


def _way_out(error: Exception) -> str:
    """What to do about a decision model that does not answer, where that is known."""
    if isinstance(error, DecisionTimeoutError):
        return "; try again, or raise total_timeout_seconds"
    if not isinstance(error, DecisionHTTPError):
        return ""
    match error.status:
        case None:
            return "; check the network and DECISION_MODEL_BASE_URL"
        case 401 | 403:
            return "; check DECISION_MODEL_API_KEY"
        case 429:
            return "; wait, or lower max_concurrency"
        case _:
            return ""


def _usage(error: Exception) -> Failure:
    text = str(getattr(error, "format_message", error.__str__)())
    code = int(getattr(error, "exit_code", 2))
    if type(error).__name__ == "NoArgsIsHelpError":
        return Failure(code, text, help_text=True)
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", None)
    return Failure(code, f"{text} (see '{path} --help')" if path else text)
