"""What secrets look like by their own spelling or place: issuers' published formats.

Data for ``redaction``, and cheap looks that rule most texts out before a search. Every pattern is
bounded or possessive, so a search is linear in its text. Formats are the published prefixes (those
that secret scanners look for).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = [
    "FORMATS",
    "INFIXED",
    "INFIXES",
    "NO_ESCAPE",
    "PLACED",
    "PLACES",
    "REDACTED",
    "WORD_START",
    "holds_any",
    "may_have_format",
]

REDACTED = "[redacted]"
"""What stands in for a secret."""
NO_ESCAPE = r"(?<!\\[nrtbf])"
"""What was just read is not JSON's escape of a line break or the like."""
WORD_START = rf"(?<![A-Za-z0-9_-]{NO_ESCAPE})"
"""A word does not begin inside another, but it does behind an escape: ``\\ntoken`` is no word."""

_FORMAT_LIST = (
    r"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9])",  # AWS access key id
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
    r"d(?:api|ose)[a-f0-9]{32}(?![A-Za-z0-9])",  # Databricks
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
    *(
        first + r"[A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}" for first in "MNO"
    ),  # Discord
    *(first + r"[0-9]{7,9}:AA[A-Za-z0-9_-]{32,40}+" for first in "0123456789"),  # Telegram bot
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


def _by_first(formats: Sequence[str]) -> str:
    """Return one pattern for all formats, each of which begins with a plain character.

    Grouped by that character: at most places of a text none of the groups can begin.
    """
    groups: dict[str, list[str]] = {}
    for form in formats:
        groups.setdefault(form[0], []).append(form[1:])
    return "|".join(f"{first}(?:{'|'.join(rests)})" for first, rests in groups.items())


FORMATS = re.compile(rf"{WORD_START}(?:{_by_first(_FORMAT_LIST)})")
"""One search for every secret that its own spelling gives away."""
PLACED = re.compile(rf"{WORD_START}(?:{'|'.join(_PLACED_LIST)})")
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
    rf"(?<![A-Za-z0-9]{NO_ESCAPE})"
    r"(?:[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,255}+"  # Terraform
    r"|[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"  # Azure client secret
    r"|[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9]))"  # Azure DevOps
)
"""Secrets marked in their middle; worth a search only where one of the marks is."""


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
