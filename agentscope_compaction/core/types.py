"""Request, decisions and proposal: the public values of a compaction, JSON in and out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any, NamedTuple

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
    field_validator,
)

from agentscope_compaction.core.jsontext import copy_json
from agentscope_compaction.core.options import CompactionOptions

__all__ = [
    "Action",
    "CallDecision",
    "CompactionProposal",
    "CompactionRequest",
    "DecisionReason",
    "JSONObject",
    "ProposalReason",
    "Thresholds",
]

JSONObject = dict[str, Any]
"""A JSON object as ``json.loads`` returns it."""


def _a_string(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string")
    return value


_Text = Annotated[str, PlainValidator(_a_string), WithJsonSchema({"type": "string"})]
"""Any Python string: pydantic's own check refuses lone surrogates, which histories do hold."""


class Action(StrEnum):
    """What a proposal does with one call."""

    KEEP = "keep"
    """Call and output stay as they are."""
    DROP_RESULT = "drop_result"
    """The output becomes a stub: its start, facts from it, and where the original is."""
    DROP_CALL = "drop_call"
    """Call and output are removed."""


class DecisionReason(StrEnum):
    """Why; the order of the rules is the order in which the first that applies is named.

    ``core/words.py`` says what each means.
    """

    FIRST_MESSAGE = "first_message"
    RECENT_MESSAGE = "recent_message"
    RECENT_CALL = "recent_call"
    PROTECTED_MESSAGE = "protected_message"
    PROTECTED_CALL = "protected_call"
    TOOL_NOT_ELIGIBLE = "tool_not_eligible"
    CALL_NOT_FINISHED = "call_not_finished"
    RESULT_NOT_SUCCESS = "result_not_success"
    NON_TEXT_OUTPUT = "non_text_output"
    TOOL_NAME_MISMATCH = "tool_name_mismatch"
    ALREADY_COMPACTED = "already_compacted"
    DUPLICATE = "duplicate"
    RESULT_NEEDED = "result_needed"
    RESULT_NOT_NEEDED = "result_not_needed"
    CALL_NOT_NEEDED = "call_not_needed"
    REMOVAL_UNSAFE = "removal_unsafe"
    WITHIN_TARGET = "within_target"
    UNANSWERED = "unanswered"
    NO_SIGNAL = "no_signal"
    BELOW_MINIMUM = "below_minimum"


class ProposalReason(StrEnum):
    """The outcome of a proposal as a whole; ``core/words.py`` says what each means."""

    COMPACTED = "compacted"
    NO_CHANGE = "no_change"
    NO_CANDIDATES = "no_candidates"
    WITHIN_TARGET = "within_target"
    BELOW_MINIMUM = "below_minimum"
    NO_SIGNAL = "no_signal"


class Thresholds(NamedTuple):
    """A decision model's keep thresholds: an answer at or above its threshold keeps."""

    call: float
    result: float


_SURROGATE = re.compile("[\ud800-\udfff]")
_REPORT = "agentscope_compaction.report"
_ROLES = ("user", "assistant", "system")


class CompactionRequest(BaseModel):
    """One snapshot and what the agent does next.

    ``messages`` are AgentScope 2.x messages as JSON objects, ``Msg.model_dump(mode="json")``:
    ``{"name", "role", "content": [{"type": "text" | "thinking" | "hint" | "tool_call" |
    "tool_result" | "data" | ..., ...}], "id", ...}``. Unknown message and block fields are legal.
    """

    model_config = ConfigDict(extra="forbid")

    messages: list[JSONObject] = Field(repr=False)
    """The history, oldest first; never modified."""
    goal: _Text
    """What the agent does next; not blank."""
    eligible_tool_names: list[_Text] = Field(default_factory=list)
    """Tools whose calls may be compacted; empty = none."""
    protected_message_ids: list[_Text] = Field(default_factory=list)
    """Ids of messages that are never touched."""
    protected_call_ids: list[_Text] = Field(default_factory=list)
    """Ids of calls that are never touched."""
    source_refs: dict[_Text, _Text] = Field(default_factory=dict)
    """Call id to opaque archive reference, named in that call's stub."""
    options: CompactionOptions = Field(default_factory=CompactionOptions)
    """How the proposal is made."""

    @field_validator("goal")
    @classmethod
    def _not_blank(cls, goal: str) -> str:
        if not goal.strip():
            raise ValueError("must say what the agent does next")
        return goal

    @field_validator("messages")
    @classmethod
    def _messages_of_blocks(cls, messages: list[JSONObject]) -> list[JSONObject]:
        for index, message in enumerate(messages):
            role, content = message.get("role"), message.get("content")
            if role not in _ROLES:
                raise ValueError(f"messages[{index}].role must be user, assistant or system")
            if not isinstance(content, list) or not all(isinstance(b, dict) for b in content):
                raise ValueError(f"messages[{index}].content must be a list of block objects")
        return messages


