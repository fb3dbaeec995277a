"""A user's program: what mypy must infer from the public names; checked, never run."""

from collections.abc import Mapping
from typing import Any, assert_type

from agentscope.classifier import BinaryAnswer, BinaryQuestion, ClassifierResponse

from agentscope_compaction import (
    Action,
    CallDecision,
    CompactionOptions,
    CompactionProposal,
    CompactionRequest,
    DecisionModel,
    DecisionReason,
    EmbeddedDecisionModel,
    JevDecisionModel,
    Thresholds,
    compact_context,
    decision_model_from_env,
    redact_secrets,
)
from agentscope_compaction.testing import HistoryBuilder, ScriptedDecisionModel


async def keep_all(
    state: dict[str, Any], questions: Mapping[str, BinaryQuestion]
) -> ClassifierResponse:
    """A plain async function is a decision model."""
    return ClassifierResponse(model="mine", content={q: BinaryAnswer(1.0) for q in questions})


def count(messages: list[dict[str, Any]]) -> int:
    """A token counter of the user's own."""
    return len(messages)


async def program() -> None:
    """Use the public names as the README does."""
    models: list[DecisionModel] = [
        keep_all,
        EmbeddedDecisionModel(),
        JevDecisionModel("a key"),
        ScriptedDecisionModel({"call": 0.2}),
        decision_model_from_env(),
    ]
    request = CompactionRequest(
        messages=HistoryBuilder().user("hi").messages,
        goal="go on",
        options=CompactionOptions.for_agents(dedupe=False),
    )
    proposal = await compact_context(request, models[0], token_counter=count, redact=None)
    assert_type(proposal, CompactionProposal)
    assert_type(proposal.decisions, list[CallDecision])
    assert_type(proposal.decisions[0].action, Action)
    assert_type(proposal.decisions[0].reason, DecisionReason)
    assert_type(proposal.decisions[0].keep_call, float | None)
    assert_type(proposal.messages, list[dict[str, Any]])
    assert_type(EmbeddedDecisionModel.thresholds, Thresholds)
    assert_type(redact_secrets("text"), str)
    await compact_context({"messages": [], "goal": "go on"})
    await compact_context(request, "embedded")  # type: ignore[arg-type]
    CompactionRequest(messages=[])  # type: ignore[call-arg]
    CompactionOptions(reused="pair")  # type: ignore[call-arg]
