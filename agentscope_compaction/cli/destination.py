"""Where commands write files: never onto the only original, never half."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import typer

__all__ = ["check_destination", "refuse_shared", "write_bytes", "write_json"]


def check_destination(
    out: Path, source: str, *, force: bool | None, option: str = "--apply"
) -> Path:
    """Return the file that may be written, with links followed.

    ``force`` is whether an existing file may be replaced; None: the command has no ``--force``.

    The input itself is refused whatever ``force`` says: the stubs of the new history name it as
    the place where the omitted outputs are.

    Raises:
        typer.BadParameter: It exists, is the input, is no regular file, or has no folder.
    """
    target = Path(os.path.realpath(out))
    if target.exists() and os.path.exists(source) and os.path.samefile(target, source):
        _refuse(f"{out} is the input, which holds the originals of what was cut", option)
    if not target.parent.is_dir():
        _refuse(f"the folder of {out} does not exist", option)
    if target.exists() and not target.is_file():
        _refuse(f"{out} is not a regular file", option)
    if target.exists() and not force:
        way = "name another file" if force is None else "--force replaces it"
        _refuse(f"{out} exists; {way}", option)
    return target


def refuse_shared(target: Path, other: Path | None, *, option: str, others: str) -> None:
    """Refuse a file that another option of the same command writes too.

    Args:
        target: A checked destination.
        other: What the other option names; None = nothing.
        option: The option that named ``target``.
        others: The other option.

    Raises:
        typer.BadParameter: Both are one file, so that one would replace the other.
    """
    if other is not None and Path(os.path.realpath(other)) == target:
        _refuse(f"{others} writes to the same file", option)


def _refuse(message: str, option: str) -> None:
    raise typer.BadParameter(message, param_hint=f"'{option}'")


def write_json(target: Path, value: Any) -> None:
    """Write a JSON file as a whole or not at all; readable text unless it has lone surrogates.

    Raises:
        OSError: It cannot be written; nothing is left behind.
    """
    try:
        data = json.dumps(value, ensure_ascii=False, indent=1).encode()
    except UnicodeEncodeError:
        data = json.dumps(value, indent=1).encode()
    write_bytes(target, data + b"\n")


def write_bytes(target: Path, data: bytes) -> None:
    """Write a file as a whole or not at all.

    Raises:
        OSError: It cannot be written; nothing is left behind.
    """
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
