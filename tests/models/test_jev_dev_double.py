"""The client against a second, independent server with limits of its own."""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentscope_compaction.errors import DecisionHTTPError
from tests.models.jev_calls import ask_server, pairs

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def dev_double() -> Iterator[str]:
    """``dev-double serve --engine mock`` on a free port; ended with the module."""
    command = shutil.which("dev-double", path=str(Path(sys.executable).parent))
    if command is None:
        pytest.skip("dev-double is not installed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [command, "serve", "--engine", "mock", "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _await_port(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def _await_port(process: subprocess.Popen[bytes], port: int) -> None:
    limit = time.monotonic() + 30
    while time.monotonic() < limit and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("dev-double did not start")


async def test_dev_double_answers_its_limit(dev_double: str) -> None:
    """64 questions at once are the portable maximum."""
    response = await ask_server(dev_double, 32, api_key="")
    assert list(response.content) == list(pairs(32))
    assert response.metadata["requests"] == 1


async def test_dev_double_refuses_one_pair_more_unless_split(dev_double: str) -> None:
    """Its flat error shape is read, and the limit can be configured."""
    with pytest.raises(DecisionHTTPError) as caught:
        await ask_server(dev_double, 33)
    assert caught.value.status == 400
    assert "64" in str(caught.value)
    response = await ask_server(dev_double, 33, max_questions=64)
    assert set(response.content) == set(pairs(33))
    assert response.metadata["requests"] == 2


async def test_dev_double_refuses_a_large_body(dev_double: str) -> None:
    """413 is not retried, and its words reach the caller."""
    with pytest.raises(DecisionHTTPError) as caught:
        await ask_server(dev_double, 1, state={"goal": "x" * 70_000})
    assert caught.value.status == 413
    assert "64 KiB" in str(caught.value)
    assert "xxx" not in str(caught.value)
