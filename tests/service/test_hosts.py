"""Under which names the service answers: its own, so that no web page can ask it under others."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from agentscope_compaction import ConfigurationError, service
from agentscope_compaction.service import create_app, server
from agentscope_compaction.service.hosts import allowed, check_hosts
from agentscope_compaction.testing import ScriptedDecisionModel
from tests.service.conftest import Start, error_of

OWN = [
    *("localhost", "LOCALHOST", "localhost.", "localhost:8080", "127.0.0.1", "127.0.0.1:80"),
    *("127.9.9.9:1", "[::1]", "[::1]:8080", "[0:0:0:0:0:0:0:1]:8080", " localhost "),
]
FOREIGN = [
    *("evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example"),
    *("evil.localhost", "0.0.0.0", "[::]", "192.0.2.1", "", ":8080", "[::1", "localhost:x", "::1"),
    *("a@localhost", "localhost/", "localhost evil.example", "localhost,evil.example", "[evil]"),
    *("ｌocalhost", "*"),
]


@pytest.mark.parametrize("header", OWN)
def test_loopback_names_pass(header: str) -> None:
    """Every name and address of the loopback is the service's own, with and without port."""
    assert allowed(header, check_hosts([]))


@pytest.mark.parametrize("header", FOREIGN)
def test_foreign_names_do_not(header: str) -> None:
    """No other name is, nor what only looks like one of the loopback."""
    assert not allowed(header, check_hosts([]))


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("compaction.example", "Compaction.Example:443"),
        ("compaction.example.", "compaction.example"),
        ("192.0.2.1", "192.0.2.1:8080"),
        ("2001:db8::1", "[2001:DB8:0::1]:8080"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("*", "anything at all"),
    ],
)
def test_named_hosts_pass(name: str, header: str) -> None:
    """A name or address that is allowed passes however it is spelled, and loopback with it."""
    names = check_hosts([name])
    assert allowed(header, names) and allowed("localhost", names)
    assert name == "*" or not allowed("evil.example", names)


@pytest.mark.parametrize(
    "names", ["localhost", [""], ["http://x"], ["x:80"], ["[::1]:80"], ["a/b"], [5], ["a b"]]
)
def test_impossible_names(names: Any) -> None:
    """What is no name is refused before anything listens."""
    with pytest.raises(ConfigurationError):
        create_app(ScriptedDecisionModel(), allowed_hosts=names)


def test_a_foreign_host_is_421(start: Start, snapshot: dict[str, Any]) -> None:
    """Under a foreign name nothing is answered, on no path; under its own everything is."""
    client = start(allowed_hosts=[])
    assert client.post("/compact_context", json=snapshot).status_code == 200
    for path, method in (("/compact_context", "POST"), ("/health", "GET"), ("/nix", "GET")):
        answer = client.request(method, path, headers={"Host": "evil.example"})
        assert error_of(answer) == (421, "ForeignHost")
    schema = client.get("/openapi.json").json()
    assert "421" in schema["paths"]["/compact_context"]["post"]["responses"]


def test_an_application_of_ones_own_has_any_name(start: Start) -> None:
    """Whoever runs the application behind a server of theirs decides there."""
    client = start()
    assert client.get("/health", headers={"Host": "any.example"}).status_code == 200
    schema = client.get("/openapi.json").json()
    assert "421" not in schema["paths"]["/compact_context"]["post"]["responses"]


@pytest.mark.parametrize(
    ("host", "given", "used"),
    [
        ("127.0.0.1", None, ()),
        ("localhost", None, ()),
        ("::1", ["compaction.example"], ["compaction.example"]),
        ("0.0.0.0", None, None),
        ("0.0.0.0", ["compaction.example"], ["compaction.example"]),
    ],
)
def test_loopback_is_guarded_by_default(
    host: str, given: Any, used: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``serve`` on loopback allows loopback names; elsewhere only what it is told."""
    asked: dict[str, Any] = {}
    application = create_app(ScriptedDecisionModel())
    monkeypatch.setattr(service, "create_app", lambda _, **kw: asked.update(kw) or application)
    monkeypatch.setattr(server, "run", lambda *args, **kw: None)
    service.serve(host, 0, allowed_hosts=given)
    assert asked["allowed_hosts"] == used
    assert inspect.signature(create_app).parameters.keys() >= asked.keys()
