"""Record and replay decisions as ``.jevl`` files, below the real client.

A cassette is JSON Lines, one answered request per line::

    {"v": 1, "id": "sha256:...", "ts": "...", "model": "jev-1.13.0", "request": {...},
     "answers": {...}, "usage": {...}, "label": null, "tags": [], "meta": {...}}

``id`` is the SHA-256 of the canonical JSON (keys sorted, compact, UTF-8) of ``model``,
``questions`` and ``state`` of the decoded request body, so any change to a question or to the
state needs a new recording. Unknown keys survive; a newer ``v`` and a bad line are refused.
No header is ever stored, so no key is; the stored request passes through ``scrub`` first. Record
synthetic sessions only: a request holds the history that was judged.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import httpx

from agentscope_compaction.environment import Variable
from agentscope_compaction.redaction import redact_secrets

__all__ = ["Cassette", "CassetteError", "CassetteMissError", "CassetteMode", "request_digest"]

MODE_VARIABLE = Variable.AGENTSCOPE_COMPACTION_CASSETTES.value
"""Environment variable with the mode of cassettes that are not given one."""
_VERSION = 1


class CassetteMode(StrEnum):
    """What a cassette does with a request."""

    REPLAY = "replay"
    """Answer from the file; a request it does not hold is a failure. The default."""
    AUTO = "auto"
    """Answer from the file, ask and record what it does not hold."""
    RECORD = "record"
    """Ask everything again; what was not asked is dropped from the file."""


class CassetteError(Exception):
    """The cassette file is not one this version can read."""


class CassetteMissError(AssertionError):
    """A replayed request is not on the cassette; a test failure, never retried."""


class Cassette(httpx.AsyncBaseTransport):
    """An httpx transport that answers from a ``.jevl`` file.

    ``JevDecisionModel(http_client=httpx.AsyncClient(transport=Cassette(path)))``. Recording asks
    ``inner`` (httpx's own transport by default) and writes the file as answers arrive; only
    successful JSON responses are stored, others pass through.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        mode: CassetteMode | str | None = None,
        *,
        inner: httpx.AsyncBaseTransport | None = None,
        scrub: Callable[[str], str] = redact_secrets,
    ) -> None:
        """Read the file; ``mode`` None takes ``AGENTSCOPE_COMPACTION_CASSETTES``, else replay.

        Raises:
            CassetteError: A line that is not a record, or a record of a newer format.
        """
        self.path = Path(path)
        self.mode = CassetteMode(mode or os.environ.get(MODE_VARIABLE) or CassetteMode.REPLAY)
        self._inner = inner
        self._scrub = scrub
        self._records = {} if self.mode is CassetteMode.RECORD else _read(self.path)
        self._played: set[str] = set()

    @property
    def unplayed(self) -> list[str]:
        """Ids of entries no request asked for; stale once all tests that use the file have run."""
        return [digest for digest in self._records if digest not in self._played]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer from the file, or ask and record, as the mode says."""
        body = json.loads(await request.aread())
        digest = request_digest(body)
        self._played.add(digest)
        record = self._records.get(digest)
        if record is not None:
            return _replayed(record)
        if self.mode is CassetteMode.REPLAY:
            raise CassetteMissError(_miss(self.path, digest))
        if self._inner is None:
            self._inner = httpx.AsyncHTTPTransport()
        response = await self._inner.handle_async_request(request)
        content = await response.aread()
        self._record(digest, body, response.status_code, content)
        headers = {"content-type": response.headers.get("content-type", "application/json")}
        return httpx.Response(response.status_code, headers=headers, content=content)

    async def aclose(self) -> None:
        """Close the inner transport."""
        if self._inner is not None:
            await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    def _record(self, digest: str, body: dict[str, Any], status: int, content: bytes) -> None:
        try:
            reply = json.loads(content)
        except ValueError:
            return
        if status != 200 or not isinstance(reply, dict):
            return
        self._records[digest] = {
            "v": _VERSION,
            "id": digest,
            "ts": datetime.now(UTC).isoformat(timespec="seconds"),
            "model": reply.get("model"),
            "request": _scrubbed(body, self._scrub),
            "answers": reply.get("answers"),
            "usage": reply.get("usage"),
            "label": None,
            "tags": [],
            "meta": {"requested_model": body.get("model")},
        }
        _write(self.path, self._records.values())


def request_digest(body: Mapping[str, Any]) -> str:
    """Return ``sha256:...`` over the canonical JSON of model, questions and state.

    Raises:
        ValueError: NaN, infinities or lone surrogates, which have no canonical form.
    """
    request = {name: body.get(name) for name in ("model", "questions", "state")}
    text = json.dumps(
        request, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _replayed(record: Mapping[str, Any]) -> httpx.Response:
    reply = {name: record.get(name) for name in ("model", "answers", "usage")}
    return httpx.Response(200, json=reply)


def _miss(path: Path, digest: str) -> str:
    test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
    command = f"{MODE_VARIABLE}=auto python -m pytest {test}".rstrip()
    return f"{path.name} holds no answer for {digest}; record it with: {command}"


def _read(path: Path) -> dict[str, dict[str, Any]]:
    if not path.exists():
        return {}
    records: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            raise CassetteError(f"{path.name}:{number}: not JSON") from None
        if not isinstance(record, dict) or not isinstance(record.get("id"), str):
            raise CassetteError(f"{path.name}:{number}: not a record")
        version = record.get("v")
        if not isinstance(version, int) or version > _VERSION:
            raise CassetteError(f"{path.name}:{number}: format version {version!r} is not known")
        records[record["id"]] = record
    return records


def _write(path: Path, records: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(record, ensure_ascii=False, separators=(",", ":")) for record in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def _scrubbed(value: Any, scrub: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list):
        return [_scrubbed(item, scrub) for item in value]
    if isinstance(value, dict):
        return {name: _scrubbed(item, scrub) for name, item in value.items()}
    return value
