"""``archive list | show | restore | delete | prune``: the archive from the command line.

A Typer sub-application for the main command to mount. Exit codes: 0 ok, 1 failed, 2 usage. Errors
are one line on standard error; ids are shown with control characters escaped.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from agentscope_compaction.archive import (
    ArchiveEntry,
    ArchiveRecord,
    InMemoryArchive,
    SqlArchive,
    archive_from_url,
    recall_counts,
)
from agentscope_compaction.errors import CompactionError, ConfigurationError

__all__ = ["archive_app"]

T = TypeVar("T")
Opened = SqlArchive | InMemoryArchive
archive_app = typer.Typer(
    name="archive",
    help="List, show, restore and delete archived histories.",
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
    """List snapshots, newest first, or the sessions they belong to."""
    with _errors():
        if sessions:
            usages = _run(archive, lambda opened: opened.sessions())
            rows = [
                {
                    "session_id": usage.session_id,
                    "snapshots": usage.snapshots,
                    "chars": usage.chars,
                    "stored_bytes": usage.stored_bytes,
                }
                for usage in usages
                if session in (None, usage.session_id)
            ]
        else:
            rows = [_entry(e) for e in _run(archive, lambda opened: opened.list(session))]
        _print_rows(rows, as_json)


@archive_app.command("show")
def show_command(ref: _Ref, archive: _Url = None, as_json: _Json = False) -> None:
    """Show a snapshot and the history of decisions about it."""

    async def work(opened: Opened) -> dict[str, Any]:
        return _shown(await opened.entry(ref), await opened.history(ref))

    with _errors():
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

    async def work(opened: Opened) -> object:
        return await (opened.load(ref) if call is None else opened.load_result(ref, call))

    with _errors():
        if out is not None and out.exists() and not force:
            raise ConfigurationError("the output file exists; --force replaces it")
        text = json.dumps(_run(archive, work), indent=2)
        if out is None:
            typer.echo(text)
        else:
            _write(out, text + "\n")


@archive_app.command("delete")
def delete_command(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session's id.")],
    archive: _Url = None,
    as_json: _Json = False,
) -> None:
    """Delete a session's snapshots, records and unshared blocks, for good."""
    with _errors():
        count = _run(archive, lambda opened: opened.delete(session))
        _print_json({"deleted": count}) if as_json else typer.echo(f"deleted {count} snapshots")


@archive_app.command("prune")
def prune_command(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="WHEN", help="30d, 12h, or an ISO date.")
    ],
    archive: _Url = None,
    as_json: _Json = False,
) -> None:
    """Delete the snapshots last saved before a moment, for good."""
    with _errors():
        moment = _moment(older_than)
        count = _run(archive, lambda opened: opened.prune(moment))
        _print_json({"deleted": count}) if as_json else typer.echo(f"deleted {count} snapshots")


@contextmanager
def _errors() -> Iterator[None]:
    """Our errors, and a full or missing disk, as one line and an exit code."""
    try:
        yield
    except ConfigurationError as exc:
        typer.echo(f"error: {_line(str(exc))}", err=True)
        raise typer.Exit(2) from exc
    except (CompactionError, OSError) as exc:
        typer.echo(f"error: {_line(str(exc))}", err=True)
        raise typer.Exit(1) from exc


def _run(url: str | None, work: Callable[[Opened], Awaitable[T]]) -> T:
    async def session() -> T:
        async with archive_from_url(url) as opened:
            path = getattr(opened, "path", None)
            if url is not None and path is not None and not path.exists():
                raise FileNotFoundError(f"no archive at {path}")
            return await work(opened)

    return asyncio.run(session())


def _moment(text: str) -> datetime:
    """``30d`` ago, or an ISO date or time, local where it names no zone."""
    span = re.fullmatch(r"(\d{1,6})([mhdw])", text.strip())
    now = datetime.now().astimezone()
    try:
        if span:
            return now - timedelta(**{_UNITS[span[2]]: int(span[1])})
        return datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError, OSError) as exc:
        raise ConfigurationError("--older-than takes 30d, 12h, or an ISO date") from exc


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
        typer.echo(f"{key:<12}{_line(shown[key])}")
    typer.echo(f"{'meta':<12}{json.dumps(shown['meta'])}")
    described: set[str] = set()
    for record in shown["records"]:
        calls = " ".join(map(_line, record["calls"])) or "all calls"
        who = f" by {_line(record['decided_by'])}" if record["decided_by"] else ""
        why = f": {_line(record['reason'])}" if record["reason"] else ""
        typer.echo(f"\n{record['recorded_at']}  {record['kind']} ({calls}){who}{why}")
        proposal = record["proposal"]
        if proposal["proposal_id"] not in described:
            described.add(proposal["proposal_id"])
            for decision in proposal["decisions"]:
                typer.echo(_decision(decision))
    for call, count in shown["recalls"].items():
        typer.echo(f"recalled {count} times: {_line(call)}")


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
        typer.echo("nothing archived")
    else:
        typer.echo("  ".join(rows[0]))
        for row in rows:
            typer.echo("  ".join(_line(value) for value in row.values()))


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=2))


def _line(value: object) -> str:
    """Data on one line, without what a terminal would obey or a codec could not print."""
    text = str(value)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name[:50]}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
