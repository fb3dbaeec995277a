"""Await a step that awaits others' code, for a bounded time, whatever that code does.

``asyncio.timeout`` only asks. A model or archive that catches the cancellation, or finishes what it
began on a server that is gone, goes on, and the reply would wait with it. So a step is a task of
its own: one that does not end when it is asked is left behind, and may change nothing any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

__all__ = ["bounded", "stops_asked"]

GRACE = 1.0
"""Seconds a step has to end once it was asked to."""
_running: set[asyncio.Task[None]] = set()
"""The steps not yet ended; the event loop itself holds tasks weakly."""


async def bounded(
    step: Coroutine[Any, Any, None], seconds: float, ended: Callable[[], object] = lambda: None
) -> BaseException | None:
    """Await a step for so many seconds; then ask it to end, and leave it behind if it does not.

    Args:
        step: What is done.
        seconds: Its time; ``GRACE`` seconds may be added.
        ended: Called when the step has ended, be it after it was left behind.

    Returns:
        Why the step ended early (``CancelledError`` where something inside it was cancelled);
        None = it did not.

    Raises:
        asyncio.CancelledError: The caller itself is being cancelled; so was the step.
    """
    task = asyncio.ensure_future(step)
    _running.add(task)
    task.add_done_callback(lambda done: _ended(done, ended))
    late = True
    try:
        await asyncio.wait({task}, timeout=seconds)
        late = not task.done()
    finally:
        await _end(task)
    if late and (not task.done() or task.cancelled()):
        return TimeoutError()
    return asyncio.CancelledError() if task.cancelled() else task.exception()


def stops_asked() -> int:
    """How often the running task was asked to stop; only a rise of it is news.

    Whoever catches a cancellation, as AgentScope does at an interruption, seldom takes it back.
    """
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0


async def _end(task: asyncio.Task[None]) -> None:
    """Ask a task to end, and wait a little, even if we are asked the same meanwhile."""
    clock = asyncio.get_running_loop().time
    until, interrupted = clock() + GRACE, False
    if not task.done():
        task.cancel()
    while not task.done() and (left := until - clock()) > 0:
        try:
            await asyncio.wait({task}, timeout=left)
        except asyncio.CancelledError:  # anyio repeats it until its scope is left
            interrupted = True
    if interrupted:
        raise asyncio.CancelledError


def _ended(task: asyncio.Task[None], ended: Callable[[], object]) -> None:
    _running.discard(task)
    if not task.cancelled():
        task.exception()  # looked at, so that it is not reported as lost
    ended()
