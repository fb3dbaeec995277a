"""Many at once, clients that leave, and the end of the service."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from agentscope_compaction import ConfigurationError
from agentscope_compaction.service import create_app, server
from agentscope_compaction.testing import ScriptedDecisionModel
from tests.service.conftest import Start


class Gate:
    """A model that answers once it is let."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.open = threading.Event()
        self.cancelled = threading.Event()
        self.closed = threading.Event()
        self._inner = ScriptedDecisionModel()

    async def __call__(self, state: dict[str, Any], questions: Any) -> Any:
        """Wait, then answer."""
        self.entered.release()
        try:
            while not self.open.is_set():
                await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return await self._inner(state, questions)

    async def aclose(self) -> None:
        """Note the end."""
        self.closed.set()


def test_one_too_many_is_503(start: Start, snapshot: dict[str, Any]) -> None:
    """Beyond the limit a request is refused at once, and taken again once a place is free."""
    gate = Gate()
    client = start(gate, max_concurrent=2)
    with ThreadPoolExecutor(2) as pool:
        held = [pool.submit(client.post, "/compact_context", json=snapshot) for _ in range(2)]
        for _ in held:
            assert gate.entered.acquire(timeout=20)
        refused = client.post("/compact_context", json=snapshot)
        assert client.get("/health").status_code == 200
        gate.open.set()
        assert [future.result().status_code for future in held] == [200, 200]
    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "1"
    assert refused.json()["error"]["type"] == "Busy"
    assert client.post("/compact_context", json=snapshot).status_code == 200


def test_leaving_client_ends_the_work(start: Start, snapshot: dict[str, Any]) -> None:
    """When the client hangs up, the model is not asked in vain and the place is free."""
    gate = Gate()
    client = start(gate, max_concurrent=1)
    with pytest.raises(httpx.ReadTimeout):
        client.post("/compact_context", json=snapshot, timeout=httpx.Timeout(20, read=0.3))
    assert gate.cancelled.wait(20)
    gate.open.set()
    deadline = threading.Event()
    for _ in range(200):
        if client.post("/compact_context", json=snapshot).status_code == 200:
            break
        deadline.wait(0.05)
    else:
        pytest.fail("the place was not given back")


def test_shutdown_answers_first_and_closes_the_model(snapshot: dict[str, Any]) -> None:
    """A request in flight at shutdown is answered; then a model that we own is closed."""
    from tests.service.conftest import running

    gate = Gate()
    with ThreadPoolExecutor(1) as pool:
        with running(gate, close_model=True) as address:
            held = pool.submit(
                httpx.post, f"{address}/compact_context", json=snapshot, trust_env=False
            )
            assert gate.entered.acquire(timeout=20)
            threading.Timer(0.2, gate.open.set).start()
        assert held.result().status_code == 200
    assert gate.closed.is_set()


def test_a_given_model_stays_open(snapshot: dict[str, Any]) -> None:
    """A model that the caller opened is not closed."""
    from tests.service.conftest import running

    gate = Gate()
    with running(gate) as address:
        httpx.get(f"{address}/health", trust_env=False)
    assert not gate.closed.is_set()


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.0.2.1", False),
        ("example.com", False),
        ("localhost.example.com", False),
    ],
)
def test_loopback(host: str, loopback: bool) -> None:
    """Only addresses that no other machine can reach count as loopback."""
    assert server.is_loopback(host) is loopback


@pytest.mark.parametrize("token", [None, "secret"])
def test_open_address_warns(
    token: str | None, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listening for other machines is announced loudly, more so without a token."""
    from agentscope_compaction import service

    with (
        server.listen("127.0.0.1", 0) as taken,
        caplog.at_level(logging.WARNING, "agentscope_compaction"),
        pytest.raises(OSError),
    ):
        service.serve("0.0.0.0", taken.getsockname()[1], token=token)
    assert "NOT ON LOOPBACK" in caplog.text
    assert ("WITHOUT A TOKEN" in caplog.text) is (token is None)


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without FastAPI the error names the extra."""
    for name in [n for n in sys.modules if n.partition(".")[0] in {"fastapi"}]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "agentscope_compaction.service.app", raising=False)
    monkeypatch.delitem(sys.modules, "agentscope_compaction.service.openapi", raising=False)

    class Refuse:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name.partition(".")[0] == "fastapi":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(sys, "meta_path", [Refuse(), *sys.meta_path])
    with pytest.raises(ConfigurationError, match=r"agentscope-compaction\[service\]"):
        create_app()


def test_import_does_not_load_fastapi() -> None:
    """The package and its service module start without FastAPI."""
    code = (
        "import sys, agentscope_compaction.service, agentscope_compaction.cli.serve\n"
        "sys.exit(any(n in sys.modules for n in ('fastapi', 'uvicorn')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def _command(*options: str, **env: str) -> subprocess.Popen[str]:
    code = "from agentscope_compaction.cli.serve import serve_app; serve_app()"
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("DECISION_", "TYPESAFE_"))}
    return subprocess.Popen(
        [sys.executable, "-c", code, *options],
        env={**clean, **env},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_command_serves_and_ends(snapshot: dict[str, Any]) -> None:
    """The command serves on a free port with a token, and ends in order when interrupted."""
    with _command("--port", "0", "--token-env", "MY_TOKEN", MY_TOKEN="s3cret") as process:
        watchdog = threading.Timer(60, process.kill)
        watchdog.daemon = True
        watchdog.start()
        assert process.stderr is not None
        address = ""
        for line in process.stderr:
            if "http://127.0.0.1:" in line:
                address = "http://127.0.0.1:" + line.rpartition(":")[2].split()[0]
            if "startup complete" in line:
                break
        if not address:
            process.kill()
        headers = {"Authorization": "Bearer s3cret"}
        url = f"{address}/compact_context"
        assert httpx.post(url, json=snapshot, trust_env=False).status_code == 401
        answer = httpx.post(url, json=snapshot, headers=headers, trust_env=False)
        assert json.loads(answer.content)["success"] is True
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(20) == 0
        watchdog.cancel()
    assert "Traceback" not in rest


def test_command_without_its_token() -> None:
    """A token variable that is not set does not open the service to all."""
    service_command = importlib.import_module("agentscope_compaction.cli.serve")
    with pytest.raises(ConfigurationError, match="NO_SUCH_TOKEN"):
        service_command.serve(token_env="NO_SUCH_TOKEN")
