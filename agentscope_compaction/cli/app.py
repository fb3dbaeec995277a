"""The root command: finds its subcommands when they are asked for, and ends every run in a code.

Exit codes: 0 ok, 1 failed, 2 usage, 130 interrupted. A failure is one line on standard error.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from agentscope_compaction.cli.failures import describe_failure
from agentscope_compaction.cli.streams import abandon_stdout, say_error, tame_streams

__all__ = ["PROGRAM", "main"]

PROGRAM = "agentscope-compaction"

_PACKAGE = "agentscope_compaction"
_COMMANDS = {
    "propose": (f"{_PACKAGE}.cli.propose", "propose_app"),
    "demo": (f"{_PACKAGE}.cli.demo", "demo_app"),
    "archive": (f"{_PACKAGE}.cli.archive", "archive_app"),
    "serve": (f"{_PACKAGE}.cli.serve", "serve_app"),
    "calibrate": (f"{_PACKAGE}.cli.calibrate", "calibrate_app"),
}
"""Command to (module, Typer application). A module that is not there has no command."""


class LazyCommands(TyperGroup):
    """Imports a subcommand's module when it is run or described, so that starting is quick."""

    def list_commands(self, ctx: object) -> list[str]:
        """Name the commands whose module is installed, in the order of the table."""
        return [name for name, (module, _) in _COMMANDS.items() if importlib.util.find_spec(module)]

    def get_command(self, ctx: object, cmd_name: str) -> Any:
        """Return one command; None where there is no such command."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module, attribute = _COMMANDS[cmd_name]
        command = typer.main.get_command(getattr(importlib.import_module(module), attribute))
        command.name = cmd_name
        return command


app = typer.Typer(
    cls=LazyCommands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"{PROGRAM} {version(PROGRAM)}")
        except PackageNotFoundError:
            typer.echo(f"{PROGRAM} (run from its source, not installed)")
        raise typer.Exit


_Version = Annotated[
    bool,
    typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True),
]


@app.callback()
def root(version: _Version = False) -> None:
    """Propose which old tool calls of an AgentScope history may go, for what comes next."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; never raises, save to end the process.

    Args:
        args: Arguments after the program's name; None takes those of the process.
    """
    tame_streams()
    given = None if args is None else list(args)
    try:
        command = typer.main.get_command(app)
        code = command.main(args=given, prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except typer.Abort:
        return 130
    except BrokenPipeError:
        abandon_stdout()
        return 1
    except Exception as error:
        failure = describe_failure(error)
        say_error(failure.text, help_text=failure.help_text)
        abandon_stdout(only_if_broken=True)
        return failure.code
    return code if isinstance(code, int) else 0
