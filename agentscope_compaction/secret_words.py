"""Which names announce a secret, and which values are none.

Data for ``redaction``. Every pattern is bounded or possessive, so a search is linear in its text.
"""

from __future__ import annotations

import re
from functools import lru_cache

from agentscope_compaction.secret_formats import holds_any

__all__ = [
    "is_expression",
    "is_harmless",
    "looks_random",
    "may_name",
    "strength",
]

_STRONG = re.compile(
    r"(?:password|passwd|passphrase|passcode|apikey)[0-9]{0,3}\Z"
    r"|(?:\A|_)(?:"
    r"(?:proxy_)?authorization|(?:x_)?(?:api|auth|functions)_?key|set_cookie|cookie"
    r"|(?:secret|private|signing|encryption|access|account|master|service|shared|license|ssh"
    r"|admin|webhook|deploy|hmac|subscription|storage)_?(?:access_?)?key(?:_id|_base)?"
    r"|(?:access|refresh|auth|bearer|id|session|api|security|private|personal|csrf|xsrf|deploy|bot"
    r"|oauth|sas|service|github|gitlab|slack|npm|hf|vault|jwt|identity|registry|push|user|device)"
    r"_?token|[a-z0-9]{1,40}_secret|clientsecret|pass_?wort|pwd|pw|jsessionid|phpsessid"
    r"|amz_signature|goog_signature|credential_string|_auth"
    r")[0-9]{0,3}\Z"
)
_WEAK = re.compile(
    r"(?:\A|_)(?:token|secret|credentials?|auth|sig|signature|pass|jwt|bearer|sas|nonce"
    r"|secret_value|secret_string)[0-9]{0,3}\Z"
)
_NOT_SECRET = re.compile(
    r"(?:\A|_)(?:next|page|continuation|sync|pad|eos|bos|unk|mask|sep|cls|special|start|end|stop"
    r"|first|last|image|video|audio|media|is|has|no|use|show|reset|forgot|public)_"
    r"(?:[a-z]{1,20}_)?(?:token|password|secret|signature|cookie|auth)\Z"
)
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PUNCTUATION = re.compile(r"[-.\s_]+")

_HARMLESS = re.compile(
    r"(?:none|null|nil|undefined|true|false|yes|no|on|off|str|string|bytes?|int|integer|bool|boolean"
    r"|any|async|await|function|lambda|object|number|unknown|void|required|optional"
    r"|secretstr|secret_str|text|varchar|char"
    r"|redacted|\[redacted\]|masked|hidden|empty|missing|invalid|\.{2,}|\*+|x{3,}|-+|…+|•+)\Z"
    r"|\$|%[({]|%s|\{|<|\[redacted\]|\[[A-Z]{2,8}\]",
    re.IGNORECASE,
)
_LOOKUPS = ("process.env", "os.environ", "os.getenv", "import.meta", "self.", "this.", "env.")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*\Z")
_PATH = re.compile(r"[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*)+\Z")
_SECRET_WORDS = ("password", "passwd", "token", "secret", "key", "credential", "cookie", "auth")


_TELLING = (
    *("pass", "key", "auth", "cookie", "token", "secret", "pwd", "pw", "sessionid", "sessid"),
    *("sig", "credential", "jwt", "bearer", "sas", "nonce"),
)
"""Every name that ``strength`` knows holds one of these, and every English word for a secret."""


def may_name(text: str) -> bool:
    """Whether a telling name can be in the text; most texts are ruled out at little cost."""
    return holds_any(text.lower(), _TELLING)


@lru_cache(maxsize=4096)
def strength(name: str) -> int:
    """How surely a value under this name is a secret: 2 always, 1 if it looks random, 0 never."""
    if name in ("PWD", "OLDPWD"):  # the working directory of a shell
        return 0
    snake = _PUNCTUATION.sub("_", _HUMPS.sub("_", name)).lower().rstrip("_")
    if _NOT_SECRET.search(snake):
        return 0
    if _STRONG.search(snake):
        return 2
    return 1 if _WEAK.search(snake) or _STRONG.search(snake.removesuffix("s")) else 0


def is_harmless(value: str) -> bool:
    """Whether a value is a placeholder, a type, a flag or a reference to somewhere else."""
    return not value or bool(_HARMLESS.match(value)) or value.startswith(_LOOKUPS)


def is_expression(value: str, following: str) -> bool:
    """Whether an unquoted value is code (a call, an attribute, another variable), not a literal."""
    if following in ("(", "["):
        return bool(_IDENTIFIER.match(value) or _PATH.match(value))
    if _PATH.match(value) and not any(character.isdigit() for character in value):
        return True
    lowered = value.lower()
    return bool(_IDENTIFIER.match(value)) and (
        lowered in _SECRET_WORDS
        or ("_" in value and not any(c.isdigit() for c in value) and _ends_in_word(lowered))
    )


def _ends_in_word(lowered: str) -> bool:
    return any(f"_{word}" in lowered or f"{word}_" in lowered for word in _SECRET_WORDS)


def looks_random(value: str) -> bool:
    """Whether a value could be a generated secret: one word of 8 or more, with mixed characters."""
    if len(value) < 8 or any(c.isspace() for c in value):
        return False
    kinds = (
        any(c.isdigit() for c in value),
        any(c.isupper() for c in value),
        any(c.islower() for c in value),
        any(not c.isalnum() for c in value),
    )
    return kinds[0] and sum(kinds) >= 2
