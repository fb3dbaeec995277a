"""The report's figures: what is saved, what it costs, who answered, and what never left."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentscope_compaction.core.types import CompactionProposal
from agentscope_compaction.report.calls import Call, Fate
from agentscope_compaction.report.escape import text

__all__ = ["figures", "privacy"]


def figures(proposal: CompactionProposal, calls: Sequence[Call]) -> str:
    """Return the summary as a description list."""
    stats = proposal.stats
    fates = [call.fate for call in calls]
    cut, removed = fates.count(Fate.CUT), fates.count(Fate.REMOVE)
    items = [
        ("Characters", _saving(stats, "chars")),
        ("Tokens", _saving(stats, "tokens")),
        ("Messages", _change(stats, "messages")),
        ("Calls", f"{cut} cut, {removed} removed, {len(calls) - cut - removed} kept"),
        ("Prompt cache", _break_even(proposal)),
        ("Answered by", text(stats.get("model") or "nobody: no question was asked")),
        ("Kept at or above", _thresholds(stats.get("thresholds"))),
        ("Original", _archived(proposal)),
    ]
    return _list("figures", items)


def privacy(proposal: CompactionProposal) -> str:
    """Return what a decision model was shown, and what it never was."""
    stats = proposal.stats
    asked = stats.get("questions")
    if asked == 0:
        seen = "No model was asked, so nothing was shown to any."
    else:
        seen = (
            f"{_number(asked)} questions in {_number(stats.get('requests'))} requests, each with "
            f"a view of about {_number(stats.get('state_tokens'))} tokens "
            f"(stage <code>{text(stats.get('state_stage', 'unknown'))}</code>): goal, conversation "
            "text, and per call its tool, input, state and output size."
        )
    items = [
        ("Shown to the model", seen),
        ("Output text", _evidence(stats)),
        ("Secrets", f"{_number(stats.get('redactions'))} redacted before anything was sent"),
        ("Never shown", "Thinking, hints and binary data; this report is made offline."),
    ]
    return _list("privacy", items) + _observation(proposal)


def _list(name: str, items: Sequence[tuple[str, str]]) -> str:
    rows = "".join(f"<div><dt>{label}</dt><dd>{value}</dd></div>" for label, value in items)
    return f'<dl class="{name}">{rows}</dl>'


def _evidence(stats: Mapping[str, Any]) -> str:
    options = stats.get("options")
    count = options.get("evidence_chars") if isinstance(options, Mapping) else None
    if count == 0:
        return (
            "None left the process (<code>evidence_chars</code> is 0). A model declared "
            "<code>local</code> reads outputs inside the process and sends nothing."
        )
    if count is None:
        return "Unknown: the proposal does not say."
    return (
        f"Up to {_number(count)} characters of each candidate's output, head and tail "
        "(<code>evidence_chars</code>); the rest of it and every other output never left."
    )


def _observation(proposal: CompactionProposal) -> str:
    if not proposal.observation:
        return ""
    shown = text(json.dumps(dict(proposal.observation), ensure_ascii=False, indent=1, default=str))
    return (
        "<details><summary>Exactly what the model was shown</summary>"
        f'<pre dir="auto" tabindex="0">\n{shown}</pre></details>'
    )


def _saving(stats: Mapping[str, Any], unit: str) -> str:
    before: Any = stats.get(f"{unit}_before")
    after: Any = stats.get(f"{unit}_after")
    if not (_is_count(before) and _is_count(after)) or not before:
        return "unknown"
    share = f"{100 * (before - after) / before:.0f}"
    return f'<span class="big">−{share} %</span> {_change(stats, unit)}'


def _change(stats: Mapping[str, Any], unit: str) -> str:
    before, after = _number(stats.get(f"{unit}_before")), _number(stats.get(f"{unit}_after"))
    return before if before == after else f"{before} → {after}"


def _break_even(proposal: CompactionProposal) -> str:
    if not proposal.changed:
        return "untouched"
    if "break_even_calls" not in proposal.stats:
        return "not measured for this proposal"
    calls = proposal.stats["break_even_calls"]
    if not _is_count(calls):
        return "does not pay for the part that must be read anew"
    return f"pays for itself after {_number(calls)} further model call{'s' if calls != 1 else ''}"


def _thresholds(value: object) -> str:
    if not isinstance(value, Mapping):
        return "unknown"
    return f"call {_number(value.get('call'))}, output {_number(value.get('result'))}"


def _archived(proposal: CompactionProposal) -> str:
    if proposal.archive_ref is None:
        return "with the caller; no archive was involved"
    return f"archived as <code>{text(proposal.archive_ref)}</code>"


def _number(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "unknown"
    return f"{value:,}"


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
