"""Find secrets that a command, a setting or a sentence tells: ``--password x``, ``setx TOKEN x``.

Other than behind ``name: value``, nothing but the words around it says that a value is one; so
each pattern wants a known program or phrase, and most want a value with letters and digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from agentscope_compaction.secret_formats import NO_ESCAPE, REDACTED, WORD_START, holds_any
from agentscope_compaction.secret_words import is_harmless, looks_random, strength

__all__ = ["commands", "flags", "sentences", "sentences_elsewhere", "settings"]

_QUOTE = r"(?:\\{0,15}[\"'])"
_FLAG = re.compile(
    rf"{WORD_START}(?P<head>--(?P<name>[A-Za-z][A-Za-z0-9-]{{0,40}}+)\s{{1,4}}{_QUOTE}?)"
    r"(?P<value>[^\s\"'\\=-][^\s\"'\\]{0,1023}+)"
)
_BASIC_USER = re.compile(
    rf"(?:(?<=\s)|(?<=\\[nrt]))(?P<head>(?:-u(?:[ =]\s{{0,4}})?|--user[ =]\s{{0,4}}){_QUOTE}?"
    r"[^\s:\"'\\/]{1,128}:)"
    r"(?P<value>[^\s\"'\\]{1,256})"
)

_PROGRAMS = ("sshpass", "mysql", "mariadb", "redis-cli", "docker login", "password ")
_PROGRAM = re.compile(
    rf"{WORD_START}"
    r"(?P<head>(?:sshpass\s{1,4}-p\s{0,4}"
    r"|(?:mysql|mysqldump|mysqladmin|mariadb)\s(?:[^\n|;&]{0,200}\s)?-p(?!-)"
    r"|redis-cli\s(?:[^\n|;&]{0,200}\s)?-a\s{1,4}"
    r"|docker\slogin\s(?:[^\n|;&]{0,200}\s)?-p\s{1,4}"
    r"|login\s{1,16}[^\s\"']{1,128}(?:\s|\\{1,15}[nrt]){1,16}password\s{1,16})"
    rf"{_QUOTE}?)"
    r"(?P<value>[^\s\"'\\;|&][^\s\"'\\]{0,255})"
)
"""Passwords of programs that take them without a telling name, and of ``.netrc``."""
_PIPES = ("--password-stdin", "sudo -S", "chpasswd", "passwd --stdin")
_PIPE = re.compile(
    rf"{WORD_START}"
    r"(?P<head>(?:echo|printf)\s{1,4}(?:-[a-z]{1,3}\s{1,4})?"
    rf"{_QUOTE}?(?:[A-Za-z0-9_.-]{{1,64}}+:)?)"
    rf"(?P<value>[^\s\"'\\|]{{3,256}}+)(?={_QUOTE}?\s{{0,4}}\|[^|\n;&]{{0,80}}"
    rf"(?:{'|'.join(_PIPES)}))"
)
"""Passwords that a command line hands to a program."""
_SQL = re.compile(
    r"(?P<head>(?i:(?:with|encrypted|(?:user|role|login)\s{1,4}[^\s;]{1,80})\s{1,4}password"
    r"|identified\s{1,4}(?:with\s{1,4}[^\s;]{1,40}\s{1,4})?by(?:\s{1,4}password)?)"
    r"\s{1,4}\\{0,15}')"
    r"(?P<value>[^'\\\n]{3,256}+)"
)
_SQL_WORDS = ("password", "dentified")
_SETTING = re.compile(
    rf"{WORD_START}"
    r"(?P<head>(?:setx|setenv|set -[A-Za-z]{1,4}|ENV|(?:configure|secrets?) set"
    r"|config(?: -{1,2}[a-z-]{1,20}){0,3}(?: set| add)?|Set-Item(?: -Path)?)[ \t]{1,4}"
    r"(?:[^\s=\"']{0,100}[/:])?(?P<name>[A-Za-z_][A-Za-z0-9_.-]{0,63}+)[ \t]{1,4}"
    rf"(?:-{{1,2}}[A-Za-z]{{1,10}}[ =])?{_QUOTE}?)"
    r"(?P<value>[^\s\"'\\]{8,1024}+)"
)
"""A name and a value with nothing but a blank between them, after a word that says so."""

_UNMISTAKABLE = r"(?:password|passphrase|passcode|(?:api|access|auth|secret)[ _-](?:key|token))"
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
    rf"{WORD_START}(?i:{_SPOKEN}(?: {{1,3}}(?:is|was|set to|changed to):? {{1,3}}|[：＝]\s?)"
    r"|(?:api|access|secret|private|auth) (?:key|token)\s?[:=]\s{0,3}))"
    r"[\"'`“「]?)" + _TOLD
)
_ENGLISH_WORDS = (" is", " was", " set to", " changed to", " key", " token", "：", "＝")
_VALUE_FIRST = re.compile(
    rf"(?P<head>(?<![^\s\"'`“「(]{NO_ESCAPE}))"
    + _TOLD.replace("*-Z^-z", "*-Z^_a-z")
    + r"(?=(?:\\{0,15}[\"'`”」])? (?:is|as) (?:the|my|your|our|its|their) (?:[a-z]{1,20} ){0,2}"
    + rf"(?i:{_UNMISTAKABLE})(?:[^\w \t-]|\s*\Z| (?:for|to|and|when|on|in|at|of) ))"
)
_VALUE_FIRST_WORDS = (" is ", " as ")
_ELSEWHERE = re.compile(
    r"(?P<head>(?i:密码|口令|密钥|令牌|パスワード|비밀번호|пароль|contrase[nñ]a|senha|mot de passe"
    r"|passwort|kennwort)(?:\\{0,7}[\"'”」])?"
    r"\s?(?:[是为は는은：:=＝]|设为|(?:es|est|ist|lautet) )\s{0,3}"
    r"(?:\\{0,7}[\"'`“「])?)" + _TOLD
)
_ELSEWHERE_WORDS = (
    *("密", "口令", "令牌", "パスワード", "비밀번호", "парол"),
    *("contrase", "senha", "mot de passe", "passwort", "kennwort"),
)
"""Words, in lower case, of which one is in every sentence that the pattern beside them finds."""


def flags(text: str) -> tuple[str, int]:
    """Replace ``--password x`` and ``curl -u user:x``."""
    if "--" not in text and "-u" not in text:
        return text, 0
    text, named = _values(_FLAG, text, _is_plain_flag)
    text, users = _values(_BASIC_USER, text, _is_number)
    return text, named + users


def commands(text: str) -> tuple[str, int]:
    """Replace ``sshpass -p x``, ``echo x | sudo -S ls`` and ``IDENTIFIED BY 'x'``."""
    total = count = 0
    if holds_any(text, _PROGRAMS):
        text, total = _values(_PROGRAM, text, _is_placeholder)
    if holds_any(text, _PIPES):
        text, count = _values(_PIPE, text, _is_placeholder)
        total += count
    if "'" in text and holds_any(text.lower(), _SQL_WORDS):
        text, count = _values(_SQL, text, _is_placeholder)
        total += count
    return text, total


def settings(text: str) -> tuple[str, int]:
    """Replace ``setx API_KEY x`` and ``aws configure set aws_secret_access_key x``."""
    return _values(_SETTING, text, _is_plain_setting)


def sentences(text: str) -> tuple[str, int]:
    """Replace what an English sentence tells: ``the password is x1``, ``x1 is the password``."""
    lowered = text.lower()
    total = count = 0
    if holds_any(lowered, _ENGLISH_WORDS):
        text, total = _values(_ENGLISH, text, _is_placeholder)
    if holds_any(lowered, _VALUE_FIRST_WORDS):
        text, count = _values(_VALUE_FIRST, text, _is_placeholder)
    return text, total + count


def sentences_elsewhere(text: str) -> tuple[str, int]:
    """Replace what a sentence in another language tells: ``密码：x1``."""
    if not holds_any(text.lower(), _ELSEWHERE_WORDS):
        return text, 0
    return _values(_ELSEWHERE, text, _is_placeholder)


def _is_placeholder(match: re.Match[str]) -> bool:
    return is_harmless(match["value"])


def _is_plain_flag(match: re.Match[str]) -> bool:
    return not strength(match["name"]) or is_harmless(match["value"])


def _is_plain_setting(match: re.Match[str]) -> bool:
    value = match["value"]
    return not (strength(match["name"]) and looks_random(value)) or is_harmless(value)


def _is_number(match: re.Match[str]) -> bool:
    """A user and group, not a user and password: ``docker run -u 1000:1000``."""
    return match["value"].isdigit() or is_harmless(match["value"])


def _values(
    pattern: re.Pattern[str], text: str, spared: Callable[[re.Match[str]], bool]
) -> tuple[str, int]:
    """Replace the ``value`` after each match's ``head``, but for those to be spared."""
    count = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal count
        if spared(match):
            return match[0]
        count += 1
        return match["head"] + REDACTED

    return pattern.sub(replace, text), count
