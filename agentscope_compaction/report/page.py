"""One self-contained HTML page; whatever a history holds is text in it and nothing else.

A content security policy allows the page's own script, by its hash, and no address at all: even a
mistake in escaping could not load or send anything.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from agentscope_compaction.core.types import CompactionProposal, CompactionRequest
from agentscope_compaction.core.words import OUTCOMES
from agentscope_compaction.report.calls import Call, Fate, calls_of
from agentscope_compaction.report.escape import attribute, data, shortened, text
from agentscope_compaction.report.summary import figures, privacy
from agentscope_compaction.report.table import strip, timeline
from agentscope_compaction.report.words import FATES

__all__ = ["to_html"]


def to_html(proposal: CompactionProposal, request: CompactionRequest | None = None) -> str:
    """Return a page to judge a proposal from, and to pick what to accept.

    It needs no network and no other file, works from ``file://``, and can be encoded as UTF-8
    whatever the history holds. It shows the history's own text: treat it as you treat that.

    Args:
        proposal: The proposal.
        request: What it was made for; with it the page shows each output before it was cut.

    Raises:
        InvalidSnapshotError: The request holds another history.
    """
    calls = calls_of(proposal, request)
    goal = request.goal if request is not None else proposal.observation.get("goal")
    sections = [
        _header(proposal, goal if isinstance(goal, str) else None),
        _section("Summary", figures(proposal, calls)),
        _section(
            "Timeline",
            _legend() + strip(calls) + _filters(calls) + timeline(calls) + _picks(calls),
        ),
        _accept(calls),
        _section("What was shown, and what never left the process", privacy(proposal)),
    ]
    facts = data({"proposal_id": proposal.proposal_id})
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{_head()}</head><body><main>'
        f'{"".join(sections)}</main><script type="application/json" id="facts">{facts}</script>'
        f"<script>{_asset('report.js')}</script></body></html>\n"
    )


@cache
def _asset(name: str) -> str:
    return files("agentscope_compaction.report").joinpath("assets", name).read_text("utf-8")


def _head() -> str:
    script = hashlib.sha256(_asset("report.js").encode()).digest()
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{base64.b64encode(script).decode()}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="referrer" content="no-referrer">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>Compaction proposal</title><style>{_asset('report.css')}</style>"
    )


def _header(proposal: CompactionProposal, goal: str | None) -> str:
    aim = (
        "" if goal is None else f'<p class="goal"><b>Goal:</b> <bdi>{_line(goal, 2_000)}</bdi></p>'
    )
    return (
        f"<header><h1>Compaction proposal</h1><p>{OUTCOMES[proposal.reason]} "
        "The original history is untouched until you accept.</p>"
        f'{aim}<p class="quiet">Proposal <code>{_line(proposal.proposal_id, 100)}</code> for '
        f"snapshot <code>{_line(proposal.snapshot_digest, 100)}</code></p></header>"
    )


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>{content}</section>"


def _legend() -> str:
    keys = "".join(
        f'<li><span class="key {fate.value}" aria-hidden="true"></span>{FATES[fate]}</li>'
        for fate in Fate
    )
    return f'<ul class="legend">{keys}</ul>'


def _filters(calls: Sequence[Call]) -> str:
    tools = sorted({call.decision.tool_name for call in calls})
    by_tool = "".join(
        f'<option value="{n}">{_line(name, 80)}</option>' for n, name in enumerate(tools)
    )
    by_fate = "".join(f'<option value="{fate.value}">{FATES[fate]}</option>' for fate in Fate)
    return (
        '<fieldset class="filters"><legend>Show</legend>'
        f'<label>Tool <select id="tool"><option value="">all</option>{by_tool}</select></label>'
        f'<label>Fate <select id="fate"><option value="">all</option>{by_fate}</select></label>'
        '<button type="button" id="expand">Open all details</button>'
        f'<p id="shown" role="status" aria-live="polite">{len(calls)} of {len(calls)} calls</p>'
        "</fieldset>"
    )


def _picks(calls: Sequence[Call]) -> str:
    """The choice so far; stays in sight while the timeline is scrolled."""
    if not any(call.changes for call in calls):
        return ""
    return (
        '<fieldset class="picks"><legend>Your choice</legend>'
        '<button type="button" id="all">Tick all shown</button>'
        '<button type="button" id="none">Untick all shown</button>'
        '<p id="picked" role="status" aria-live="polite"></p></fieldset>'
    )


def _accept(calls: Sequence[Call]) -> str:
    if not any(call.changes for call in calls):
        return _section("Accept", "<p>There is nothing to accept.</p>")
    return _section(
        "Accept",
        "<p>Tick the calls to accept in the timeline; those not ticked stay whole.</p>"
        '<noscript><p class="note">Picking calls needs scripts; the rest of the page does '
        "not.</p></noscript>"
        + _copyable("snippet", "In Python")
        + _copyable("accepted", "As JSON"),
    )


def _copyable(name: str, title: str) -> str:
    label = attribute(f"Copy: {title}")
    return (
        f'<h3 id="{name}-title">{title}</h3><div class="copyable">'
        f'<pre id="{name}" tabindex="0" aria-labelledby="{name}-title"></pre>'
        f'<button type="button" class="copy" data-of="{name}" aria-label={label}>Copy</button>'
        "</div>"
    )


def _line(value: str, limit: int) -> str:
    return text(shortened(value, limit))
