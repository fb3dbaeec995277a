"""What is done to every string that leaves the process: redaction, checked and counted."""

from __future__ import annotations

from collections.abc import Callable

from agentscope_compaction.errors import ConfigurationError
from agentscope_compaction.redaction import redact_and_count, redact_secrets

__all__ = ["Redaction"]


class Redaction:
    """A redactor that counts: secrets for the built-in one, changed strings for a caller's."""

    def __init__(self, redact: Callable[[str], str] | None) -> None:
        self.count = 0
        self._redact = redact

    def __call__(self, text: str) -> str:
        """Return the text as it may leave.

        Raises:
            ConfigurationError: The caller's function failed or returned no string; an unredacted
                string must not leave instead.
        """
        if self._redact is None:
            return text
        if self._redact is redact_secrets:
            clean, found = redact_and_count(text)
            self.count += found
            return clean
        try:
            clean = self._redact(text)
        except Exception as exc:
            raise ConfigurationError(f"redact failed: {type(exc).__name__}") from exc
        if not isinstance(clean, str):
            raise ConfigurationError("redact must return a string")
        self.count += clean != text
        return clean
