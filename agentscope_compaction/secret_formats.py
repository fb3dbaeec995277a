"""What secrets look like: names that announce one, formats that are one, values that are none.

Data for ``redaction``. Every pattern is bounded or possessive, so a search is linear in its text.
Formats are the issuers' published prefixes (those that secret scanners look for).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

__all__ = [
    "COMMAND",
    "COMMANDS",
    "FORMATS",
    "INFIXED",
    "INFIXES",
    "PLACED",
    "PLACES",
    "PROSE",
    "REDACTED",
    "holds_any",
    "is_expression",
    "is_harmless",
    "looks_random",
    "may_have_format",
    "may_name",
    "strength",
]

REDACTED = "[redacted]"
"""What stands in for a secret."""

_FORMAT_LIST = (
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",  # AWS access key id
    r"gh[opsru]_[A-Za-z0-9]{30,255}+",  # GitHub
    r"github_pat_[A-Za-z0-9_]{36,255}+",
    r"gl(?:pat|dt|rt|cbt|ptt|ft|oas|soat|agent|imt)-[A-Za-z0-9_.-]{16,255}+",  # GitLab
    r"xox[abceoprs](?:-[A-Za-z0-9]{1,255}+){2,8}+",  # Slack
    r"xapp-[0-9]-[A-Za-z0-9-]{10,255}+",
    # OpenAI, Anthropic, OpenRouter; the digit excludes CSS class names such as sk-fading-circle
    r"sk-(?=[A-Za-z_-]{0,64}[0-9])[A-Za-z0-9_-]{16,255}+",
    *(kind + r"k_(?:org_)?(?:live|test|sbox)_[A-Za-z0-9]{10,255}+" for kind in "spr"),  # Stripe
    r"whsec_[A-Za-z0-9+/=]{16,255}+",
    r"AIza[A-Za-z0-9_-]{30,255}+",  # Google
    r"ya29\.[A-Za-z0-9_.-]{20,512}+",
    r"GOCSPX-[A-Za-z0-9_-]{20,255}+",
    r"eyJ[A-Za-z0-9_-]{6,4096}+\.[A-Za-z0-9_-]{6,8192}+\.[A-Za-z0-9_-]{0,4096}+",  # JWT
    r"hf_[A-Za-z0-9]{24,255}+",  # Hugging Face
    r"npm_[A-Za-z0-9]{30,255}+",
    r"pypi-[A-Za-z0-9_-]{32,512}+",
    r"dop_v1_[a-f0-9]{40,255}+",  # DigitalOcean
    r"SG\.[A-Za-z0-9_-]{16,255}+\.[A-Za-z0-9_-]{16,255}+",  # SendGrid
    r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{24,255}+",  # Shopify
    *(
        prefix + r"[_-][A-Za-z0-9_-]{20,255}+"
        for prefix in (
            *("gsk", "r8", "sbp", "lin_api", "figd", "tvly", "pplx", "xai", "nvapi", "rnd", "fly"),
            "lsv2_pt",
        )
    ),
    r"(?:dapi|dose)[a-f0-9]{32}(?![A-Za-z0-9])",  # Databricks
    r"hv[sbr]\.[A-Za-z0-9_-]{20,512}+",  # Vault
    r"AGE-SECRET-KEY-1[A-Z0-9]{50,80}+",
    *(
        prefix + r"(?=[A-Za-z_.-]{0,64}[0-9])[A-Za-z0-9_.$+/-]{16,2048}+=*"
        for prefix in (
            *("ATATT3", "ATCTT3", "glsa_", "glc_", r"pscale_(?:tkn|oauth|pw)_", "sntry[su]_"),
            *(r"dp\.(?:pt|st|ct|sa|scim|audit)\.", r"NR(?:AK|JS|II)-", "PMAK-", "xkeysib-"),
            *("dckr_[po]at_", "rubygems_", "bkua_", "CCIPAT_", "sq[upa]_", "pcsk_", "jina_"),
            *("bb_(?:live|test)_", "sq0(?:csp|atp)-", "lin_oauth_", "sb_secret_", "tgp_v1_"),
            *("fm[12]_", "shippo_(?:live|test)_", "CFPAT-", "HRKU-", "FLWSECK-", "wandb_v1_"),
            *("apify_api_", "tskey-[a-z]{3,8}-", r"access_token\$production\$", "ops_eyJ"),
            *(r"sk\.eyJ", "FwoGZXIvYXdz", "IQoJb3JpZ2luX2Vj", "1//0"),
        )
    ),  # Atlassian, Grafana, PlanetScale, Sentry, Docker, Notion and other issuers
    *(
        prefix + r"_(?=[A-Za-z]{0,64}[0-9])[A-Za-z0-9]{22,255}+(?![A-Za-z0-9_-])"
        for prefix in (
            *("ntn", "secret", "nfp", "vcp", "napi", "e2b", "fw", "ddp", "sgp(?:_[a-f0-9]{16})?"),
            *("pnu", "rdme", "aio", "tfp", "api_org", "sk", "re_[A-Za-z0-9]{8}"),
        )
    ),  # prefixes that may begin a name: one run of letters and digits, none of them alone
    *(
        prefix + r"-(?=[a-z]{0,32}[0-9])[a-z0-9]{32,64}+(?![A-Za-z0-9_-])"
        for prefix in ("key", "fc", "pul", "csk")
    ),  # Mailgun, Pulumi
    *(
        whole + "(?![A-Za-z0-9-])"
        for whole in (
            *("SK[a-f0-9]{32}", "oy2[a-z0-9]{43}", "cio[A-Za-z0-9]{32}", "AKCp[A-Za-z0-9]{60,80}"),
        )
    ),
    *(
        prefix + r"-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"
        for prefix in ("pat-[a-z]{2}[0-9]", "sdk")
    ),  # HubSpot
    r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}",  # Airtable
    r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}",  # Dynatrace
    r"LTAI[A-Za-z0-9]{12,20}(?![A-Za-z0-9])",  # Alibaba
    r"AKID[A-Za-z0-9]{32}(?![A-Za-z0-9])",  # Tencent
    r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}",  # Discord
    r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,40}+",  # Telegram bot
)
_PLACED_LIST = (
    r"(?<=/api/webhooks/)[0-9]{16,20}/[A-Za-z0-9_-]{40,255}+",
    r"(?<=webhook\.office\.com/webhookb2/)[A-Za-z0-9@/-]{40,255}+",  # Teams
    r"(?<=hooks\.slack\.com/services/)[A-Za-z0-9/_-]{20,255}+",
    # The password of an ODBC connection; a shell's PWD is a folder
    r"(?:(?<=;PWD=)|(?<=; PWD=))(?![/$~{%\[])[^\s;\"'\\]{3,255}+",
    # A bearer credential in prose or a log line; the word alone ("bearer authentication") is none
    r"(?:(?<=[Bb]earer )|(?<=BEARER ))(?=[A-Za-z._~+/-]{0,64}[0-9])[A-Za-z0-9._~+/-]{6,8192}+=*",
)
FORMATS = re.compile(r"(?<![A-Za-z0-9_-])(?:" + "|".join(_FORMAT_LIST) + ")")
"""One search for every secret that its own spelling gives away. Each format begins with a literal
where it can: the search passes over it there at the least cost."""
PLACED = re.compile(r"(?<![A-Za-z0-9_-])(?:" + "|".join(_PLACED_LIST) + ")")
PLACES = ("/webhooks/", "/webhookb2/", "hooks.slack.com/", "PWD=", "earer ", "EARER ")
"""Secrets given away by what is before them; worth a search only where one of these is."""
_RUN = 16
"""Every secret of ``FORMATS`` is a run of so many of these characters, but for Slack's."""
_SHORTER = "xox"
_IN_RUN = bytes(
    b"01"[chr(code).isalnum() or chr(code) in "_.$+/=:~@-"] if code < 128 else 48
    for code in range(256)
)
INFIXES = (".atlasv1.", "Q~", "AZDO")
INFIXED = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,255}+"  # Terraform
    r"|[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"  # Azure client secret
    r"|[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9]))"  # Azure DevOps
)
"""Secrets marked in their middle; worth a search only where one of the marks is."""

