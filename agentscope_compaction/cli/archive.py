"""``archive list | show | restore | delete | prune``: the archive from the command line.

Ids are data of anybody: they are shown with control characters escaped.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from agentscope_compaction.archive import (
    ArchiveEntry,
    ArchiveRecord,
    InMemoryArchive,
    SessionUsage,
    SqlArchive,
    archive_from_url,
    recall_counts,
)
from agentscope_compaction.archive.urls import ENVIRONMENT
from agentscope_compaction.cli.destination import check_destination, write_bytes
from agentscope_compaction.cli.failures import CommandError
from agentscope_compaction.cli.streams import inert, say_error
from agentscope_compaction.errors import ArchiveNotFoundError, ConfigurationError

__all__ = ["archive_app"]

T = TypeVar("T")
Opened = SqlArchive | InMemoryArchive
archive_app = typer.Typer(
    name="archive",
    help="List, show, restore and delete archived histories.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_Url = Annotated[
    str | None,
    typer.Option("--archive", metavar="URL", help="Path or URL; default: the user's archive."),
]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
_Ref = Annotated[str, typer.Argument(metavar="REF", help="Reference of a snapshot.")]
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@archive_app.command("list")
def list_command(
    session: Annotated[str | None, typer.Option(help="Only this session.")] = None,
    sessions: Annotated[
        bool, typer.Option("--sessions", help="Counts and sizes by session.")
    ] = False,
    archive: _Url = None,
    as_json: _Json = False,
) -> None:
    """List snapshots, newest first, or the sessions they belong to.

    A damaged snapshot is named on standard error and ends the list with exit code 1.
    """

    async def work(opened: Opened) -> tuple[list[dict[str, Any]], Sequence[str]]:
        found, damaged = await opened.survey(session)
        if not sessions:
            return [_entry(entry) for entry in found], damaged
        usages = await opened.sessions()
        return [_usage(u) for u in usages if session in (None, u.session_id)], damaged

    rows, damaged = _run(archive, work)
    _print_rows(rows, as_json)
    for ref in damaged:
        say_error(f"the row of snapshot {ref} is damaged; it is not listed and cannot be restored")
    if damaged:
        raise typer.Exit(1)


@archive_app.command("show")
def show_command(ref: _Ref, archive: _Url = None, as_json: _Json = False) -> None:
    """Show a snapshot and the history of decisions about it."""

    async def work(opened: Opened) -> dict[str, Any]:
        return _shown(await opened.entry(ref), await opened.history(ref))

    shown = _run(archive, work)
    _print_json(shown) if as_json else _print_shown(shown)


@archive_app.command("restore")
def restore_command(
    ref: _Ref,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write to this file, not standard output.")
    ] = None,
    call: Annotated[str | None, typer.Option(help="Only the result of this call.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    archive: _Url = None,
) -> None:
    """Print or write the messages of a snapshot as JSON, exactly as they were archived."""
    target = None if out is None else check_destination(out, "", force=force, option="--out")

    async def work(opened: Opened) -> object:
        return await (opened.load(ref) if call is None else opened.load_result(ref, call))

    text = json.dumps(_run(archive, work), indent=2)
    if target is None:
        print(text)
    else:
        write_bytes(target, text.encode("ascii") + b"\n")


@archive_app.command("delete")
def delete_command(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session's id.")],
    archive: _Url = None,
    as_json: _Json = False,
) -> None:
    """Delete a session's snapshots, records and unshared blocks, for good."""
    _print_deleted(_run(archive, lambda opened: opened.delete(session)), as_json)


@archive_app.command("prune")
def prune_command(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="WHEN", help="30d, 12h, or an ISO date.")
    ],
    archive: _Url = None,
    as_json: _Json = False,
) -> None:
    """Delete the snapshots last saved before a moment, for good."""
    moment = _moment(older_than)
    _print_deleted(_run(archive, lambda opened: opened.prune(moment)), as_json)


