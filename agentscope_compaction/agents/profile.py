"""The profile file: the thresholds ``calibrate`` found for one decision model, and how."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentscope_compaction.core.decisions import as_thresholds
from agentscope_compaction.core.options import CompactionOptions
from agentscope_compaction.core.types import JSONObject, Thresholds
from agentscope_compaction.errors import ConfigurationError

__all__ = ["Chosen", "Profile", "load_profile", "save_profile"]

_log = logging.getLogger("agentscope_compaction")

_VERSION = 1
_LARGEST = 1_000_000
"""Bytes of a file that can still be a profile."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Thresholds of one decision model and the measurement behind them."""

    model: str
    """The name that answered."""
    thresholds: Thresholds
    loss: float
    """Loss that was measured at these thresholds."""
    interval: tuple[float, float]
    """90 % bootstrap interval of that loss."""
    histories: int
    created: str
    """Date, as ``YYYY-MM-DD``."""

    def as_json(self) -> JSONObject:
        """Return the content of the profile file."""
        return {
            "version": _VERSION,
            "model": self.model,
            "thresholds": self.thresholds._asdict(),
            "loss": self.loss,
            "interval": list(self.interval),
            "histories": self.histories,
            "created": self.created,
        }


def save_profile(profile: Profile, path: str | os.PathLike[str]) -> None:
    """Write a profile file whole or not at all.

    Raises:
        OSError: The file cannot be written.
    """
    target = Path(path)
    text = json.dumps(profile.as_json(), indent=2) + "\n"
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load_profile(path: str | os.PathLike[str]) -> Profile:
    """Read a profile file.

    Raises:
        ConfigurationError: It cannot be read, or is no profile of a version known here.
    """
    try:
        with open(path, "rb") as file:
            value = json.loads(file.read(_LARGEST))
    except OSError as exc:
        raise ConfigurationError(f"unusable profile: {exc.strerror or exc}") from None
    except (ValueError, RecursionError):
        raise ConfigurationError("unusable profile: the file is not JSON") from None
    try:
        return _profile(value)
    except (KeyError, TypeError, ValueError) as exc:
        detail = f"no {exc}" if isinstance(exc, KeyError) else str(exc)
        raise ConfigurationError(f"unusable profile: {detail}") from None


class Chosen:
    """The thresholds a caller chose, and for which model they were found.

    Args:
        profile: Thresholds as such, which go with any model, or the path of a profile file.

    Raises:
        ConfigurationError: The profile is unusable.
    """

    def __init__(self, profile: Thresholds | Mapping[str, float] | str | os.PathLike[str]) -> None:
        self._model: str | None = None
        self._told: set[str] = set()
        if isinstance(profile, str | os.PathLike):
            loaded = load_profile(profile)
            self._model, self._thresholds = loaded.model, loaded.thresholds
            return
        try:
            self._thresholds = as_thresholds(profile)
        except ValueError as exc:
            raise ConfigurationError(f"unusable profile: {exc}") from None

    def options(self, options: CompactionOptions) -> CompactionOptions:
        """Return the options with these thresholds."""
        call, result = self._thresholds
        return options.model_copy(
            update={"keep_call_threshold": call, "keep_result_threshold": result}
        )

    def compare(self, answered: str | None) -> None:
        """Warn, once per model, where another one answered than the thresholds were found for."""
        if None in (self._model, answered) or answered == self._model or answered in self._told:
            return
        self._told.add(str(answered))
        _log.warning(
            "the profile was calibrated for the model %s, but %s answered: calibrate again",
            self._model,
            answered,
        )


def _profile(value: object) -> Profile:
    if not isinstance(value, dict):
        raise ValueError("the file holds no JSON object")
    version = value.get("version")
    if version != _VERSION or isinstance(version, bool):
        raise ValueError(f"version {version!r} is not {_VERSION}")
    low, high = value["interval"]
    return Profile(
        model=str(value["model"]),
        thresholds=as_thresholds(value["thresholds"]),
        loss=float(value["loss"]),
        interval=(float(low), float(high)),
        histories=int(value["histories"]),
        created=str(value["created"]),
    )
