"""Which failure is which HTTP status, and what a client reads about it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from agentscope_compaction.errors import (
    CompactionError,
    DecisionAnswerError,
    DecisionHTTPError,
    DecisionModelError,
    DecisionTimeoutError,
    InvalidSnapshotError,
    ObservationBudgetError,
)

__all__ = ["STATUS", "ErrorType", "ServiceError", "as_service_error"]


class ErrorType(StrEnum):
    """``error.type`` of an answer: this package's error, or a name of the service's own."""

    MALFORMED_JSON = "MalformedJSON"
    UNAUTHORIZED = "Unauthorized"
    NOT_FOUND = "NotFound"
    METHOD_NOT_ALLOWED = "MethodNotAllowed"
    BODY_TIMEOUT = "BodyTimeout"
    BODY_TOO_LARGE = "BodyTooLarge"
    UNSUPPORTED_MEDIA_TYPE = "UnsupportedMediaType"
    FOREIGN_HOST = "ForeignHost"
    INVALID_SNAPSHOT = "InvalidSnapshotError"
    OBSERVATION_BUDGET = "ObservationBudgetError"
    INTERNAL = "InternalError"
    DECISION_MODEL = "DecisionModelError"
    DECISION_ANSWER = "DecisionAnswerError"
    DECISION_HTTP = "DecisionHTTPError"
    BUSY = "Busy"
    DECISION_TIMEOUT = "DecisionTimeoutError"
    DEADLINE = "DeadlineExceeded"


STATUS = {
    ErrorType.MALFORMED_JSON: 400,
    ErrorType.UNAUTHORIZED: 401,
    ErrorType.NOT_FOUND: 404,
    ErrorType.METHOD_NOT_ALLOWED: 405,
    ErrorType.BODY_TIMEOUT: 408,
    ErrorType.BODY_TOO_LARGE: 413,
    ErrorType.UNSUPPORTED_MEDIA_TYPE: 415,
    ErrorType.FOREIGN_HOST: 421,
    ErrorType.INVALID_SNAPSHOT: 422,
    ErrorType.OBSERVATION_BUDGET: 422,
    ErrorType.INTERNAL: 500,
    ErrorType.DECISION_MODEL: 502,
    ErrorType.DECISION_ANSWER: 502,
    ErrorType.DECISION_HTTP: 502,
    ErrorType.BUSY: 503,
    ErrorType.DECISION_TIMEOUT: 504,
    ErrorType.DEADLINE: 504,
}
"""HTTP status per type."""

_OURS: tuple[tuple[type[CompactionError], ErrorType], ...] = (
    (InvalidSnapshotError, ErrorType.INVALID_SNAPSHOT),
    (ObservationBudgetError, ErrorType.OBSERVATION_BUDGET),
    (DecisionTimeoutError, ErrorType.DECISION_TIMEOUT),
    (DecisionAnswerError, ErrorType.DECISION_ANSWER),
    (DecisionHTTPError, ErrorType.DECISION_HTTP),
    (DecisionModelError, ErrorType.DECISION_MODEL),
)
"""Subclasses first."""


class ServiceError(Exception):
    """A request that is answered with an error; the message is for the client."""

    def __init__(
        self, kind: ErrorType, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.headers = dict(headers or {})


def as_service_error(error: Exception) -> ServiceError:
    """Return what a client may know about a failure; nothing about one nobody foresaw."""
    if isinstance(error, ServiceError):
        return error
    for family, kind in _OURS:
        if isinstance(error, family):
            return ServiceError(kind, str(error) or kind.value)
    return ServiceError(ErrorType.INTERNAL, "the service failed; its log says more")
