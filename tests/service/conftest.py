"""A real server on a loopback port, and requests to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from agentscope_compaction.service import create_app
from agentscope_compaction.service.failures import ErrorType
from agentscope_compaction.service.server import listen, server_for
from agentscope_compaction.testing import HistoryBuilder, ScriptedDecisionModel

Start = Callable[..., httpx.Client]


@contextmanager
def running(model: Any, **settings: Any) -> Iterator[str]:
    """Serve in a thread until the block ends; yield the address."""
    with listen("127.0.0.1", 0) as listener:
        server = server_for(create_app(model, **settings), grace_seconds=5)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive(), "the server did not shut down"


def error_of(response: httpx.Response) -> tuple[int, str]:
    """Return status and type of a refusal, which must have the documented form."""
    body = response.json()
    assert body["success"] is False
    assert set(body["error"]) == {"type", "message"}
    assert ErrorType(body["error"]["type"])
    assert body["error"]["message"]
    return response.status_code, str(body["error"]["type"])


@pytest.fixture
def start() -> Iterator[Start]:
    """Start servers, each with a client; all end with the test."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def begin(model: Any = None, **settings: Any) -> httpx.Client:
            address = stack.enter_context(running(model or ScriptedDecisionModel(), **settings))
            return stack.enter_context(httpx.Client(base_url=address, timeout=30, trust_env=False))

        yield begin


@pytest.fixture
def snapshot() -> dict[str, Any]:
    """A request of three messages in the shape ReMe's users send, with one call to judge."""
    history = HistoryBuilder().user("Find the retry bug.")
    history.call("Read", {"file_path": "app/retry.py"}, "def retry():\n" + "    pass\n" * 200, "c1")
    history.user("Now fix it.")
    return {
        "goal": "fix the retry bug",
        "eligible_tool_names": ["Read"],
        "options": {"keep_threshold": 0.5, "preserve_recent_messages": 1},
        "messages": history.messages,
    }
