"""The bundled client of System One decision models (Jev): strict, bounded, quiet about secrets."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self
from weakref import WeakKeyDictionary

from pydantic import SecretStr

from agentscope_compaction.core.types import Thresholds
from agentscope_compaction.errors import ConfigurationError, DecisionAnswerError
from agentscope_compaction.models.endpoint import (
    check_headers,
    check_key,
    require_key,
    resolve_endpoint,
    text_of,
)
from agentscope_compaction.models.exchange import Exchange, Raw
from agentscope_compaction.models.partition import halves_of, parts
from agentscope_compaction.models.profiles import CAUTIOUS_PROFILE, jev_thresholds
from agentscope_compaction.models.wire import WireReply, encode_request, read_reply
from agentscope_compaction.models.wire_errors import http_error, is_overflow, request_id

if TYPE_CHECKING:
    import httpx
    from agentscope.classifier import BinaryQuestion, ClassifierResponse

__all__ = ["DEFAULT_BASE_URL", "DEFAULT_MODEL", "JevDecisionModel"]

DEFAULT_BASE_URL = "https://api.typesafe.ai"
"""Where System One is served."""
DEFAULT_MODEL = "jev-1.13.0"
"""A pinned version, not the alias ``jev-latest``: thresholds belong to a version."""
_LONGEST_SECONDS = 10**9
"""Thirty years; clocks are floats, which cannot hold every int."""

logger = logging.getLogger("agentscope_compaction")


class JevDecisionModel:
    """Ask a System One server (``POST {base_url}/v1/systemone``); stands in for a classifier.

    ``await model(state, questions)`` behaves like AgentScope's classifiers for binary questions
    (it is registered as a ``ClassifierModelBase``); other question types are refused.
    Each answer is checked: asked, of the right type, finite, within [0, 1]. Retries on 408, 429,
    5xx, connection errors and timeouts. A request with too many tokens is asked once more in
    halves. Redirects are refused, responses are limited to 1 MiB, and neither keys nor bodies
    appear in errors, logs or ``repr``.

    Proxies and certificates come from the environment as httpx reads them (``HTTPS_PROXY``,
    ``NO_PROXY``, ``SSL_CERT_FILE``), except that a loopback server is always reached directly.
    An HTTP client passed in keeps its own settings. Instances may serve several event loops.
    """

    accepts_deadline: ClassVar[bool] = True
    """Whether ``deadline`` may be passed, so that no wait is begun that must end past it."""
    reads_only: ClassVar[bool] = True
    """The state is never changed, so it need not be copied for each request."""
    local: ClassVar[bool] = False
    """State leaves this process, so the caller redacts it and withholds outputs."""

    def __init__(
        self,
        api_key: str | SecretStr | None = None,
        base_url: str | None = None,
        model: str | None = None,
        *,
        endpoint: str | None = None,
        timeout: float = 10,
        max_retries: int = 1,
        retry_delay: float = 0.5,
        http_client: httpx.AsyncClient | None = None,
        headers: Mapping[str, str] | None = None,
        max_questions: int | None = None,
    ) -> None:
        """Check the settings; nothing is imported, opened or sent before the first call.

        Args:
            api_key: None reads ``DECISION_MODEL_API_KEY``, then ``TYPESAFE_API_KEY``; empty is
                none. Only a loopback server, or one named with a credential header, needs none.
            base_url: None reads ``DECISION_MODEL_BASE_URL``, then ``TYPESAFE_BASE_URL``.
            model: None reads ``DECISION_MODEL_NAME``, then ``TYPESAFE_DEFAULT_MODEL``.
            endpoint: The full URL, for gateways with another path; wins over ``base_url``.
            timeout: Seconds for one whole request, connecting and the body included.
            max_retries: Further tries of one request.
            retry_delay: Seconds before the first retry, doubling up to 5; a server's
                ``retry-after-ms`` or ``Retry-After`` wins. More than 30 s fails at once.
            http_client: Used as it is and never closed; None opens one, closed by ``aclose``.
            headers: Sent with each request, over the defaults; values are kept secret.
            max_questions: Most questions in one request; None sends what a call asks at once.

        Raises:
            ConfigurationError: A URL, key, header or number that cannot work or is not safe.
        """
        base = _setting(base_url, "DECISION_MODEL_BASE_URL", "TYPESAFE_BASE_URL")
        self.endpoint = resolve_endpoint(base or DEFAULT_BASE_URL, endpoint)
        name = _setting(model, "DECISION_MODEL_NAME", "TYPESAFE_DEFAULT_MODEL")
        self.model = name or DEFAULT_MODEL
        if api_key is None:
            api_key = _setting(None, "DECISION_MODEL_API_KEY", "TYPESAFE_API_KEY")
        key, extra = check_key(api_key), check_headers(headers)
        require_key(self.endpoint, key, extra)
        _check_numbers(timeout, max_retries, retry_delay, max_questions)
        self._max_questions = max_questions
        self._exchange = Exchange(
            url=self.endpoint,
            key=key,
            headers=extra,
            timeout=timeout,
            max_retries=max_retries,
            retry_delay=retry_delay,
            client=http_client,
            owned=WeakKeyDictionary(),
        )
        self._warned: set[str] = set()
        _register()

    def __repr__(self) -> str:
        return f"JevDecisionModel(model={self.model!r}, endpoint={self.endpoint!r})"

    @property
    def thresholds(self) -> Thresholds:
        """The profile of the requested model; an alias or unknown version gets the cautious one."""
        return jev_thresholds(self.model) or CAUTIOUS_PROFILE

    def thresholds_for(self, answering_model: str) -> Thresholds:
        """Return the keep thresholds for the version that answered (``response.model``).

        An unknown version is warned about once and gets lower thresholds, so that more is kept.
        """
        profile = jev_thresholds(answering_model)
        if profile is None and answering_model not in self._warned:
            self._warned.add(answering_model)
            logger.warning(
                "decision model %s is not a known version; keeping more (thresholds %s)",
                answering_model,
                tuple(CAUTIOUS_PROFILE),
            )
        return profile or CAUTIOUS_PROFILE

    async def __call__(
        self,
        state: dict[str, Any] | str,
        questions: Mapping[str, BinaryQuestion],
        *,
        deadline: float | None = None,
    ) -> ClassifierResponse:
        """Ask every question about the state.

        Args:
            state: A JSON object or a text, sent unchanged.
            questions: Question id to ``BinaryQuestion``.
            deadline: Event-loop time (``loop.time()``) by which the answers must be here. A
                ``Retry-After`` past it fails at once.

        Returns:
            ``ClassifierResponse``: one ``BinaryAnswer`` (or ``RefusalAnswer``) per question in
            ``content``, the answering model in ``model``, ``usage`` (None when the service does
            not report it), and ``metadata`` with ``request_id``, ``request_ids`` and ``requests``
            (HTTP requests sent, retries included).

        Raises:
            ConfigurationError: No question, or one that is not binary.
            InvalidSnapshotError: The state is not JSON.
            DecisionAnswerError: The answers are not complete and valid.
            DecisionHTTPError: An error status, or no connection.
            DecisionTimeoutError: No answer in time.
        """
        from agentscope_compaction.models.response import to_response

        _register()
        started = time.perf_counter()
        log = _Log()
        replies: list[WireReply] = []
        for part in parts(dict(questions), self._max_questions):
            replies += await self._ask(state, part, deadline, log, splits=1)
        return to_response(
            replies, list(questions), time.perf_counter() - started, log.ids, log.requests
        )

    async def _ask(
        self,
        state: dict[str, Any] | str,
        questions: dict[str, BinaryQuestion],
        deadline: float | None,
        log: _Log,
        splits: int,
    ) -> list[WireReply]:
        body = encode_request(self.model, state, questions)
        raw = await self._exchange.post(body, deadline)
        secrets = self._exchange.secrets()
        log.add(raw, request_id(raw.headers, secrets))
        logger.debug("decision service: %d for %d questions", raw.status, len(questions))
        if 200 <= raw.status < 300:
            return [self._read(raw, questions)]
        halves = halves_of(questions)
        if not splits or len(halves) < 2 or not is_overflow(raw.status, raw.body):
            raise http_error(raw.status, raw.headers, raw.body, secrets)
        replies = []
        for half in halves:
            replies += await self._ask(state, half, deadline, log, splits - 1)
        return replies

    def _read(self, raw: Raw, questions: Mapping[str, BinaryQuestion]) -> WireReply:
        if raw.oversized:
            raise DecisionAnswerError("the response of the decision service is too large")
        reply = read_reply(raw.body, questions)
        if reply.extra:
            logger.warning("decision service: ignored %d answers nobody asked for", reply.extra)
        return reply

    async def aclose(self) -> None:
        """Close what was opened for the running event loop; a later call opens it again."""
        await self._exchange.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


class _Log:
    """Requests and request ids of one call."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.requests = 0

    def add(self, raw: Raw, reference: str | None) -> None:
        self.requests += raw.tries
        if reference:
            self.ids.append(reference)


def _register() -> None:
    """Let ``isinstance(model, ClassifierModelBase)`` hold once AgentScope's class is loaded."""
    module = sys.modules.get("agentscope.classifier")
    if module is not None:
        module.ClassifierModelBase.register(JevDecisionModel)


def _setting(value: str | None, *variables: str) -> str:
    if value is not None:
        return text_of(value)
    found = (os.environ.get(variable, "").strip() for variable in variables)
    return next(filter(None, found), "")


def _check_numbers(
    timeout: float, max_retries: int, retry_delay: float, max_questions: int | None
) -> None:
    for name, number in (("timeout", timeout), ("retry_delay", retry_delay)):
        if not _is_a(number, int, float) or not 0 <= number <= _LONGEST_SECONDS:
            raise ConfigurationError(f"{name} must be a finite number of seconds")
    if timeout == 0:
        raise ConfigurationError("timeout must be positive")
    if not _is_a(max_retries, int) or not 0 <= max_retries <= 100:
        raise ConfigurationError("max_retries must be a whole number between 0 and 100")
    if max_questions is not None and (not _is_a(max_questions, int) or max_questions < 2):
        raise ConfigurationError("max_questions must leave room for a pair, so at least 2")


def _is_a(value: object, *kinds: type) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)
