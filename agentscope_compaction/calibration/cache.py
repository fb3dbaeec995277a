"""Answers kept in a file while a calibration runs, so that a run cut short need not pay twice.

One JSON line per judged cut: digests and probabilities, nothing of any history.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from agentscope_compaction.core.decisions import Answer, is_probability
from agentscope_compaction.errors import ConfigurationError

__all__ = ["AnswerCache", "Answers"]

Answers = tuple[str, Mapping[str, Answer]]
"""The model that answered, and its answers by decision id."""


class AnswerCache:
    """A file of answers; every line is written whole and at once.

    Args:
        path: The file; made when the first answers are added. None = nothing is kept.

    Raises:
        ConfigurationError: The file exists and is something else.
        OSError: It cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._path = None if path is None else Path(path)
        self._known: dict[str, Answers] = {}
        if self._path is not None and self._path.exists():
            self._read(self._path.read_bytes().split(b"\n"))

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str) -> Answers | None:
        """Return the answers kept under a key."""
        return self._known.get(key)

    def add(self, key: str, model: str, answers: Mapping[str, Answer]) -> None:
        """Keep answers, in the file too.

        Raises:
            OSError: The file cannot be written.
        """
        self._known[key] = (model, dict(answers))
        if self._path is None:
            return
        numbers = {name: [a.keep_call, a.keep_result] for name, a in answers.items()}
        line = json.dumps({"key": key, "model": model, "answers": numbers})
        # The newline comes first: a line that a crash left torn must not swallow this one.
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"\n{line}")

    def _read(self, lines: list[bytes]) -> None:
        filled = [line for line in lines if line.strip()]
        for line in filled:
            try:
                value = json.loads(line)
                numbers = value["answers"].items()
                answers = {
                    name: Answer(_probability(c), _probability(r)) for name, (c, r) in numbers
                }
                self._known[str(value["key"])] = (str(value["model"]), answers)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue  # torn by a crash, or edited: that cut is asked again
        if filled and not self._known:
            raise ConfigurationError("the resume file holds no answers of a calibration")


def _probability(value: object) -> float:
    if not is_probability(value):
        raise ValueError("not a probability")
    return float(value)
