"""Where a key may be sent, and which keys and headers are legal."""

import pytest
from pydantic import SecretStr

from agentscope_compaction.errors import CompactionError, ConfigurationError
from agentscope_compaction.models.endpoint import (
    check_headers,
    check_key,
    is_loopback,
    require_key,
    resolve_endpoint,
)


@pytest.mark.parametrize(
    ("base", "endpoint"),
    [
        ("https://api.typesafe.ai", "https://api.typesafe.ai/v1/systemone"),
        ("https://api.typesafe.ai/", "https://api.typesafe.ai/v1/systemone"),
        (" https://host/v1 ", "https://host/v1/systemone"),
        ("https://host/v1/systemone/", "https://host/v1/systemone"),
        ("https://host:8443/gate/way", "https://host:8443/gate/way/v1/systemone"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1/systemone"),
        ("HTTP://LOCALHOST", "HTTP://LOCALHOST/v1/systemone"),
        ("http://[::1]:1", "http://[::1]:1/v1/systemone"),
        ("https://[2001:db8::1]", "https://[2001:db8::1]/v1/systemone"),
        ("https://my_service.internal", "https://my_service.internal/v1/systemone"),
    ],
)
def test_the_endpoint_of_a_base_url(base: str, endpoint: str) -> None:
    """A base may already end in the version or in the whole path."""
    assert resolve_endpoint(base, None) == endpoint


def test_a_full_endpoint_wins_and_stays_as_it_is() -> None:
    """Gateways have other paths."""
    url = "https://gateway.example/api/alpha/decisions?version=2"
    assert resolve_endpoint("https://elsewhere", url) == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "api.typesafe.ai",
        "//host",
        "ftp://host",
        "file:///etc/hosts",
        "https://",
        "https:///path",
        "http://api.typesafe.ai",
        "http://10.0.0.1",
        "http://0.0.0.0",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example",
        "http://127.1",
        "http://2130706433",
        "http://127.0.0.1@evil.example",
        "http://127.0.0.1\\@evil.example",
        "http://127.0.0.1#@evil.example",
        "http://127.0.0.1%2eevil.example",
        "https://user:fake@host",
        "https://user@host",
        "https://host#part",
        "https://host/a#part",
        "https://host:0",
        "https://host:65536",
        "https://host:port",
        "https://ho st",
        "https://host\n.example",
        "https://hôst",
        "https://a..b",
        "https://-host",
        "https://" + "a" * 64,
        "https://[::1",
        "https://[1:2]",
        "https://[127.0.0.1]x",
        "http://[127.0.0.1]",
        "https://host/?api_key=fake",
        "https://host/sk-test-fake1fake2fake3",
        "https://host/v1?x=1",
    ],
)
def test_a_url_that_cannot_work_or_leaks_is_refused(url: str) -> None:
    """Refused at construction, as a configuration error that is also a ``ValueError``."""
    with pytest.raises(ConfigurationError) as caught:
        resolve_endpoint(url, None)
    assert isinstance(caught.value, CompactionError)
    assert isinstance(caught.value, ValueError)
    assert "fake" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("[::1]", True),
        ("example.com", False),
        ("0.0.0.0", False),
        ("192.168.0.1", False),
        ("[::]", False),
        ("", False),
    ],
)
def test_loopback(host: str, loopback: bool) -> None:
    """Only this machine's own addresses."""
    assert is_loopback(host) is loopback


@pytest.mark.parametrize("key", ["a b", "a\nb", "\x00", "ключ", "a\u200b"])
def test_a_malformed_key_is_refused_without_showing_it(key: str) -> None:
    """Such a key would break out of its header or never authenticate."""
    with pytest.raises(ConfigurationError) as caught:
        check_key(key)
    assert key not in str(caught.value)


@pytest.mark.parametrize("key", [" sk-test-1\n", SecretStr("sk-test-1")])
def test_a_key_is_stripped_and_hidden(key: str | SecretStr) -> None:
    """Keys are often pasted with a newline."""
    checked = check_key(key)
    assert checked is not None
    assert checked.get_secret_value() == "sk-test-1"
    assert "sk-test-1" not in repr(checked)


@pytest.mark.parametrize("key", [None, "", "  ", SecretStr("")])
def test_a_blank_key_is_none(key: str | SecretStr | None) -> None:
    """An empty variable means no key."""
    assert check_key(key) is None


@pytest.mark.parametrize("headers", [{"a b": "c"}, {"": "c"}, {"a": "b\r\nc: d"}, {"a": "é"}])
def test_illegal_headers_are_refused(headers: dict[str, str]) -> None:
    """A header must not smuggle in another."""
    with pytest.raises(ConfigurationError):
        check_headers(headers)


def test_another_machine_needs_a_credential() -> None:
    """A key, or a header that carries one; loopback needs none."""
    require_key("http://127.0.0.1/", None, {})
    require_key("https://host/", SecretStr("k"), {})
    require_key("https://host/", None, check_headers({"X-API-Key": "k"}))
    with pytest.raises(ConfigurationError, match="DECISION_MODEL_API_KEY"):
        require_key("https://host/", None, check_headers({"x-title": "t"}))