class CallDecision(BaseModel):
    """The fate of one recognised pair of tool call and result."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    """``t1``, ``t2``, ... in history order; the name the decision model sees."""
    call_id: _Text
    """The id the history gives the call."""
    tool_name: _Text
    """Name of the called tool."""
    action: Action
    """What the proposal does."""
    reason: DecisionReason
    """Why."""
    keep_call: float | None = None
    """Probability that the call still matters; None where not asked."""
    keep_result: float | None = None
    """Probability that the full output must stay; None where not asked."""
    applied: bool = True
    """False when a ``drop_result`` would not have been shorter, so nothing was done."""
    chars_before: int
    """Characters of the output text before."""
    chars_after: int
    """Characters of the output text after; 0 when the pair was removed."""


class CompactionProposal(BaseModel):
    """A suggested history beside the untouched old one; the caller accepts or rejects it.

    ``model_dump(mode="json")`` is the wire form.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    schema_version: int = 1
    """Version of this wire form."""
    messages: list[JSONObject] = Field(repr=False)
    """The suggested snapshot, a deep copy; equal to the input where nothing was done."""
    changed: bool
    """Whether ``messages`` differs from the input."""
    reason: ProposalReason
    """The outcome as a whole."""
    decisions: list[CallDecision] = Field(repr=False)
    """One per recognised pair, in history order."""
    stats: JSONObject
    """Sizes, counts, usage and time; see ``docs/``."""
    proposal_id: str
    """Digest of the snapshot, the request and the answers."""
    snapshot_digest: str
    """Digest of the input messages."""
    archive_ref: str | None = None
    """Where the archived original is; None when no archive was involved."""
    observation: Mapping[str, Any] = Field(default_factory=dict, exclude=True, repr=False)
    """What a decision model saw, without the outputs a local model reads; not on the wire."""

    def to_html(self, request: CompactionRequest | None = None) -> str:
        """Return a self-contained page to judge the proposal from, for a browser.

        Args:
            request: What the proposal was made for; with it each output is shown as it was.

        Raises:
            InvalidSnapshotError: The request holds another history.
        """
        # The core imports nothing from above it; a convenience is looked up by name when called.
        render: Callable[[CompactionProposal, CompactionRequest | None], str]
        render = import_module(_REPORT).to_html
        return render(self, request)

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Return the wire form with ``mode="json"``; see ``pydantic.BaseModel.model_dump``.

        The messages are JSON already and are copied as they are: pydantic itself gives up on
        values nested more than about 250 deep, which histories may be.
        """
        dumped = BaseModel.model_dump(self.model_copy(update={"messages": []}), **options)
        if "messages" in dumped:
            dumped["messages"] = copy_json(self.messages)
        return dumped

    def model_dump_json(
        self, *, indent: int | None = None, ensure_ascii: bool = False, **options: Any
    ) -> str:
        """Return the wire form as JSON text; see ``pydantic.BaseModel.model_dump_json``.

        Lone surrogates, which histories do hold and no file can, are written as escapes.
        """
        dumped = self.model_dump(mode="json", **options)
        separators = (",", ":") if indent is None else None
        text = json.dumps(dumped, ensure_ascii=ensure_ascii, indent=indent, separators=separators)
        return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
