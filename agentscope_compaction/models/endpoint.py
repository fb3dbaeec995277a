"""Where requests may go and with which credentials; refuses what could leak, before first use.

Pure: nothing here imports an HTTP library or opens anything. Hosts are matched against a narrow
pattern, so that no second URL parser can read a different host out of the same text.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping

from pydantic import SecretStr

from agentscope_compaction.errors import ConfigurationError
from agentscope_compaction.redaction import redact_secrets

__all__ = [
    "check_headers",
    "check_key",
    "host_of",
    "is_loopback",
    "require_key",
    "resolve_endpoint",
    "text_of",
]

_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_URL = re.compile(
    rf"(?P<scheme>https?)://(?P<host>{_LABEL}(?:\.{_LABEL}){{0,20}}|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<path>/[!-\[\]-~]*)?",
    re.IGNORECASE,
)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CREDENTIAL_HEADERS = frozenset({"authorization", "x-api-key", "api-key"})


def resolve_endpoint(base_url: str, endpoint: str | None) -> str:
    """Return the URL to post to; ``endpoint`` wins and is used as it is.

    ``base_url`` may end in a slash, in ``/v1`` or in the full path ``/v1/systemone``.

    Raises:
        ConfigurationError: Not an absolute http(s) URL, plain http to another machine, user
            information, a fragment, or what looks like a secret inside the URL.
    """
    if endpoint is not None:
        return _check_url(text_of(endpoint))
    base = _check_url(text_of(base_url)).rstrip("/")
    if "?" in base:
        raise ConfigurationError("base_url has a query; pass the full URL as endpoint")
    if base.endswith("/v1/systemone"):
        return base
    return f"{base}/systemone" if base.endswith("/v1") else f"{base}/v1/systemone"


def host_of(url: str) -> str:
    """Return the lower-case host of a checked URL, IPv6 in brackets."""
    match = _URL.match(url)
    return match["host"].lower() if match else ""


def is_loopback(host: str) -> bool:
    """Whether the host names this machine: ``localhost``, 127.0.0.0/8 or ``::1``."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_key(key: SecretStr | str | None) -> SecretStr | None:
    """Return the key stripped, None for a blank one.

    Raises:
        ConfigurationError: Anything but printable ASCII without spaces (it would break out of
            its header, or never authenticate).
    """
    plain = text_of(key.get_secret_value() if isinstance(key, SecretStr) else key or "")
    if not plain:
        return None
    if not plain.isascii() or not plain.isprintable() or " " in plain:
        raise ConfigurationError("the API key must be printable ASCII without spaces")
    return SecretStr(plain)


def check_headers(headers: Mapping[str, str] | None) -> dict[str, SecretStr]:
    """Return extra headers with their values hidden; they often carry a gateway's key.

    Raises:
        ConfigurationError: No mapping, or a name or value that is not a legal header.
    """
    if headers is not None and not isinstance(headers, Mapping):
        raise ConfigurationError("headers must map names to values")
    checked: dict[str, SecretStr] = {}
    for name, value in (headers or {}).items():
        if name != text_of(name) or not _HEADER_NAME.fullmatch(name):
            raise ConfigurationError("a header name is not legal")
        if value != text_of(value) or not value.isascii() or not value.isprintable():
            raise ConfigurationError(f"the value of header {name!r} must be printable ASCII")
        checked[name.lower()] = SecretStr(value)
    return checked


def require_key(url: str, key: SecretStr | None, headers: Mapping[str, SecretStr]) -> None:
    """Refuse to ask another machine without any credential.

    Raises:
        ConfigurationError: No key, and no header that carries one, for a non-loopback host.
    """
    if key is None and not is_loopback(host_of(url)) and not _CREDENTIAL_HEADERS & set(headers):
        raise ConfigurationError(
            "no API key: pass api_key or set DECISION_MODEL_API_KEY (or TYPESAFE_API_KEY)"
        )


def text_of(value: object) -> str:
    """Return a setting stripped.

    Raises:
        ConfigurationError: It is no text; what it is instead is not shown, it may be a secret.
    """
    if not isinstance(value, str):
        raise ConfigurationError("URLs, keys, headers and names must be text")
    return value.strip()


def _check_url(url: str) -> str:
    match = _URL.fullmatch(url)
    if match is None or "#" in url:
        raise ConfigurationError(
            "the URL must be absolute http(s) in ASCII, without user information or fragment"
        )
    if match["host"].startswith("[") and not _is_address(match["host"]):
        raise ConfigurationError("the address in the URL is not valid")
    if match["port"] and not 0 < int(match["port"]) < 65536:
        raise ConfigurationError("the port of the URL is out of range")
    if match["scheme"].lower() == "http" and not is_loopback(match["host"]):
        raise ConfigurationError("the URL must use https, except for a loopback address")
    if redact_secrets(url) != url:
        raise ConfigurationError("the URL holds a secret; pass it as api_key or in headers")
    return url


def _is_address(host: str) -> bool:
    try:
        ipaddress.IPv6Address(host.strip("[]"))
    except ValueError:
        return False
    return True
