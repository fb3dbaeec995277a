"""Every environment variable that is read, and what it means.

``DECISION_MODEL_*``, ``TYPESAFE_*`` and ``OPENAI_*`` may also stand in a file ``.env`` in the
working directory; the environment wins.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Variable"]


class Variable(StrEnum):
    """The name of a variable; its value in the environment is text."""

    DECISION_MODEL_BACKEND = "DECISION_MODEL_BACKEND"
    """Who decides: ``embedded`` (in this process, needs nothing), ``jev`` (TypeSafe's Jev through
    this package's client), ``agentscope`` (Jev through AgentScope's ``JevClassifierModel``, needs
    the extra ``jev``) or ``openai`` (AgentScope's ``OpenAIClassifierModel``). Unset: ``jev`` if
    there is a key, else ``embedded``."""
    DECISION_MODEL_API_KEY = "DECISION_MODEL_API_KEY"
    """Key of the decision service; a loopback server needs none."""
    DECISION_MODEL_NAME = "DECISION_MODEL_NAME"
    """The service's model; unset: a pinned version."""
    DECISION_MODEL_BASE_URL = "DECISION_MODEL_BASE_URL"
    """Address of the service; https, or http on loopback."""
    TYPESAFE_API_KEY = "TYPESAFE_API_KEY"
    """Read for ``jev`` and ``agentscope`` where ``DECISION_MODEL_API_KEY`` is not set."""
    TYPESAFE_DEFAULT_MODEL = "TYPESAFE_DEFAULT_MODEL"
    """Likewise for ``DECISION_MODEL_NAME``."""
    TYPESAFE_BASE_URL = "TYPESAFE_BASE_URL"
    """Likewise for ``DECISION_MODEL_BASE_URL``."""
    OPENAI_API_KEY = "OPENAI_API_KEY"
    """Read for ``openai`` where ``DECISION_MODEL_API_KEY`` is not set."""
    OPENAI_BASE_URL = "OPENAI_BASE_URL"
    """Likewise for ``DECISION_MODEL_BASE_URL``."""
    AGENTSCOPE_COMPACTION_ARCHIVE = "AGENTSCOPE_COMPACTION_ARCHIVE"
    """Path or URL of the archive used where none is given; unset: a SQLite file in the user's data
    directory."""
    AGENTSCOPE_COMPACTION_TRACEBACK = "AGENTSCOPE_COMPACTION_TRACEBACK"
    """Anything but empty: a command that fails prints where, instead of one line."""
    AGENTSCOPE_COMPACTION_CASSETTES = "AGENTSCOPE_COMPACTION_CASSETTES"
    """Mode of the cassettes of ``agentscope_compaction.testing``: ``replay``, ``auto`` or
    ``record``."""
    TIKTOKEN_CACHE_DIR = "TIKTOKEN_CACHE_DIR"
    """Where tiktoken's own files are looked for, so that nothing is downloaded."""
    DATA_GYM_CACHE_DIR = "DATA_GYM_CACHE_DIR"
    """tiktoken's older name for the same."""
    NO_COLOR = "NO_COLOR"
    """Anything but empty: commands print without colour. In a pipe they do so anyway."""
    COLUMNS = "COLUMNS"
    """Width of what commands print; unset: the terminal's, and 100 in a pipe."""
