"""Shared fixtures: async tests run on asyncio, the loop AgentScope itself runs on."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The one event loop the package supports."""
    return "asyncio"
