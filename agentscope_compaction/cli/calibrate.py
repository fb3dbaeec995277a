"""``calibrate HISTORY…``: thresholds for a decision model from a user's own histories."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentscope_compaction.cli.asking import choose_model
from agentscope_compaction.cli.destination import check_destination, refuse_shared
from agentscope_compaction.cli.failures import CommandError
from agentscope_compaction.cli.source import read_document
from agentscope_compaction.cli.streams import console_for, inert
from agentscope_compaction.models.env import Backend

if TYPE_CHECKING:
    from agentscope_compaction.calibration.cache import AnswerCache
    from agentscope_compaction.calibration.judged import JudgedCut
    from agentscope_compaction.calibration.run import Estimate, Task
    from agentscope_compaction.models.seam import DecisionModel

__all__ = ["calibrate", "calibrate_app"]

calibrate_app = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
)

PRICES = {Backend.JEV: 0.042, Backend.AGENTSCOPE: 0.042}
"""Dollars per million input tokens, as published by the decision service; ``--price`` wins."""

_Histories = Annotated[
    list[str],
    typer.Argument(
        metavar="HISTORY...",
        help="JSON files (or folders of them): lists of messages, request objects, agent states.",
    ),
]
_Model = Annotated[
    Backend | None, typer.Option(help="The decision model; default: what the environment says.")
]
_Loss = Annotated[
    float, typer.Option(min=0.0, max=1.0, help="Largest acceptable share of later-used strings.")
]
_Cuts = Annotated[str, typer.Option(metavar="PERCENT,...", help="Where each history is cut.")]
_Tool = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="A tool whose calls may be compacted; default: every tool."),
]
_Out = Annotated[Path | None, typer.Option(metavar="PROFILE", help="Write the profile here.")]
_Resume = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Keep answers here, and take up from them.")
]
_Price = Annotated[
    float | None, typer.Option(min=0.0, help="Dollars per million input tokens of the model.")
]
_Yes = Annotated[bool, typer.Option("--yes", help="Ask a remote model without confirmation.")]
_Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, nothing else.")]


@calibrate_app.command()
def calibrate(
    histories: _Histories,
    model: _Model = None,
    loss: _Loss = 0.05,
    cuts: _Cuts = "30,50,70",
    tool: _Tool = None,
    out: _Out = None,
    resume: _Resume = None,
    price: _Price = None,
    yes: _Yes = False,
    as_json: _Json = False,
) -> None:
    """Suggest keep thresholds for a decision model from saved histories, which are only read."""
    from agentscope_compaction.calibration.cache import AnswerCache
    from agentscope_compaction.calibration.run import tasks_for

    shares = _shares(cuts)
    names = _files(histories)
    if out is not None:
        for name in names:
            target = check_destination(out, name, force=True, option="--out")
            refuse_shared(target, resume, option="--out", others="--resume")
    tasks: list[Task] = []
    for name in names:
        tasks += tasks_for(name, _messages(name), shares, tool)
    if not tasks:
        raise CommandError("no history can be cut: each needs several tool calls")
    decision_model = choose_model(model)
    cache = AnswerCache(resume)
    _agree(tasks, decision_model, cache, price if price is not None else _price(model), yes)
    judged = _judged(tasks, decision_model, cache)
    _report(judged, loss, out, as_json=as_json)


def _report(judged: Sequence[JudgedCut], loss: float, out: Path | None, *, as_json: bool) -> None:
    from agentscope_compaction.agents.profile import Profile, save_profile
    from agentscope_compaction.calibration.curve import curve, suggest, warnings_about

    if not any(cut.calls for cut in judged):
        raise CommandError("no call was judged: the histories are too short, or --tool names none")
    if not any(need.only_outputs for cut in judged for need in cut.needs):
        raise CommandError("the histories later used no string that only outputs held")
    suggestion = suggest(judged, loss)
    warnings = warnings_about(judged, suggestion, loss)
    profile = Profile(
        model=", ".join(sorted({cut.model for cut in judged if cut.model})),
        thresholds=suggestion.thresholds,
        loss=suggestion.loss,
        interval=suggestion.interval,
        histories=len({cut.history for cut in judged}),
        created=datetime.now(UTC).date().isoformat(),
    )
    if out is not None:
        save_profile(profile, out)
    points = curve(judged)
    if as_json:
        figures = {
            "profile": profile.as_json(),
            "saved": suggestion.saved,
            "held_out_loss": suggestion.held_out,
            "curve": [
                {
                    "keep_result_threshold": point.threshold,
                    "saved": point.saved,
                    "loss": point.loss,
                    "interval": list(point.interval),
                }
                for point in points
            ],
            "cuts": len(judged),
            "calls": sum(len(cut.calls) for cut in judged),
            "strings": sum(need.only_outputs for cut in judged for need in cut.needs),
            "warnings": warnings,
        }
        sys.stdout.write(json.dumps(figures) + "\n")
        return
    from agentscope_compaction.calibration.show import show

    show(console_for(sys.stdout), judged, points, suggestion, loss)
    for warning in warnings:
        print(f"Warning: {warning}")
    if out is not None:
        print(f"Wrote {inert(str(out))}; use it as Compactor(profile={inert(str(out))!r})")


def _shares(text: str) -> list[float]:
    try:
        percents = [float(part) for part in text.split(",")]
    except ValueError:
        percents = []
    if not percents or not all(math.isfinite(p) and 0 < p < 100 for p in percents):
        raise typer.BadParameter("must be percentages between 0 and 100", param_hint="'--cuts'")
    return [percent / 100 for percent in percents]


def _files(names: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    for name in names:
        path = Path(name)
        inside = sorted(map(str, path.glob("*.json"))) if path.is_dir() else [name]
        found.update(dict.fromkeys(inside))
    if not found:
        raise CommandError("the folders hold no .json file")
    return list(found)


def _messages(name: str) -> list[dict[str, Any]]:
    from agentscope_compaction.compact import own_copy
    from agentscope_compaction.errors import InvalidSnapshotError

    document = read_document(name)
    if isinstance(document, dict):
        document = document.get("messages", document.get("context"))
    if not isinstance(document, list):
        raise CommandError(f"{name}: expected a list of messages, a request or an agent's state")
    try:
        return own_copy({"messages": document, "goal": "any"}).messages
    except InvalidSnapshotError as error:
        raise CommandError(f"{name}: {error}") from None


def _price(backend: Backend | None) -> float | None:
    return PRICES.get(backend) if backend is not None else None


def _agree(
    tasks: Sequence[Task],
    model: DecisionModel,
    cache: AnswerCache,
    price: float | None,
    yes: bool,
) -> None:
    """Say what a remote model will be asked, and let the user stop."""
    from agentscope_compaction.calibration.run import estimate
    from agentscope_compaction.models.ask import is_local

    if is_local(model):
        return
    figures = estimate(tasks, cache, repr(model))
    if not figures.questions:
        return
    typer.echo(_costs(figures, price), err=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter("needed where nobody can confirm", param_hint="'--yes'")
    if not typer.confirm("Ask?", err=True):
        raise CommandError("nothing was asked")


def _costs(figures: Estimate, price: float | None) -> str:
    asked = (
        f"About to ask {figures.questions} questions about {figures.cuts} cuts in "
        f"{figures.requests} requests, about {figures.input_tokens:,} input tokens"
    )
    if price is None:
        return f"{asked}; --price says what they cost"
    cost = figures.input_tokens * price / 1_000_000
    return f"{asked}, about ${cost:.2f} at ${price:g} per million"


def _judged(tasks: Sequence[Task], model: DecisionModel, cache: AnswerCache) -> list[JudgedCut]:
    from agentscope_compaction.calibration.run import judge

    async def run() -> list[JudgedCut]:
        try:
            with _progress(len(tasks)) as advance:
                return await judge(
                    tasks, model, model_name=repr(model), cache=cache, progress=advance
                )
        finally:
            close = getattr(model, "aclose", None)
            if close is not None:
                await close()

    return asyncio.run(run())


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on standard error, where somebody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import Progress

    with Progress(console=console_for(sys.stderr), transient=True) as bar:
        row = bar.add_task("Judging", total=total)
        yield lambda done, _: bar.update(row, completed=done)
