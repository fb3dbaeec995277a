"""A caller's token counter decides, may do what it likes, and fails with one clear error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentscope_compaction import ConfigurationError
from tests.compacting import history, propose

pytestmark = pytest.mark.anyio


async def test_ids_name_what_a_counter_decided() -> None:
    """Two token counters that stop at different places do not share a proposal id."""
    request = history(8).request(target_tokens=3_000)
    few, _ = await propose(request, token_counter=lambda m: len(json.dumps(m)) // 4)
    many, _ = await propose(request, token_counter=lambda m: len(json.dumps(m)))
    assert few.messages != many.messages
    assert few.proposal_id != many.proposal_id


class Counting(list[int]):
    """A counter that notes its figures, and holds none at first."""

    def __call__(self, messages: list[dict[str, Any]]) -> int:
        """Count the messages."""
        self.append(len(messages))
        return self[-1]


async def test_a_counter_that_counts_as_false_counts() -> None:
    """Any callable is used: an empty object is no missing one."""
    counter = Counting()
    proposal, _ = await propose(history().request(), token_counter=counter)
    assert proposal.stats["tokenizer"] == "custom"
    assert counter == [proposal.stats["tokens_before"], proposal.stats["tokens_after"]]


@pytest.mark.parametrize("fault", [lambda m: -1, lambda m: True, lambda m: 1.0, lambda m: 1 / 0, 3])
async def test_a_counter_that_fails_is_a_configuration_error(fault: Any) -> None:
    """So is one that cannot be called, or whose declaration cannot be looked at."""

    class Closed:
        @property
        def reads_only(self) -> bool:
            raise RuntimeError

    for counter in (fault, Closed()):
        with pytest.raises(ConfigurationError, match="token_counter"):
            await propose(history().request(), token_counter=counter)


async def test_a_counter_that_meddles_changes_nothing() -> None:
    """A token counter may do what it likes with the history it is shown, at any depth."""

    def meddling(messages: list[dict[str, Any]]) -> int:
        tokens = len(json.dumps(messages)) // 4
        for message in messages:
            message["content"].clear()
        messages.clear()
        return tokens

    request = history(8).request(target_tokens=3_000)
    honest, _ = await propose(request, token_counter=lambda m: len(json.dumps(m)) // 4)
    proposal, _ = await propose(request, token_counter=meddling)
    assert proposal.changed
    assert proposal.messages == honest.messages
    assert proposal.stats["tokens_after"] == honest.stats["tokens_after"]
