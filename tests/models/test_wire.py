"""Requests as bytes, and every kind of reply body as answers or one documented error."""

import json
from typing import Any

import pytest
from agentscope.classifier import BinaryCriteria, BinaryQuestion, ScoreQuestion
from hypothesis import given
from hypothesis import strategies as st

from agentscope_compaction.errors import (
    ConfigurationError,
    DecisionAnswerError,
    InvalidSnapshotError,
)
from agentscope_compaction.models.wire import encode_request, read_reply

ASKED = ("call_t1", "result_t1")
BOTH = BinaryCriteria(true="yes it is", false="no it is not")


def reply(answers: Any, **fields: Any) -> bytes:
    """A response body with these answers."""
    body = {"model": "jev-1.13.0", "answers": answers, **fields}
    return json.dumps({k: v for k, v in body.items() if v is not ...}).encode()


def nouls(call: Any = 0.25, result: Any = 1) -> dict[str, Any]:
    """Answers to both questions."""
    return {
        "call_t1": {"type": "noul", "noul": call},
        "result_t1": {"type": "noul", "noul": result},
    }


@pytest.mark.parametrize(
    ("question", "sent"),
    [
        (BinaryQuestion(instructions="Is it?"), {"instructions": "Is it?"}),
        (
            BinaryQuestion(instructions="Is it?", criteria=BinaryCriteria()),
            {"instructions": "Is it?"},
        ),
        (
            BinaryQuestion(instructions="Is it?", criteria=BOTH),
            {"instructions": "Is it?", "criteria": {"true": "yes it is", "false": "no it is not"}},
        ),
        (
            BinaryQuestion(instructions="Is it?", criteria=BinaryCriteria(true="yes")),
            {"instructions": "Is it?\nTrue: yes"},
        ),
        (
            BinaryQuestion(instructions="Is it?", criteria=BinaryCriteria(false="no")),
            {"instructions": "Is it?\nFalse: no"},
        ),
        (BinaryQuestion(), {"instructions": "q"}),
    ],
)
def test_only_the_portable_subset_is_sent(question: BinaryQuestion, sent: dict[str, Any]) -> None:
    """String instructions always; criteria are two plain strings or absent."""
    body = json.loads(encode_request("jev-1.13.0", {"goal": "é"}, {"q": question}))
    assert body == {
        "model": "jev-1.13.0",
        "state": {"goal": "é"},
        "questions": {"q": {"type": "noul", **sent}},
    }


@pytest.mark.parametrize("state", [{"x": float("nan")}, {"x": float("inf")}, {"x": object()}])
def test_a_state_that_is_not_json_is_refused_before_sending(state: dict[str, Any]) -> None:
    """NaN would reach the server as something it cannot read."""
    with pytest.raises(InvalidSnapshotError):
        encode_request("m", state, {"q": BinaryQuestion(instructions="?")})


def test_lone_surrogates_are_sent_as_question_marks() -> None:
    """Half a character in a history must not make it impossible to judge."""
    body = encode_request("m", {"a\ud800": "b\udfff"}, {"q": BinaryQuestion(instructions="?")})
    assert json.loads(body)["state"] == {"a?": "b?"}


@pytest.mark.parametrize("questions", [{}, {"q": ScoreQuestion(criteria=["low", "high"])}])
def test_only_binary_questions_are_asked(questions: Any) -> None:
    """No question, or one of another type, is the caller's mistake."""
    with pytest.raises(ConfigurationError):
        encode_request("m", {}, questions)


def test_a_good_reply_is_read() -> None:
    """Answers come in the order asked, with usage and the answering model."""
    usage = {"input_tokens": 812, "output_tokens": 44}
    got = read_reply(reply(nouls(), usage=usage, id="x", latency_ms=1), ASKED)
    assert list(got.answers.items()) == [("call_t1", 0.25), ("result_t1", 1.0)]
    assert (got.model, got.input_tokens, got.output_tokens, got.extra) == ("jev-1.13.0", 812, 44, 0)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (..., None),
        (None, None),
        ([], None),
        ({}, None),
        ({"input_tokens": 7.0}, 7),
        ({"input_tokens": 7.5}, None),
        ({"input_tokens": -1}, None),
        ({"input_tokens": True}, None),
        ({"input_tokens": "7"}, None),
        ({"input_tokens": 10**400}, None),
    ],
)
def test_odd_usage_is_unknown(usage: Any, tokens: int | None) -> None:
    """Usage is information, so it never fails a reply."""
    assert read_reply(reply(nouls(), usage=usage), ASKED).input_tokens == tokens


def test_a_refusal_is_no_probability() -> None:
    """A refused question is told apart from an answered one."""
    answers = nouls() | {"result_t1": {"type": "refusal"}}
    assert read_reply(reply(answers), ASKED).answers == {"call_t1": 0.25, "result_t1": None}


