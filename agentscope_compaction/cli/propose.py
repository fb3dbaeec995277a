"""``propose FILE``: one history in, one proposal out, as a table, as JSON or as a new history."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentscope_compaction.cli.asking import ask_for_proposal, choose_model
from agentscope_compaction.cli.destination import (
    check_destination,
    refuse_shared,
    write_bytes,
    write_json,
)
from agentscope_compaction.cli.source import build_request, parse_options, read_document
from agentscope_compaction.cli.streams import console_for, inert
from agentscope_compaction.core.types import CompactionRequest
from agentscope_compaction.models.env import Backend

if TYPE_CHECKING:
    from agentscope_compaction.core.types import CompactionProposal
    from agentscope_compaction.models.seam import DecisionModel

__all__ = ["propose_app"]

propose_app = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
)

_File = Annotated[
    str,
    typer.Argument(
        metavar="FILE", help="JSON: a list of messages or a request object; - for standard input."
    ),
]
_Goal = Annotated[
    str | None, typer.Option(help="What the agent does next; replaces the request's.")
]
_Tool = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="A tool whose calls may be compacted; repeatable."),
]
_Option = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="An option of the proposal; repeatable."),
]
_Model = Annotated[
    Backend | None, typer.Option(help="The decision model; default: what the environment says.")
]
_ForAgents = Annotated[
    bool, typer.Option("--for-agents", help="Start from the options of live agents.")
]
_Json = Annotated[bool, typer.Option("--json", help="Print the proposal as JSON, nothing else.")]
_Apply = Annotated[
    Path | None, typer.Option(metavar="OUT", help="Write the new history to this file.")
]
_Html = Annotated[
    Path | None, typer.Option(metavar="REPORT", help="Write a page to judge the proposal from.")
]
_Force = Annotated[
    bool, typer.Option("--force", help="Let --apply and --html replace an existing file.")
]


@propose_app.command()
def propose(
    file: _File,
    goal: _Goal = None,
    tool: _Tool = None,
    option: _Option = None,
    model: _Model = None,
    for_agents: _ForAgents = False,
    as_json: _Json = False,
    apply: _Apply = None,
    html: _Html = None,
    force: _Force = False,
) -> None:
    """Propose which old tool calls of a history may go. FILE is only read."""
    options = parse_options(option or [])
    target = None if apply is None else check_destination(apply, file, force=force)
    report = None
    if html is not None:
        report = check_destination(html, file, force=force, option="--html")
        refuse_shared(report, apply, option="--html", others="--apply")
    request = build_request(
        read_document(file), goal=goal, tools=tool or [], options=options, for_agents=for_agents
    )
    decision_model = choose_model(model)
    proposal = ask_for_proposal(request, decision_model)
    if target is not None:
        write_json(target, proposal.messages)
    if report is not None:
        page = proposal.to_html(CompactionRequest.model_validate(request))
        write_bytes(report, page.encode("utf-8", "replace"))
    if as_json:
        # Escaped, so that lone surrogates survive and any terminal can show it.
        sys.stdout.write(json.dumps(proposal.model_dump(mode="json")) + "\n")
        return
    _print(proposal, request, decision_model)
    if target is not None:
        print(f"Wrote the new history to {inert(str(apply))}")
    if report is not None:
        print(f"Wrote the report to {inert(str(html))}")


def _print(proposal: CompactionProposal, request: dict[str, Any], model: DecisionModel) -> None:
    from rich.text import Text

    from agentscope_compaction.cli.notes import candidate_notes, model_notes
    from agentscope_compaction.cli.table import print_proposal

    console = console_for(sys.stdout)
    print_proposal(console, proposal, request)
    notes = [*candidate_notes(proposal)]
    if proposal.stats["questions"]:
        notes += model_notes(proposal, model, request["options"])
    for note in notes:
        console.print()
        console.print(Text(note))
