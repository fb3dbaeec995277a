"""Which pairs may be compacted at all, and the first rule that forbids it.

The order of the checks is the order of ``DecisionReason``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from agentscope_compaction.core.pairing import Pair, Pairing
from agentscope_compaction.core.stubs import is_compacted
from agentscope_compaction.core.types import CompactionRequest, DecisionReason, JSONObject

__all__ = ["protect", "removal_unsafe", "signed_messages"]

_THINKING_FIELDS = frozenset({"type", "thinking", "id", "created_at", "finished_at"})
"""AgentScope's own fields of a thinking block; any other carries provider data."""
_SIGNED_ID = "gemini_ts:"
"""AgentScope keeps Gemini's thought signature inside the call id (``model/_gemini``)."""


@dataclass(frozen=True, slots=True)
class _Protections:
    recent_from: int
    messages: frozenset[int]
    recent_calls: frozenset[tuple[int, int]]
    call_ids: frozenset[str]
    tools: frozenset[str]


def protect(request: CompactionRequest, pairing: Pairing) -> dict[str, DecisionReason]:
    """Return the protecting rule of every pair that has one, by decision id."""
    given = _protections(request, pairing)
    rules: dict[str, DecisionReason] = {}
    for pair in pairing.pairs:
        if rule := _by_place(pair, given) or _by_content(pair):
            rules[pair.id] = rule
    return rules


def _protections(request: CompactionRequest, pairing: Pairing) -> _Protections:
    options, named = request.options, frozenset(request.protected_message_ids)
    recent_calls = pairing.calls[-options.preserve_recent_calls :]
    return _Protections(
        recent_from=len(request.messages) - options.preserve_recent_messages,
        messages=frozenset(
            index
            for index, message in enumerate(request.messages)
            if message["role"] == "system" or _is_named(message, named)
        ),
        recent_calls=frozenset(recent_calls if options.preserve_recent_calls else ()),
        call_ids=frozenset(request.protected_call_ids),
        tools=frozenset(request.eligible_tool_names),
    )


def _is_named(message: JSONObject, named: frozenset[str]) -> bool:
    message_id = message.get("id")
    return isinstance(message_id, str) and message_id in named


def _by_place(pair: Pair, given: _Protections) -> DecisionReason | None:
    """Return the rule that protects where a pair stands, or what the caller named."""
    call_at, result_at = pair.call_at, pair.result_at
    if call_at[0] == 0:
        return DecisionReason.FIRST_MESSAGE
    if result_at[0] >= given.recent_from:
        return DecisionReason.RECENT_MESSAGE
    if call_at in given.recent_calls:
        return DecisionReason.RECENT_CALL
    if call_at[0] in given.messages or result_at[0] in given.messages:
        return DecisionReason.PROTECTED_MESSAGE
    if pair.call_id in given.call_ids:
        return DecisionReason.PROTECTED_CALL
    return None if pair.tool_name in given.tools else DecisionReason.TOOL_NOT_ELIGIBLE


def _by_content(pair: Pair) -> DecisionReason | None:
    """Return the rule that protects what a pair is."""
    if pair.call.get("state") != "finished":
        return DecisionReason.CALL_NOT_FINISHED
    if pair.result.get("state") != "success":
        return DecisionReason.RESULT_NOT_SUCCESS
    if pair.text is None:
        return DecisionReason.NON_TEXT_OUTPUT
    if pair.call.get("name") != pair.tool_name or pair.result.get("name") != pair.tool_name:
        return DecisionReason.TOOL_NAME_MISMATCH
    return DecisionReason.ALREADY_COMPACTED if is_compacted(pair.result, pair.text) else None


def signed_messages(messages: Sequence[JSONObject]) -> frozenset[int]:
    """Indexes of the messages with thinking that carries provider data; looks at each block once.

    Asking message by message for every pair would be quadratic: one reply is one message.
    """
    return frozenset(
        index
        for index, message in enumerate(messages)
        if any(_is_signed(block) for block in message["content"])
    )


def removal_unsafe(pair: Pair, signed: Collection[int]) -> bool:
    """Whether removing this pair could break provider data that refers to it.

    Anthropic signs thinking together with what follows it, OpenAI's reasoning items need their
    call, and Gemini's first parallel call carries the signature of the turn.

    Args:
        pair: The pair.
        signed: The ``signed_messages`` of its history.
    """
    return (
        pair.call_id.startswith(_SIGNED_ID)
        or pair.call_at[0] in signed
        or pair.result_at[0] in signed
    )


def _is_signed(block: Mapping[str, object]) -> bool:
    if block.get("type") != "thinking":
        return False
    extras = (value for key, value in block.items() if key not in _THINKING_FIELDS)
    return any(not (value is None or value in ("", [], {}, ())) for value in extras)
