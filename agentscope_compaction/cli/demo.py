"""``demo``: a long session that ships with the package, before and after, and why."""

from __future__ import annotations

import json
import shlex
import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentscope_compaction.cli.asking import Explained, ask_for_proposal, choose_model
from agentscope_compaction.cli.destination import check_destination, write_json
from agentscope_compaction.cli.streams import command_line, console_for, inert
from agentscope_compaction.models.embedded import EmbeddedDecisionModel
from agentscope_compaction.models.env import Backend

if TYPE_CHECKING:
    from agentscope_compaction.models.seam import DecisionModel

__all__ = ["demo_app", "demo_request"]

demo_app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

_Model = Annotated[
    Backend, typer.Option(help="The decision model; all but embedded use the network.")
]
_Save = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Only write the demo's request, to try on.")
]


def demo_request() -> dict[str, Any]:
    """Return the request of the demo: an invented session of some sixty calls, and its goal."""
    text = files("agentscope_compaction").joinpath("data/demo_history.json").read_text("utf-8")
    request: dict[str, Any] = json.loads(text)
    return request


@demo_app.command()
def demo(model: _Model = Backend.EMBEDDED, save: _Save = None) -> None:
    """Show it at work on a shipped session, offline and without a key."""
    request = demo_request()
    if save is not None:
        write_json(check_destination(save, "", force=None, option="--save"), request)
        again = command_line("propose", shlex.quote(inert(str(save))))
        print(f"Wrote {inert(str(save))}; try: {again}")
        return
    chosen = choose_model(model)
    explained = Explained(chosen) if isinstance(chosen, EmbeddedDecisionModel) else None
    asked: DecisionModel = explained or chosen
    proposal = ask_for_proposal(request, asked)

    from agentscope_compaction.cli.story import tell

    explanations = explained.explanations if explained else {}
    tell(console_for(sys.stdout), request, proposal, explanations)
