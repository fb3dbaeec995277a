"""What the tests of the Jev client need of their surroundings: no variables, no network."""

from collections.abc import Iterator

import pytest
import respx

VARIABLES = (
    "DECISION_MODEL_API_KEY",
    "DECISION_MODEL_BASE_URL",
    "DECISION_MODEL_NAME",
    "TYPESAFE_API_KEY",
    "TYPESAFE_BASE_URL",
    "TYPESAFE_DEFAULT_MODEL",
)


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the machine that runs the suite decides a test."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def router() -> Iterator[respx.MockRouter]:
    """HTTP without a network."""
    with respx.mock(assert_all_called=False) as mock:
        yield mock
