"""What the demo prints: the session, the two sizes, every call, why, and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agentscope_compaction.cli.notes import STAND_IN
from agentscope_compaction.cli.streams import command_line, inert
from agentscope_compaction.cli.table import (
    decisions_table,
    describe_calls,
    number,
    percent_saved,
)
from agentscope_compaction.cli.words import because, in_words
from agentscope_compaction.core.stubs import MARKER
from agentscope_compaction.core.types import (
    Action,
    CallDecision,
    CompactionProposal,
    DecisionReason,
    JSONObject,
)
from agentscope_compaction.core.words import REASONS

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["tell"]

_EXAMPLES = 4
_BAR = 40
Explanations = dict[str, dict[str, Any]]


def tell(
    console: Console,
    request: dict[str, Any],
    proposal: CompactionProposal,
    explanations: Explanations,
) -> None:
    """Print the demo, in the order in which somebody new to it asks."""
    described = describe_calls(request, proposal.decisions)
    _the_session(console, request, proposal)
    _heading(console, "What the proposal does with each call")
    console.print(decisions_table(proposal.decisions, described))
    _the_sizes(console, proposal)
    _heading(console, "Kept, and why")
    _examples(console, _kept(proposal), described, explanations)
    _heading(console, "Let go, and why")
    _examples(console, _let_go(proposal), described, explanations)
    _heading(console, "The way back")
    _the_way_back(console, request, proposal, described)
    _heading(console, "Who decided")
    _who_decided(console, proposal, local=bool(explanations))


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, "bold cyan"))


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(Padding(Text(text, style), (0, 0, 0, 2)))


def _the_session(console: Console, request: dict[str, Any], proposal: CompactionProposal) -> None:
    _heading(console, "The session")
    for message in request["messages"]:
        calls = sum(block["type"] == "tool_call" for block in message["content"])
        texts = [block["text"] for block in message["content"] if block["type"] == "text"]
        if message["role"] == "user":
            _say(console, f"{message['name']}: {_first_sentences(texts[0])}")
        else:
            _say(console, f"  {message['name']}: {calls} tool calls", "dim")
    _say(console, f"Next: {request['goal']}", "bold")


def _first_sentences(text: str) -> str:
    return inert(text if len(text) <= 150 else text[: text.rfind(" ", 0, 150)] + " ...")


def _the_sizes(console: Console, proposal: CompactionProposal) -> None:
    stats = proposal.stats
    grid = Table.grid(padding=(0, 2, 0, 0))
    for name, style in (("before", ""), ("after", "green")):
        chars, tokens = stats[f"chars_{name}"], stats[f"tokens_{name}"]
        bar = "#" * max(1, round(_BAR * chars / max(1, stats["chars_before"])))
        sizes = f"{number(chars)} characters, {number(tokens)} tokens"
        grid.add_row(Text(name.capitalize()), Text(bar, style), Text(sizes))
    console.print(grid)
    saved = percent_saved(stats["chars_before"], stats["chars_after"])
    acted = [d for d in proposal.decisions if d.applied]
    cut = sum(d.action is Action.DROP_RESULT for d in acted)
    removed = sum(d.action is Action.DROP_CALL for d in acted)
    _say(console, f"{saved}: {cut} outputs cut to a stub, {removed} calls removed.", "green")


def _kept(proposal: CompactionProposal) -> list[CallDecision]:
    """Needed outputs, surest first, and one call for each of the rules that protect."""
    needed = [d for d in proposal.decisions if d.reason is DecisionReason.RESULT_NEEDED]
    by_rule = {d.reason: d for d in proposal.decisions if d.action is Action.KEEP}
    by_rule.pop(DecisionReason.RESULT_NEEDED, None)
    surest = sorted(needed, key=lambda d: d.keep_result or 0.0, reverse=True)[:_EXAMPLES]
    return [*surest, *by_rule.values()]


def _let_go(proposal: CompactionProposal) -> list[CallDecision]:
    """The largest savings of each kind."""
    acted = [d for d in proposal.decisions if d.action is not Action.KEEP and d.applied]
    acted.sort(key=lambda d: d.chars_after - d.chars_before)
    groups = [
        [d for d in acted if d.reason is DecisionReason.DUPLICATE][:2],
        [d for d in acted if d.action is Action.DROP_RESULT and d.keep_call is not None],
        [d for d in acted if d.action is Action.DROP_CALL],
    ]
    return [decision for group in groups for decision in group[:_EXAMPLES]]


def _examples(
    console: Console,
    decisions: list[CallDecision],
    described: dict[str, str],
    explanations: Explanations,
) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0), expand=True)
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=2)
    grid.add_column(ratio=3)
    for decision in decisions:
        why = _why(decision, explanations.get(f"result_{decision.id}", {}))
        grid.add_row(Text(decision.id, "dim"), Text(described[decision.id]), Text(why))
    console.print(Padding(grid, (0, 0, 0, 2)))


def _why(decision: CallDecision, said: dict[str, Any]) -> str:
    if decision.action is Action.KEEP:
        return because(said) or REASONS[decision.reason]
    return in_words(list(said.get("facts", ()))[:2]) or REASONS[decision.reason]


def _the_way_back(
    console: Console,
    request: dict[str, Any],
    proposal: CompactionProposal,
    described: dict[str, str],
) -> None:
    acted = [d for d in proposal.decisions if d.action is not Action.KEEP and d.applied]
    lost = sum(d.chars_before for d in acted)
    _say(
        console,
        f"Nothing is lost: the old history is untouched beside the new one. {len(acted)} outputs "
        f"({number(lost)} characters) can be recalled from it by the id of their call.",
    )
    cut = [d for d in acted if d.action is Action.DROP_RESULT]
    if not cut:
        return
    largest = max(cut, key=lambda d: (d.keep_result is not None, d.chars_before))
    stub, original = (
        _output(messages, largest.call_id) for messages in (proposal.messages, request["messages"])
    )
    note = stub[stub.index(MARKER) :].splitlines()[0] if MARKER in stub else ""
    _say(console, f"{described[largest.id]} ({largest.id}) now says, after its first lines:")
    _say(console, f"  {inert(note)}", "yellow")
    _say(console, f"and its original, {number(len(original))} characters, still ends as it did:")
    _say(console, f"  {inert(original.rstrip().splitlines()[-1].strip())}", "green")


def _output(messages: list[JSONObject], call_id: str) -> str:
    blocks = (block for message in messages for block in message["content"])
    output = next(b["output"] for b in blocks if b["type"] == "tool_result" and b["id"] == call_id)
    return output if isinstance(output, str) else "\n".join(part["text"] for part in output)


def _who_decided(console: Console, proposal: CompactionProposal, *, local: bool) -> None:
    if not local:
        _say(console, f"Answered by {inert(str(proposal.stats['model']))}.")
        return
    _say(console, STAND_IN)
    _say(console, "The same session, judged by Jev:")
    command = command_line("demo", "--model", "jev")
    _say(console, f"  DECISION_MODEL_API_KEY=<your key> {command}", "bold")
