"""Fixtures for the whole suite."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Agents and their clients run on asyncio."""
    return "asyncio"
