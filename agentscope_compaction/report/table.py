"""The timeline: one table body per call, so that a filter hides a call with its details."""

from __future__ import annotations

from collections.abc import Sequence

from agentscope_compaction.core.words import REASONS
from agentscope_compaction.report.calls import Call, Fate
from agentscope_compaction.report.escape import attribute, shortened, text
from agentscope_compaction.report.words import FATES

__all__ = ["LONGEST_OUTPUT", "strip", "timeline"]

LONGEST_OUTPUT = 50_000
"""Characters of one output shown; a longer one loses its middle in the report."""
_LONGEST_ARGUMENTS = 5_000
_COLUMNS = 7


def strip(calls: Sequence[Call]) -> str:
    """Return the whole history at a glance: a segment per call, as wide as its output."""
    segments = "".join(
        f'<span class="seg {call.fate.value}" style="flex-grow:{max(1, _size(call))}"></span>'
        for call in calls
    )
    return f'<div class="strip" aria-hidden="true">{segments}</div>'


def timeline(calls: Sequence[Call]) -> str:
    """Return the table of all calls, in history order."""
    largest = max((_size(call) for call in calls), default=1) or 1
    heads = "".join(
        f'<th scope="col"{css}>{name}</th>'
        for name, css in (
            ("Accept", ""),
            ("Call", ""),
            ("Output, characters", ""),
            ("Fate", ""),
            ("Why", ""),
            ("Call still matters", ' class="number"'),
            ("Output must stay", ' class="number"'),
        )
    )
    tools = {name: n for n, name in enumerate(sorted({c.decision.tool_name for c in calls}))}
    bodies = "".join(_body(call, largest, tools[call.decision.tool_name]) for call in calls)
    caption = "Every recognised tool call, oldest first"
    return (
        f'<div class="scroll"><table id="calls"><caption>{caption}</caption>'
        f"<thead><tr>{heads}</tr></thead>{bodies}</table></div>"
    )


def _body(call: Call, largest: int, tool: int) -> str:
    decision = call.decision
    name = f"<b>{text(decision.id)}</b> <bdi>{text(shortened(decision.tool_name, 80))}</bdi>"
    cells = (
        f"<td>{_tick(call)}</td>"
        f'<th scope="row">{name}</th>'
        f"<td>{_bar(call, largest)}</td>"
        f'<td><span class="fate {call.fate.value}">{FATES[call.fate]}</span></td>'
        f"<td>{text(REASONS[decision.reason])} <code>{text(decision.reason.value)}</code></td>"
        f'<td class="number">{_probability(decision.keep_call)}</td>'
        f'<td class="number">{_probability(decision.keep_result)}</td>'
    )
    freed = decision.chars_before - decision.chars_after
    return (
        f'<tbody class="call" data-tool="{tool}" data-fate="{call.fate.value}" '
        f'data-freed="{freed}"><tr>{cells}</tr>{_details(call)}</tbody>'
    )


def _tick(call: Call) -> str:
    if not call.changes:
        return '<span class="visually-hidden">nothing to accept</span>'
    identity = text(call.decision.id)
    return (
        f'<input type="checkbox" class="tick" checked value="{identity}" '
        f"aria-label={attribute(f'Accept {call.decision.id}: {FATES[call.fate]}')}>"
    )


def _bar(call: Call, largest: int) -> str:
    before, after = _size(call), call.decision.chars_after
    width, rest = 100 * before / largest, 100 * min(after, before) / (before or 1)
    sizes = f"{before:,}" if before == after else f"{before:,} → {after:,}"
    return (
        f'<span class="size">{sizes}</span><span class="bar" aria-hidden="true">'
        f'<span class="was {call.fate.value}" style="width:{width:.2f}%">'
        f'<span class="stays" style="width:{rest:.2f}%"></span></span></span>'
    )


def _probability(value: float | None) -> str:
    if value is None:
        return '<span class="quiet">not asked</span>'
    return f"{value:.3f}"


def _details(call: Call) -> str:
    decision = call.decision
    parts = [f'<p>Call id: <code dir="auto">{text(shortened(decision.call_id, 200))}</code></p>']
    if call.arguments is not None:
        shown = text(shortened(call.arguments, _LONGEST_ARGUMENTS))
        parts.append(f"<h4>Input</h4>{_pre(shown)}")
    if call.changes:
        parts.append(f'<div class="sides">{_before(call)}{_after(call)}</div>')
    summary = "Input, before and after" if call.changes else "Input"
    label = attribute(f"{summary} of {decision.id}")
    open_class = ' class="cut"' if call.changes else ""
    return (
        f'<tr class="more"><td colspan="{_COLUMNS}"><details{open_class}>'
        f"<summary aria-label={label}>{summary}</summary>{''.join(parts)}</details></td></tr>"
    )


def _before(call: Call) -> str:
    if call.before is None:
        return (
            "<section><h4>Before</h4><p class='quiet'>The original output is not in this report: "
            "it was made without the request.</p></section>"
        )
    kept = _shared(call.before, call.after or "") if call.fate is Fate.CUT else 0
    whole = shortened(call.before, LONGEST_OUTPUT)
    kept = min(kept, LONGEST_OUTPUT // 2)
    shown = f"{text(whole[:kept])}<del>{text(whole[kept:])}</del>"
    return f"<section><h4>Before</h4>{_pre(shown)}</section>"


def _shared(before: str, after: str) -> int:
    """Length of the common start."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(before), len(after)))


def _after(call: Call) -> str:
    if call.fate is Fate.REMOVE:
        return "<section><h4>After</h4><p>Call and output are removed.</p></section>"
    if call.after is None:
        return "<section><h4>After</h4><p class='quiet'>Not found in the proposal.</p></section>"
    shown = text(shortened(call.after, LONGEST_OUTPUT))
    return f"<section><h4>After</h4>{_pre(shown)}</section>"


def _pre(shown: str) -> str:
    # The parser drops a newline right after the tag; this one, not the text's own.
    return f'<pre dir="auto" tabindex="0">\n{shown}</pre>'


def _size(call: Call) -> int:
    return max(0, call.decision.chars_before)
