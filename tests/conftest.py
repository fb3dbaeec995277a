"""Fixtures of all tests."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The package is asyncio only, as AgentScope is."""
    return "asyncio"
