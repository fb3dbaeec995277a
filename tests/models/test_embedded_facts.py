"""Each shape of history yields exactly its fact, and no shape a fact it does not have."""

from __future__ import annotations

import pytest

from agentscope_compaction.models.embedded import EmbeddedDecisionModel
from agentscope_compaction.models.embedded.structure import Fact
from tests.models.states import JSON, LOREM, PADDING, call, questions, state_of


def facts(state: JSON, key: str = "t1") -> list[str]:
    """The facts named for one call."""
    answers = EmbeddedDecisionModel().explain(state, questions(state))
    found: list[str] = answers[f"result_{key}"]["facts"]
    return found


STRUCTURE: list[tuple[str, JSON, Fact | None]] = [
    (
        "the same output held by a later call",
        state_of(call("Read", LOREM, file_path="/a/b.py"), call("Bash", LOREM, command="cat b.py")),
        Fact.EXACT_DUPLICATE,
    ),
    (
        "the same question asked again, answered differently",
        state_of(call("Bash", LOREM, command="ls"), call("Bash", LOREM + "!", command="ls")),
        Fact.SUPERSEDED_IDENTICAL,
    ),
    (
        "asked again, but the later answer is only a note that nothing changed",
        state_of(call("Bash", LOREM, command="ls"), call("Bash", "unchanged", command="ls")),
        None,
    ),
    (
        "asked again, in another spelling of the same JSON",
        {
            **state_of(call("Read", LOREM), call("Read", LOREM + "!")),
            "calls": {
                "t1": {**call("Find", LOREM), "input": '{"a":1,"b":2}'},
                "t2": {**call("Find", LOREM + "!"), "input": '{"b": 2, "a": 1}'},
            },
        },
        Fact.SUPERSEDED_IDENTICAL,
    ),
    (
        "shortened inputs that look alike are not the same input",
        {
            **state_of(),
            "calls": {
                "t1": {**call("Find", LOREM), "input": '{"a":"long…"}'},
                "t2": {**call("Find", LOREM + "!"), "input": '{"a":"long…"}'},
            },
        },
        None,
    ),
    (
        "a writing call repeated is two acts",
        state_of(call("send_mail", LOREM, to="x"), call("send_mail", LOREM + "!", to="x")),
        None,
    ),
    (
        "a range read again as part of the whole file",
        state_of(
            call("Read", LOREM[:900], file_path="/a/b.py", offset=1, limit=20),
            call("Read", LOREM, file_path="/a/b.py"),
        ),
        Fact.COVERED_BY_LATER_READ,
    ),
    (
        "another range of the same file covers nothing",
        state_of(
            call("Read", LOREM, file_path="/a/b.py", offset=1, limit=100),
            call("Read", LOREM + "!", file_path="/a/b.py", offset=101, limit=200),
        ),
        None,
    ),
    (
        "a file read, edited and read again",
        state_of(
            call("Read", LOREM, file_path="/a/b.py"),
            call("Edit", "ok", file_path="/a/b.py", old="x", new="y"),
            call("Read", LOREM + "!", file_path="/a/b.py", offset=0),
        ),
        Fact.STALE_READ_AFTER_EDIT,
    ),
    (
        "a file read and edited, but never read again, is still the only full copy",
        state_of(
            call("Read", LOREM, file_path="/a/b.py"),
            call("Edit", "ok", file_path="/a/b.py", old="x", new="y"),
        ),
        None,
    ),
    (
        "an old error after which the tool worked",
        state_of(call("grep", "Error: no such option", pattern="-z"), *PADDING),
        Fact.OLD_ERROR_UNREFERENCED,
    ),
    (
        "an error just now",
        state_of(*PADDING[:2], call("make", "", "error"))
        | {"calls": {"t1": call("make", "Traceback (most recent call last)", "error")}},
        Fact.RECENT_ERROR,
    ),
    (
        "an acknowledgement that says nothing new",
        state_of(call("Write", "File /a/b.py written", file_path="/a/b.py", content="x")),
        Fact.BARE_ACKNOWLEDGEMENT,
    ),
    (
        "a receipt with a new identifier",
        state_of(call("create_ticket", "created OPS-48213", title="disk full")),
        Fact.RECEIPT,
    ),
    (
        "what the user answered to a question",
        state_of(call("AskUserQuestion", "Use tabs, never spaces", question="tabs?")),
        Fact.USER_ANSWER,
    ),
    (
        "an old list of tasks",
        state_of(call("TodoWrite", "1. look", todos=[]), call("TodoWrite", "1. done", todos=[1])),
        Fact.SUPERSEDED_PLAN,
    ),
    (
        "a line the user quotes",
        state_of(
            call("Bash", "starting up now\nport=8443 chosen for listener\nready", command="log"),
            texts=[{"role": "user", "text": "why is it:\n> port=8443 chosen for listener"}],
        ),
        Fact.QUOTED_BY_USER,
    ),
    (
        "a number the user repeats",
        state_of(
            call("grep", "port=8443", pattern="port"),
            texts=[{"role": "user", "text": "use 8443"}],
        ),
        Fact.QUOTED_BY_USER,
    ),
    ("an unfinished call", state_of(call("Bash", "", "running", command="x")), Fact.UNFINISHED),
    (
        "an output that is not shown",
        state_of({"tool": "Read", "input": "{}", "state": "success", "output_chars": 900}),
        Fact.OUTPUT_NOT_SHOWN,
    ),
]


@pytest.mark.parametrize(
    ("state", "fact"), [s[1:] for s in STRUCTURE], ids=[s[0] for s in STRUCTURE]
)
def test_structural_facts(state: JSON, fact: Fact | None) -> None:
    """Each shape of history yields exactly its fact, and no shape a fact it does not have."""
    assert facts(state)[:1] == ([fact] if fact else [])