def test_extra_answers_are_counted_not_read() -> None:
    """Whatever an unasked answer holds, it changes nothing."""
    got = read_reply(reply(nouls() | {"x": {"type": "score"}, "y": 3}), ASKED)
    assert (set(got.answers), got.extra) == (set(ASKED), 2)


GOOD = reply(nouls())
BAD_BODIES = {
    "empty": b"",
    "html": b"<html>busy</html>",
    "xssi prefix": b")]}'\n" + GOOD,
    "byte order mark": b"\xef\xbb\xbf" + GOOD,
    "truncated": GOOD[:-5],
    "trailing data": GOOD + b"{}",
    "not utf-8": GOOD.replace(b"jev", b"\xff\xfe"),
    "utf-16": GOOD.decode().encode("utf-16"),
    "array": b"[1]",
    "null": b"null",
    "number": b"1",
    "too deep": b"[" * 100_000,
    "nan elsewhere": GOOD[:-1] + b', "x_debug": NaN}',
    "duplicate answers": GOOD[:-1] + b', "answers": {}}',
    "duplicate id": reply({}).replace(b"{}", b'{"call_t1": 1, "call_t1": 2}'),
    "huge integer": reply(nouls()).replace(b"0.25", b"9" * 5000),
    "no model": reply(nouls(), model=...),
    "model null": reply(nouls(), model=None),
    "model empty": reply(nouls(), model=""),
    "model multi-line": reply(nouls(), model="a\nb"),
    "model long": reply(nouls(), model="m" * 1000),
    "no answers": reply(...),
    "answers array": reply([{"type": "noul", "noul": 0.5}] * 2),
    "answers null": reply(None),
    "answers empty": reply({}),
    "one missing": reply({"call_t1": {"type": "noul", "noul": 0.5}}),
    "other id": reply({"CALL_T1": {"type": "noul", "noul": 0.5}} | {"result_t1": {}}),
    "answer number": reply(nouls() | {"call_t1": 0.5}),
    "answer null": reply(nouls() | {"call_t1": None}),
    "answer array": reply(nouls() | {"call_t1": [0.5]}),
    "no type": reply(nouls() | {"call_t1": {"noul": 0.5}}),
    "boolean type": reply(nouls() | {"call_t1": {"type": "boolean", "noul": 0.5}}),
    "choice type": reply(nouls() | {"call_t1": {"type": "choice", "choice": "yes"}}),
    "type null": reply(nouls() | {"call_t1": {"type": None, "noul": 0.5}}),
    "type list": reply(nouls() | {"call_t1": {"type": ["noul"], "noul": 0.5}}),
    "noul missing": reply(nouls() | {"call_t1": {"type": "noul"}}),
    **{
        f"noul {name}": GOOD.replace(b"0.25", value)
        for name, value in {
            "above one": b"1.0000001",
            "way above": b"1.95",
            "below zero": b"-0.0001",
            "minus one": b"-1",
            "true": b"true",
            "string": b'"0.5"',
            "null": b"null",
            "list": b"[0.5]",
            "nan": b"NaN",
            "infinity": b"Infinity",
            "minus infinity": b"-Infinity",
            "overflow": b"1e999",
        }.items()
    },
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_bad_body_is_one_documented_error(name: str) -> None:
    """The whole reply is refused, and the error keeps none of it, not even as a cause."""
    with pytest.raises(DecisionAnswerError) as caught:
        read_reply(BAD_BODIES[name], ASKED)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "0.5" not in str(caught.value)


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, -0.0, 1e-320])
def test_the_ends_of_the_range_are_probabilities(value: float) -> None:
    """Both ends are legal, as are integers."""
    assert read_reply(reply(nouls(value)), ASKED).answers["call_t1"] == value


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
answer_like = st.fixed_dictionaries(
    {"type": st.sampled_from(["noul", "refusal", "choice"]) | json_values, "noul": json_values}
)
body_like = st.fixed_dictionaries(
    {
        "model": st.just("m") | json_values,
        "answers": st.dictionaries(st.sampled_from(ASKED), answer_like | json_values) | json_values,
        "usage": json_values,
    }
)


@given(st.binary() | body_like.map(lambda body: json.dumps(body).encode()))
def test_arbitrary_bytes_decode_or_raise_the_documented_error(body: bytes) -> None:
    """Whatever a server sends, a probability is a number in [0, 1] or there is an error."""
    try:
        got = read_reply(body, ASKED)
    except DecisionAnswerError:
        return
    assert set(got.answers) == set(ASKED)
    assert all(value is None or 0 <= value <= 1 for value in got.answers.values())