def _run(url: str | None, work: Callable[[Opened], Awaitable[T]]) -> T:
    async def session() -> T:
        async with _opened(url) as opened:
            return await work(opened)

    try:
        return asyncio.run(session())
    except ArchiveNotFoundError as error:
        raise CommandError(
            f"{error}; 'archive list' and 'archive show' say what is there"
        ) from None


def _opened(url: str | None) -> Opened:
    """The archive that is meant; one that was named must be there."""
    try:
        opened = archive_from_url(url)
    except ConfigurationError as error:
        if url is None:
            raise CommandError(f"{ENVIRONMENT}: {error}") from None
        raise typer.BadParameter(str(error), param_hint="'--archive'") from None
    path = getattr(opened, "path", None)
    if url is not None and path is not None and not path.exists():
        raise CommandError(f"no archive at {path}; --archive takes the path or URL of one")
    return opened


def _moment(text: str) -> datetime:
    """``30d`` ago, or an ISO date or time, local where it names no zone."""
    span = re.fullmatch(r"(\d{1,6})([mhdw])", text.strip())
    now = datetime.now().astimezone()
    try:
        if span:
            return now - timedelta(**{_UNITS[span[2]]: int(span[1])})
        return datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError, OSError):
        raise typer.BadParameter(
            "takes 30d, 12h, or an ISO date", param_hint="'--older-than'"
        ) from None


def _usage(usage: SessionUsage) -> dict[str, Any]:
    return {
        "session_id": usage.session_id,
        "snapshots": usage.snapshots,
        "chars": usage.chars,
        "stored_bytes": usage.stored_bytes,
    }


def _entry(entry: ArchiveEntry) -> dict[str, Any]:
    return {
        "ref": str(entry.ref),
        "session_id": entry.session_id,
        "created_at": entry.created_at.isoformat(),
        "messages": entry.messages,
        "chars": entry.chars,
    }


def _shown(entry: ArchiveEntry, records: list[ArchiveRecord]) -> dict[str, Any]:
    return {
        **_entry(entry),
        "meta": entry.meta,
        "records": [
            {
                "recorded_at": record.recorded_at.isoformat(),
                **record.outcome.as_json(),
                "proposal": record.proposal,
            }
            for record in records
        ],
        "recalls": recall_counts(records),
    }


def _print_shown(shown: dict[str, Any]) -> None:
    """What was cut, why, by whom and when; each proposal's decisions once."""
    for key in ("ref", "session_id", "created_at", "messages", "chars"):
        print(f"{key:<12}{_line(shown[key])}")
    print(f"{'meta':<12}{json.dumps(shown['meta'])}")
    described: set[str] = set()
    for record in shown["records"]:
        calls = " ".join(map(_line, record["calls"])) or "all calls"
        who = f" by {_line(record['decided_by'])}" if record["decided_by"] else ""
        why = f": {_line(record['reason'])}" if record["reason"] else ""
        print(f"\n{record['recorded_at']}  {record['kind']} ({calls}){who}{why}")
        proposal = record["proposal"]
        if proposal["proposal_id"] not in described:
            described.add(proposal["proposal_id"])
            for decision in proposal["decisions"]:
                print(_decision(decision))
    for call, count in shown["recalls"].items():
        print(f"recalled {count} times: {_line(call)}")


def _decision(decision: dict[str, Any]) -> str:
    answers = " ".join(
        "-" if decision[key] is None else f"{decision[key]:.3f}"
        for key in ("keep_call", "keep_result")
    )
    return (
        f"  {decision['id']:<5}{decision['action']:<12} {decision['reason']:<20} {answers:<12}"
        f" {decision['chars_before']} -> {decision['chars_after']}"
        f"  {_line(decision['tool_name'])} {_line(decision['call_id'])}"
    )


def _print_rows(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        _print_json(rows)
    elif not rows:
        print("nothing archived")
    else:
        print("  ".join(rows[0]))
        for row in rows:
            print("  ".join(_line(value) for value in row.values()))


def _print_deleted(count: int, as_json: bool) -> None:
    if as_json:
        _print_json({"deleted": count})
    else:
        print(f"deleted {count} snapshot{'' if count == 1 else 's'}")


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2))


def _line(value: object) -> str:
    return inert(str(value))
