"""A proposal for people: one line per call, totals, and what the machine-readable form implies."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from agentscope_compaction.cli.streams import inert
from agentscope_compaction.cli.words import ACTIONS
from agentscope_compaction.core.jsontext import object_of
from agentscope_compaction.core.types import Action, CallDecision, CompactionProposal
from agentscope_compaction.core.words import OUTCOMES, REASONS, SKIPPED

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["decisions_table", "describe_calls", "number", "percent_saved", "print_proposal"]

STYLES = {Action.KEEP: "", Action.DROP_RESULT: "yellow", Action.DROP_CALL: "red"}
_TELLING = ("command", "cmd", "pattern", "query", "url", "file_path", "path")
_INPUT_CHARS = 200


def number(value: int) -> str:
    """Format a count with thousands separated."""
    return f"{value:,}"


def percent_saved(before: int, after: int) -> str:
    """Say by how much a size shrank."""
    return f"-{100 * (before - after) / before:.0f} %" if after < before else "unchanged"


def describe_calls(request: dict[str, Any], decisions: list[CallDecision]) -> dict[str, str]:
    """Say of each decision which call it is about: its tool and the telling part of its input."""
    inputs: defaultdict[str, list[object]] = defaultdict(list)
    for message in request["messages"]:
        for block in message["content"]:
            if block.get("type") == "tool_call" and isinstance(block.get("id"), str):
                inputs[block["id"]].append(block.get("input"))
    described = {}
    for decision in decisions:
        same_id = inputs[decision.call_id]
        raw = same_id.pop(0) if same_id else ""
        described[decision.id] = f"{inert(decision.tool_name, 40)} {_telling(raw)}".rstrip()
    return described


def _telling(raw: object) -> str:
    fields = object_of(raw) or {}
    named = [fields[key] for key in _TELLING if isinstance(fields.get(key), str)]
    others = [value for value in fields.values() if isinstance(value, str)]
    given = raw if isinstance(raw, str) else ""
    return inert((named or others or [given])[0], _INPUT_CHARS)


def decisions_table(
    decisions: list[CallDecision], described: dict[str, str], *, asked: bool = True
) -> Table:
    """Lay out one line per decision; ``asked`` shows the two probabilities."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), expand=True)
    table.add_column("id", no_wrap=True)
    table.add_column("call", ratio=1, no_wrap=True, overflow="ellipsis", min_width=8)
    table.add_column("action", no_wrap=True)
    table.add_column("reason", no_wrap=True, overflow="ellipsis")
    if asked:
        table.add_column("p call", justify="right", no_wrap=True)
        table.add_column("p res.", justify="right", no_wrap=True)
    table.add_column("before", justify="right", no_wrap=True)
    table.add_column("after", justify="right", no_wrap=True)
    for decision in decisions:
        table.add_row(*_cells(decision, described[decision.id], asked))
    return table


def _cells(decision: CallDecision, described: str, asked: bool) -> Iterator[Text]:
    style = STYLES[decision.action] if decision.applied else "dim"
    yield Text(decision.id, "dim")
    yield Text(described)
    yield Text(decision.action.value, style)
    yield Text(decision.reason.value, "" if decision.applied else "dim")
    if asked:
        yield Text(_probability(decision.keep_call))
        yield Text(_probability(decision.keep_result))
    yield Text(number(decision.chars_before))
    yield Text(number(decision.chars_after), style)


def _probability(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def print_proposal(console: Console, proposal: CompactionProposal, request: dict[str, Any]) -> None:
    """Print the table, what its reasons mean, the totals and what was left out."""
    decisions = proposal.decisions
    if decisions:
        console.print(decisions_table(decisions, describe_calls(request, decisions)))
        _print_reasons(console, decisions)
    console.print(Text(OUTCOMES[proposal.reason], "bold"))
    for line in _totals(proposal):
        console.print(Text(line))


def _print_reasons(console: Console, decisions: list[CallDecision]) -> None:
    counts = Counter(decision.reason for decision in decisions)
    grid = Table.grid(padding=(0, 2, 0, 0))
    for reason, count in counts.most_common():
        grid.add_row(Text(str(count)), Text(reason.value), Text(REASONS[reason], "dim"))
    console.print(grid)
    console.print()


def _totals(proposal: CompactionProposal) -> Iterator[str]:
    stats, decisions = proposal.stats, proposal.decisions
    actions = Counter(d.action for d in decisions if d.applied)
    fates = ", ".join(f"{actions[action]} {words}" for action, words in ACTIONS.items())
    unchanged = sum(not d.applied for d in decisions)
    short = f", {unchanged} left alone (a stub would not be shorter)" if unchanged else ""
    yield f"Calls       {len(decisions)}: {fates}{short}"
    yield f"Characters  {_change(stats['chars_before'], stats['chars_after'])}"
    counted = f" ({inert(str(stats['tokenizer']), 60)})"
    yield f"Tokens      {_change(stats['tokens_before'], stats['tokens_after'])}{counted}"
    yield (
        f"Asked       {_counted(stats['questions'], 'question')} in "
        f"{_counted(stats['requests'], 'request')}, {number(stats['elapsed_ms'])} ms"
    )
    for kind, count in stats["skipped"].items():
        yield f"Skipped     {_counted(count, 'id')}, never touched: {SKIPPED.get(kind, kind)}"


def _counted(count: int, noun: str) -> str:
    return f"{number(count)} {noun}" if count == 1 else f"{number(count)} {noun}s"


def _change(before: int, after: int) -> str:
    return f"{number(before)} -> {number(after)}  ({percent_saved(before, after)})"
