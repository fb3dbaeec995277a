"""Weights of the scorer: data, not code."""

from __future__ import annotations

__all__ = ["CALL", "RESULT", "TRAINING_NOTE"]

TRAINING_NOTE = "set by hand; not fitted"

RESULT: dict[str, float] = {
    "bias": -0.6,
    "goal_overlap": 1.0,
    "tail_overlap": 1.2,
    "task_overlap": 0.0,
    "ids_in_tail": 1.6,
    "input_in_tail": 0.8,
    "only_copy": 1.6,
    "only_names": 0.4,
    "older_copy": 0.2,
    "came_back": 0.8,
    "recency": 0.8,
    "age": -0.3,
    "reread": -0.6,
    "edited": -0.3,
    "error": -0.4,
    "reads": 0.2,
    "writes": 0.0,
    "runs": 0.0,
    "plans": -1.0,
    "size": 0.0,
    "input_only": 0.0,
}

CALL: dict[str, float] = {
    "bias": 0.2,
    "goal_overlap": 0.8,
    "tail_overlap": 1.0,
    "task_overlap": 0.0,
    "ids_in_tail": 0.8,
    "input_in_tail": 1.4,
    "only_copy": 0.5,
    "only_names": 0.0,
    "older_copy": 0.0,
    "came_back": 0.8,
    "recency": 0.8,
    "age": -0.5,
    "reread": -0.3,
    "edited": 0.0,
    "error": -0.6,
    "reads": -0.3,
    "writes": 1.2,
    "runs": 0.0,
    "plans": -0.8,
    "size": 0.0,
    "input_only": 1.0,
}