_SPOKEN = (
    r"(?:pass(?:word|phrase|code)|passwd|pwd|(?:(?:api|access|secret|private|auth)[ _-])?key"
    r"|(?:(?:access|api|auth|bearer|refresh|session)[ _-])?token|secret|credential)s?"
)
_TOLD = (
    r"(?P<value>(?!(?i:(?:sha|md|base|utf|aes|rsa|hs|rs|ed|oauth|http)-?[0-9]"
    r"|k8s|[vsk]-?[0-9]{1,3}(?![A-Za-z0-9])))"
    r"(?=[!#-&*-~]{0,64}[A-Za-z])(?=[!#-&*-~]{0,64}[0-9])[!#-&*-Z^-z|~]{5,512}+)(?![(\[])"
)
"""What is announced; with letters and digits, so that it is hardly a word."""
_ENGLISH = re.compile(
    r"(?P<head>(?:"
    rf"(?<![A-Za-z0-9_-])(?i:{_SPOKEN}(?: {{1,3}}(?:is|was|set to|changed to):? {{1,3}}|[：＝]\s?)"
    r"|(?:api|access|secret|private|auth) (?:key|token)\s?[:=]\s{0,3}))"
    r"[\"'`“「]?)" + _TOLD
)
_OTHER_LANGUAGES = re.compile(
    r"(?P<head>(?i:密码|口令|密钥|令牌|パスワード|비밀번호|пароль|contrase[nñ]a|senha|mot de passe"
    r"|passwort|kennwort)(?:\\{0,7}[\"'”」])?"
    r"\s?(?:[是为は는은：:=＝]|设为|(?:es|est|ist|lautet) )\s{0,3}"
    r"(?:\\{0,7}[\"'`“「])?)" + _TOLD
)
_WORDS = " is, was, set to, changed to, key, token,：,＝".split(",")
_OTHER_WORDS = (
    "密,口令,令牌,パスワード,비밀번호,парол,contrase,senha,mot de passe,passwort,kennwort".split(
        ","
    )
)
PROSE = ((_WORDS, _ENGLISH), (_OTHER_WORDS, _OTHER_LANGUAGES))
"""Secrets announced in a sentence. One of the words, in lower case, is in every sentence that the
pattern beside them finds; most inputs of tools hold none."""

