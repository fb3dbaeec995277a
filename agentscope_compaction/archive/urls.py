"""Where an archive is: URLs, paths, and the default place."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentscope_compaction.environment import Variable
from agentscope_compaction.errors import ConfigurationError

if TYPE_CHECKING:
    from sqlalchemy import URL

    from agentscope_compaction.archive.memory import InMemoryArchive
    from agentscope_compaction.archive.sql import SqlArchive

__all__ = ["ENVIRONMENT", "Location", "archive_from_url", "default_path", "locate"]

ENVIRONMENT = Variable.AGENTSCOPE_COMPACTION_ARCHIVE.value
"""Environment variable that names the archive used when none is given."""

_POSTGRES = ("postgresql+asyncpg", "postgresql", "postgres")
_SQLITE = ("sqlite+aiosqlite", "sqlite")


class MissingExtraError(ConfigurationError, ImportError):
    """A driver that is an optional extra of this package is not installed."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where an archive is; shows no password."""

    url: URL
    """For SQLAlchemy."""
    path: Path | None
    """The SQLite file; None for a server or a SQLite URI, which is opened as it stands."""

    def __str__(self) -> str:
        return str(self.path) if self.path else self.url.render_as_string(hide_password=True)

    def __repr__(self) -> str:
        return f"Location({str(self)!r})"


def archive_from_url(url: str | Path | None = None) -> SqlArchive | InMemoryArchive:
    """The archive a setting names.

    Args:
        url: What :class:`SqlArchive` takes, or ``"memory:"`` for one that ends with the process.

    Raises:
        ConfigurationError: The URL names no archive this package has.
    """
    if isinstance(url, str) and url in ("memory:", "memory://"):
        from agentscope_compaction.archive.memory import InMemoryArchive

        return InMemoryArchive()
    from agentscope_compaction.archive.sql import SqlArchive

    return SqlArchive(url)


def default_path() -> Path:
    """The SQLite file in the user's data directory."""
    import platformdirs

    return Path(platformdirs.user_data_dir("agentscope-compaction", False)) / "archive.db"


def locate(url: str | Path | None) -> Location:
    """Make sense of a URL or path, without opening anything.

    Raises:
        ConfigurationError: Not a usable URL; the message never repeats it, it may hold a password.
    """
    if url is None:
        url = os.environ.get(ENVIRONMENT) or default_path()
    if isinstance(url, str) and "://" in url:
        return _from_url(url)
    if not isinstance(url, str | os.PathLike) or not str(url).strip():
        raise ConfigurationError("an archive is a path or a URL")
    if str(url).startswith((":memory:", "file:")) or "\0" in str(url):
        raise ConfigurationError("an archive path names a file; use InMemoryArchive() for memory")
    return _from_path(Path(url))


def _from_path(path: Path) -> Location:
    from sqlalchemy import URL

    path = path.expanduser().absolute()
    return Location(URL.create("sqlite+aiosqlite", database=str(path)), path)


def _from_url(text: str) -> Location:
    from sqlalchemy.engine import make_url

    readers: dict[str, Callable[[URL], Location]] = {}
    readers.update(dict.fromkeys(_SQLITE, _sqlite))
    readers.update(dict.fromkeys(_POSTGRES, _postgres))
    try:
        url = make_url(text)
    except Exception:  # the cause could show the URL
        raise ConfigurationError("the archive URL cannot be read") from None
    reader = readers.get(url.drivername)
    if reader is None:
        raise ConfigurationError(
            f"no archive speaks {url.drivername!r}: use a path, sqlite+aiosqlite:///FILE or"
            " postgresql+asyncpg://HOST/DATABASE"
        )
    return reader(url)


def _sqlite(url: URL) -> Location:
    database = url.database or ""
    if database in ("", ":memory:") or ":memory:" in database or url.query.get("mode") == "memory":
        raise ConfigurationError("a SQLite archive is a file; use InMemoryArchive() for memory")
    if url.query or database.startswith("file:"):
        return Location(url.set(drivername=_SQLITE[0]), None)
    return _from_path(Path(database))


def _postgres(url: URL) -> Location:
    if importlib.util.find_spec("asyncpg") is None:
        raise MissingExtraError(
            "PostgreSQL archives need asyncpg: pip install 'agentscope-compaction[postgres]'"
        )
    query = dict(url.query)
    if "sslmode" in query:  # libpq's name; asyncpg through SQLAlchemy calls it ssl
        query["ssl"] = query.pop("sslmode")
    return Location(url.set(drivername=_POSTGRES[0], query=query), None)
