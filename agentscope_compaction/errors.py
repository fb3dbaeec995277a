"""Every error this package raises; one root, split only where a caller acts differently.

No message or ``repr`` here ever holds a key, a request body or a response body.
"""

from __future__ import annotations

__all__ = [
    "ArchiveError",
    "ArchiveIntegrityError",
    "ArchiveNotFoundError",
    "CompactionError",
    "ConfigurationError",
    "DecisionAnswerError",
    "DecisionHTTPError",
    "DecisionModelError",
    "DecisionTimeoutError",
    "InvalidSnapshotError",
    "ObservationBudgetError",
    "StaleProposalError",
]


class CompactionError(Exception):
    """Root of all errors of this package."""


class ConfigurationError(CompactionError, ValueError):
    """A setting (URL, key, backend name, callback) that cannot work, found before it was used."""


class InvalidSnapshotError(CompactionError, ValueError):
    """The request is not a valid snapshot: wrong shape, wrong types, or not JSON."""


class ObservationBudgetError(CompactionError):
    """The observation view does not fit its token budget, even in its last stage."""


class DecisionModelError(CompactionError):
    """The decision model failed; nothing was compacted."""


class DecisionTimeoutError(DecisionModelError, TimeoutError):
    """The deadline over all requests of one proposal passed, or the time of one request did."""


class DecisionAnswerError(DecisionModelError):
    """An expected answer is missing, refused, not binary, not finite or outside [0, 1]."""


class DecisionHTTPError(DecisionModelError):
    """The decision service answered with an error status, or could not be reached.

    Attributes:
        status: HTTP status code; None when no response arrived.
        request_id: The service's request id; None when it sent none.
    """

    def __init__(
        self, message: str, *, status: int | None = None, request_id: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.request_id = request_id


class ArchiveError(CompactionError):
    """The archive could not store or read; no proposal is returned without its archive."""


class ArchiveNotFoundError(ArchiveError, LookupError):
    """The archive holds nothing under this reference."""


class ArchiveIntegrityError(ArchiveError):
    """Stored bytes do not match their digest."""


class StaleProposalError(CompactionError):
    """The live context changed since the proposal was made; nothing was applied."""