COMMANDS = ("sshpass", "mysql", "mariadb", "redis-cli", "docker login", "password ")
COMMAND = re.compile(
    r"(?<![A-Za-z0-9_])(?P<head>(?:sshpass\s{1,4}-p\s{0,4}"
    r"|(?:mysql|mysqldump|mysqladmin|mariadb)\s(?:[^\n|;&]{0,200}\s)?-p(?!-)"
    r"|redis-cli\s(?:[^\n|;&]{0,200}\s)?-a\s{1,4}"
    r"|docker\slogin\s(?:[^\n|;&]{0,200}\s)?-p\s{1,4}"
    r"|login\s{1,16}[^\s\"']{1,128}(?:\s|\\{1,15}[nrt]){1,16}password\s{1,16})(?:\\{0,15}[\"'])?)"
    r"(?P<value>[^\s\"'\\;|&][^\s\"'\\]{0,255})"
)
"""Passwords of programs that take them without a telling name, and of ``.netrc``."""

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
    r"|any|object|number|unknown|void|required|optional|secretstr|secret_str|text|varchar|char"
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
"""Every name that ``strength`` knows holds one of these."""


def may_name(text: str) -> bool:
    """Whether a telling name can be in the text; most texts are ruled out at little cost."""
    return holds_any(text.lower(), _TELLING)


def may_have_format(text: str) -> bool:
    """Whether a secret of a known format can be in the text; prose and tables are ruled out."""
    if len(text) < _RUN:
        return _SHORTER in text
    run = int(text.encode("ascii", "replace").translate(_IN_RUN), 2)  # a bit for each character
    length = 1
    while length < _RUN:
        run &= run << length
        length *= 2
    return run > 0 or _SHORTER in text


def holds_any(text: str, words: Sequence[str]) -> bool:
    """Whether one of the words is in the text."""
    for word in words:  # a loop: a generator would cost more than most of the searches
        if word in text:
            return True
    return False


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
