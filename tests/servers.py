"""Decision services on loopback: the reference mock, and one that answers from a script."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from jevcompat.mock import MockConfig  # type: ignore[import-untyped]
from jevcompat.mock import Running as ReferenceServer

__all__ = ["MockConfig", "Running", "script_server"]

Script = Callable[[str, dict[str, Any]], float | None]
"""From question id and state to a probability, or None for a refusal."""


class Running(ReferenceServer):  # type: ignore[misc]
    """The reference server, noticing at once that it should end."""

    def __init__(self, config: MockConfig | None = None) -> None:
        super().__init__(config)
        serve = self.server.serve_forever
        self.thread = threading.Thread(target=serve, args=(0.005,), daemon=True)


@contextmanager
def script_server(
    script: Script, model: str = "jev-1.13.0"
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve answers from a function of (question id, state); yields its URL and the requests.

    Understands System One, and OpenAI's Decisions at ``/v1/decisions``.
    """
    seen: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append(body)
            decide = _decisions if self.path.endswith("/decisions") else _nouls
            reply = {"model": model, **decide(script, body)}
            data = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _nouls(script: Script, body: dict[str, Any]) -> dict[str, Any]:
    answers = {name: _answer(script(name, body["state"])) for name in body["questions"]}
    return {"answers": answers, "usage": {"input_tokens": 1_000, "output_tokens": len(answers)}}


def _decisions(script: Script, body: dict[str, Any]) -> dict[str, Any]:
    state, answers = json.loads(body["input"]), []
    for question in body["questions"]:
        value = script(question["name"], state)
        kind = {"type": "refusal"} if value is None else {"type": "predicate", "probability": value}
        answers.append({"name": question["name"], **kind})
    details = {"cached_tokens": 0, "reasoning_tokens": 0}
    counts = {"input_tokens": 1_000, "output_tokens": len(answers), "total_tokens": 1_000}
    usage = {**counts, "input_tokens_details": details, "output_tokens_details": details}
    return {"id": "dec_1", "object": "decision", "answers": answers, "usage": usage}


def _answer(probability: float | None) -> dict[str, Any]:
    return {"type": "refusal"} if probability is None else {"type": "noul", "noul": probability}
