"""Secrets disappear from what is sent; ordinary code, prose and data stay as they are."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentscope_compaction.redaction import REDACTED, redact_and_count, redact_secrets
from agentscope_compaction.secret_formats import (
    FORMATS,
    PLACED,
    PLACES,
    holds_any,
    may_have_format,
)

PEM = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEfakefakefakefake\n" * 4
PEM_END = "-----END RSA PRIVATE KEY-----"

KEY_LINES = PEM.splitlines()
# as tools show a key, cut off before its end
DECORATED_KEYS = [
    "".join(f"{n:6}\t{line}\n" for n, line in enumerate(KEY_LINES, 1)),
    "".join(f"{n:5}→{line}\n" for n, line in enumerate(KEY_LINES, 1)),
    "".join(f"id_rsa:{n}:{line}\n" for n, line in enumerate(KEY_LINES, 1)).replace("id_rsa:", ""),
    "".join(f"-{line}\n" for line in KEY_LINES),
    "".join(f"+{line}\n" for line in KEY_LINES),
    "".join(f"  > {line}\n" for line in KEY_LINES),
    "".join(f'    "{line}\\n" +\n' for line in KEY_LINES),
    PEM.replace("KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n"),
    PEM.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK").replace(
        "Y-----\n", "Y-----\nVersion: 1\n\n"
    ),
    PEM.replace("-----BEGIN RSA PRIVATE KEY-----", "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----"),
    PEM.replace("-----BEGIN RSA PRIVATE KEY-----", "Private-Lines: 4"),
    PEM + "MIIEfake=\n",
]

TAIL, HEX, UUID = "Fake1fake" * 6, "fa1e" * 10, "fa1efa1e-fa1e-fa1e-fa1e-fa1efa1efa1e"
PREFIXES = [
    *("ATATT3", "glsa_", "pscale_tkn_", "dp.pt.", "sntrys_", "NRAK-", "PMAK-", "xkeysib-"),
    *(
        "dckr_pat_",
        "rubygems_",
        "bkua_",
        "CCIPAT_",
        "squ_",
        "pcsk_",
        "jina_",
        "bb_live_",
        "sq0csp-",
    ),
    *(
        "lin_oauth_",
        "sb_secret_",
        "tgp_v1_",
        "fm2_",
        "shippo_live_",
        "CFPAT-",
        "HRKU-",
        "wandb_v1_",
    ),
    *(
        "apify_api_",
        "tskey-auth-",
        "access_token$production$",
        "ops_eyJ",
        "sk.eyJ",
        "IQoJb3JpZ2luX2Vj",
    ),
    *(
        "1//0",
        "ntn_",
        "secret_",
        "nfp_",
        "vcp_",
        "napi_",
        "e2b_",
        "fw_",
        "sk_",
        "sk_org_live_",
        "hvb.",
    ),
]
ISSUED = [
    *(prefix + TAIL for prefix in PREFIXES),
    *("key-" + HEX[:32], "fc-" + HEX[:32], "pul-" + HEX, "SK" + HEX[:32], "dose" + HEX[:32]),
    *(f"pat-na1-{UUID}", f"sdk-{UUID}", f"pat{TAIL[:14]}.{HEX}{HEX[:24]}"),
    *("LTAI" + TAIL[:20], "AKID" + TAIL[:32], f"{TAIL[:14]}.atlasv1.{TAIL}{TAIL}"),
    *(
        f"fa18Q~{TAIL[:31]}",
        f"{TAIL}{TAIL[:22]}AZDO{TAIL[:4]}",
        f"M{TAIL[:23]}.{TAIL[:6]}.{TAIL[:27]}",
    ),
    *("https://discord.example/api/webhooks/12345678901234567/" + TAIL, "sgp_" + HEX),
]

# text with one secret, and what must not be left of it
SECRETS = [
    # names in front of values
    ('{"headers":{"Authorization":"Bearer abc-one"}}', "abc-one"),
    (r"{\"headers\":{\"Authorization\":\"Bearer abc-one\"}}", "abc-one"),
    (r"{\\\"password\\\": \\\"hunter2\\\"}", "hunter2"),
    ("{'password': 'a\\'hunter2'}", "hunter2"),
    ('{"password": "two words"}', "two words"),
    ('{"passphrase":"unclosed value', "unclosed"),
    ("Authorization: Basic ZmFrZTpmYWtl", "ZmFrZTpmYWtl"),
    ("Proxy-Authorization: Negotiate YIIfake", "YIIfake"),
    ('headers["Authorization"] = "Bearer abc1"', "abc1"),
    ('["x-api-key", "abc1"]', "abc1"),
    ('{"name": "Authorization", "value": "Bearer abc1"}', "abc1"),
    ("curl -H 'X-Api-Key: abc1' https://host/", "abc1"),
    ("curl -u admin:s3cret https://host/", "s3cret"),
    ("tool --password hunter2 --verbose", "hunter2"),
    ("curl -uadmin:hunter2 https://host/", "hunter2"),
    ("sshpass -p hunter2 ssh host", "hunter2"),
    ("sshpass -p'hunter2' ssh host", "hunter2"),
    (r"{\"cmd\": \"sshpass -p \\\"hunter2\\\" ssh host\"}", "hunter2"),
    ("mysql -u root -phunter2 shop", "hunter2"),
    ("mysqldump -phunter2 shop", "hunter2"),
    ("redis-cli -h host -a hunter2 ping", "hunter2"),
    ("docker login -u ada -p hunter2 registry", "hunter2"),
    ("machine host login ada password hunter2", "hunter2"),
    (r"machine host\n login ada\n password hunter2", "hunter2"),
    ("Driver={x};UID=ada;PWD=hunter2;", "hunter2"),
    # names and values with a blank, a tab or a table's bar between them
    ("setx API_KEY hunter2hunter", "hunter2"),
    ('setx API_KEY "hunter2hunter" /M', "hunter2"),
    ("set -gx API_KEY hunter2hunter", "hunter2"),
    ("ENV API_KEY hunter2hunter", "hunter2"),
    ("Set-Item -Path Env:API_KEY hunter2hunter", "hunter2"),
    ("aws configure set aws_secret_access_key hunter2hunter", "hunter2"),
    ("git config --global github.token hunter2hunter", "hunter2"),
    ("npm config set //registry.example.com/:_authToken hunter2hunter", "hunter2"),
    ("gh secret set API_KEY --body hunter2hunter", "hunter2"),
    (r"{\"cmd\": \"setx API_KEY \\\"hunter2hunter\\\"\"}", "hunter2"),
    ("| ada | password | hunter2hunter |", "hunter2"),
    ("password\thunter2hunter", "hunter2"),
    (r'{"row": "password\thunter2hunter"}', "hunter2"),
    ('{"password": {"value": "hunter2"}}', "hunter2"),
    (r"{\"password\":{\"stringValue\":\"hunter2\"}}", "hunter2"),
    # what a command line hands to a program, and SQL
    ("echo hunter2 | docker login --username ada --password-stdin", "hunter2"),
    ("echo 'hunter2' | sudo -S ls", "hunter2"),
    ("echo 'ada:hunter2' | chpasswd", "hunter2"),
    ("CREATE USER ada WITH PASSWORD 'hunter2'", "hunter2"),
    ("alter role ada password 'hunter2';", "hunter2"),
    ("CREATE USER ada IDENTIFIED BY 'hunter2'", "hunter2"),
    ("CREATE USER ada IDENTIFIED WITH caching_sha2_password BY 'hunter2'", "hunter2"),
    ("sent BEARER abc123def to host", "abc123def"),
    ("tool --api-key=abc1", "abc1"),
    ("export API_KEY=abc", "abc"),
    ("GITHUB_TOKEN=abc", "abc"),
    ("PASSWORD=a,b;c", "a,b;c"),
    ('ENV DB_PASSWORD="two words"', "two words"),
    ("password: x1", "x1"),
    ("  - clientSecret: abc1", "abc1"),
    ("spring.datasource.password=letmein", "letmein"),
    ("//registry.example/:_authToken=abc1", "abc1"),
    ("Server=db;User=sa;Pwd=abc1;", "abc1"),
    ("AccountName=x;AccountKey=ZmFrZQ==;EndpointSuffix=y", "ZmFrZQ"),
    ("<password>hunter2</password>", "hunter2"),
    ("Cookie: sid=abc1; theme=dark", "abc1"),
    ('"set-cookie": ["sid=abc1; Path=/"]', "abc1"),
    ('"token": "abc123DEF456"', "abc123DEF456"),
    ("https://host/path?token=abc&x=1", "abc"),
    ("https://host/blob?sv=1&sig=abc%2Fdef", "abc%2Fdef"),
    ("https://host/?X-Amz-Signature=0123abcd", "0123abcd"),
    ("'password' => 'abc1',", "abc1"),
    (':api_key=>"abc1"', "abc1"),
    ('"clientSecret" => abc1', "abc1"),
    # names and values apart, as configuration has them
    ("- name: DB_PASSWORD\n  value: hunter2\n", "hunter2"),
    ("- name: DB_PASSWORD\n  value: 'hunter2'\n", "hunter2"),
    (r"- name: DB_PASSWORD\n  value: hunter2\n", "hunter2"),
    ('<add key="ApiKey" value="hunter2"/>', "hunter2"),
    ("password: |\n  hunter2\n", "hunter2"),
    (r"api_key: >-\n    hunter2\n", "hunter2"),
    ("**Password:** hunter2", "hunter2"),
    ("define('DB_PASSWORD', 'hunter2hunter');", "hunter2"),
    ('os.getenv("API_KEY", "hunter2hunter")', "hunter2"),
    (r"os.getenv(\"API_KEY\", \"hunter2hunter\")", "hunter2"),
    ('{"api_keys": ["abc123DEF456", "hunter2hunter"]}', "hunter2"),
    # characters that the writers of JSON escape: all beyond ASCII, or those that HTML knows
    (json.dumps({"note": "密码：hunter2"}), "hunter2"),
    (json.dumps({"密码": "hunter2"}), "hunter2"),
    (json.dumps(json.dumps({"note": "数据库密码是 hunter2"})), "hunter2"),
    (r'{"url": "https://host/?a=1\u0026token=hunter2"}', "hunter2"),
    (r'{"body": "\u003cpassword\u003ehunter2\u003c/password\u003e"}', "hunter2"),
    (r'{"cmd": "PASSWORD\u003d\u0027hunter2\u0027 run"}', "hunter2"),
    (r'{"body": "{\u0022password\u0022: \u0022hunter2\u0022}"}', "hunter2"),
    # lists after a name
    ('{"password": ["fake1a", "hunter2"]}', "hunter2"),
    ('{"password": ["fake1a", "fake1b", "hunter2"]}', "hunter2"),
    ('{\\"password\\": [\\"fake1a\\", \\"hunter2\\"]}', "hunter2"),
    # sentences
    ("The password is hunter2.", "hunter2"),
    ("my API key was `abc1def2`, I think", "abc1def2"),
    ("API key: abc1def2", "abc1def2"),
    ("API KEY: abc1def2", "abc1def2"),
    ("THE PASSWORD IS abc1def2", "abc1def2"),
    ("access token = abc1def2", "abc1def2"),
    ("passphrase set to 'correct-h0rse'", "h0rse"),
    ("use hunter2 as the password.", "hunter2"),
    ('"hunter2" is my new API key', "hunter2"),
    ("数据库密码是 hunter2。", "hunter2"),
    ("密码：hunter2", "hunter2"),
    ("密码＝hunter2", "hunter2"),
    ('{"密码": "hunter2"}', "hunter2"),
    (r"{\"数据库密码\":\"hunter2\"}", "hunter2"),
    ("パスワードは hunter2 です", "hunter2"),
    ("비밀번호: hunter2", "hunter2"),
    ("Пароль: hunter2", "hunter2"),
    ("la contraseña es hunter2", "hunter2"),
    ("Mot de passe : hunter2", "hunter2"),
    ("Das Passwort lautet hunter2", "hunter2"),
    # that begin like the name of an algorithm or version
    ("the password is S3cr3tly", "S3cr3tly"),
    ("my API key is v4lue9x8", "v4lue9x8"),
    ("the token is K1tty-Cat", "K1tty-Cat"),
    ("password：hunter2", "hunter2"),
    # URLs
    ("https://user:pa-ss@host/path", "pa-ss"),
    ("postgres://app:p@ss@db:5432/x", "p@ss"),
    (r"https:\/\/user:pa-ss@host", "pa-ss"),
    ("git clone https://fake0token0fake@host/x.git", "fake0token0fake"),
    # blocks
    (PEM + PEM_END, "MIIEfake"),
    ((PEM + PEM_END).replace("\n", "\\n"), "MIIEfake"),
    (PEM, "MIIEfake"),
    (PEM + "and prose\n" + PEM + PEM_END, "MIIEfake"),
    *((text, "MIIEfake") for text in DECORATED_KEYS),
    *((text.replace("\n", "\\n").replace("\t", "\\t"), "MIIEfake") for text in DECORATED_KEYS),
    # formats, anywhere
    ("key AKIAFAKEFAKEFAKEFAKE used", "AKIAFAKE"),
    ("ghp_" + "fake" * 9, "fakefake"),
    ("github_pat_" + "fake_" * 9, "fake_fake"),
    ("glpat-fakefakefakefakefake", "fakefake"),
    ("xoxb-123456789-fakefake-fake", "fakefake"),
    ("use sk-test-fake1fake2fake3 now", "fake1fake2"),
    ("sk-ant-api03-fakefakefakefake", "fakefake"),
    ("sk_live_fakefakefake", "fakefake"),
    ("AIza" + "fake_fake-" * 4, "fake_fake"),
    ("eyJhbGciOiJub25l.eyJzdWIiOiJmYWtl.ZmFrZQ", "eyJzdWIi"),
    ("hf_" + "Fake" * 9, "FakeFake"),
    ("npm_" + "fake" * 9, "fakefake"),
    ("SG.fakefakefakefake.fakefakefakefake", "fakefake"),
    ("shpat_" + "0123abcd" * 4, "0123abcd"),
    ("pypi-" + "AgEIfake" * 5, "fakeAgEI"),
    ("1234567890:AA" + "fake-" * 7, "fake-fake"),
    ("https://hooks.slack.com/services/T000/B000/fakefakefakefake", "fakefake"),
    ("sent Bearer abc123def to host", "abc123def"),
    *((text, text[-20:]) for text in ISSUED),
    *((json.dumps({"cmd": f'run "{text}" now'}), text[-20:]) for text in ISSUED),
]

HARMLESS = [
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "550e8400-e29b-41d4-a716-446655440000",
    "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4" * 40,
    "a_very_long_identifier_name_that_goes_on_and_on_for_a_while_1234567890",
    "token_count = 5",
    "max_tokens: 4096",
    "password = get_password()",
    "password: str = Field(min_length=8)",
    "password = user_password",
    "password=self.password, token=None",
    "api_key=api_key",
    "token = os.environ['TOKEN']",
    "os.environ['API_KEY']",
    "apiKey: process.env.API_KEY",
    "def authenticate(token):",
    "def f(password: str | None = None, token: Optional[str] = None): ...",
    "if not password:\n    return",
    "if (password === confirmPassword) {",
    "const token = await getToken();",
    'import { token } from "./token"',
    "type Token = string;",
    "token = tokenizer.decode(ids)",
    '{"token": "hello", "logprob": -0.25}',
    '"eos_token": "<|endoftext|>", "pad_token": "[PAD]"',
    "next_page_token = 'abcdef123456'",
    "secret_santa = 'Ada'",
    "primary_key=True",
    "key: value",
    "PASSWORD_MIN_LENGTH=8",
    "PWD=/home/user",
    "Password: \nUsername: ada",
    "Authorization: Bearer <token>",
    "Authorization: Bearer ${TOKEN}",
    'f"Bearer {token}"',
    "the bearer authentication scheme",
    "a password reset email was sent",
    "-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----",
    "a file starts with -----BEGIN PRIVATE KEY----- and so on",
    "  12\t-----BEGIN PRIVATE KEY-----\n  13\tprint(key)\n",
    "Private-Lines: 8 is what PuTTY writes",
    "https://example.com/a?b=c&page=2#d",
    "https://blog.example/@someone/post",
    "http://localhost:8080/@user",
    "ssh://git@github.com/x/y.git and git@github.com:x/y.git",
    "docker run -u 1000:1000 image",
    "docker run -u1000:1000 -p 8080:80 image",
    "mysql -u root -p shop_password",
    "mysql -u root -p; docker login registry",
    "mysql -p$PASSWORD shop",
    "sshpass -p ${PASSWORD} ssh host",
    "cd /srv;PWD=/srv make",
    "the login page asks for a password twice",
    "sk-fading-circle-container",
    "step2 is the key part, module2.py is the password checker",
    "SELECT password FROM users WHERE name = 'ada'; -- identified by id",
    "echo done1 | tee log && sudo -S ls; echo $PASSWORD | chpasswd",
    "config set color.ui auto, ENV PATH /usr/local/bin2, set -x TOKEN file.txt",
    "password: str | None, password | hash, | name | password |\n|---|---|",
    '{"password": {"type": "string"}, "token": {"value": "hello"}}',
    "secret_santa_list_of_the_year_2024, fw_update_version_2_of_the_firmware_image",
    "e2b_sandbox_template_identifier_v2 napi_create_reference_for_value_v10",
    "key-value-store-with-many-words-1 fc-layer-2-of-the-network-in-the-model",
    "cache-key-3f786850e387550fdab836ed7e6dc881de23001b.json",
    "re_compiled_pattern_for_urls_v2, dp.pt.start, aio_connection_pool_with_retries_v2",
    "task-list-with-many-items-1234567890",
    "std::password::hash",
    "author: Jane, auth: false",
    '"session_id": "abc123def456"',
    "<password></password>",
    "{{ password }}",
    "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef: {name: db, key: x}",
    "private_key: |\n  -----BEGIN CERTIFICATE-----\n",
    'getenv("API_KEY", "")',
    'getattr(settings, "api_key", None)',
    'row.get("password", "unknown")',
    'Table("tokens", "id", "created_at_2024")',
    "passwords = load_passwords()",
    "api_keys: list[str], access_tokens: 12345",
    r"a \u0026 b \u003c c \u5bc6\u7801\u662f\u5fc5\u586b\u7684 C:\users \ud83d\ude00 \u000a \u0022",
    "users.map(token => token.id)",
    "password => hash(password)",
    "{getApiKey: async () => key, password: function () {}}",
    "the password is required, the token was expired and the secret is out",
    "the token is 8192 characters and the key is sha256-hashed",
    "if password is not None and token is None:",
    "the api key is read from config2() and the secret is base64",
    "the token is v1.2, the key is s3-bucket, the secret is k8s-native, the password is v2",
    "das Passwort ist zu kurz, la contraseña es obligatoria, пароль: не менее 8 символов",
    "密码是必填的，密码：至少8位",
    "password: { type: String }",
    "credential=record.credential,",
    "    api_key=credential.api_key.get_secret_value(),",
    "    auth_token=args.auth_token,",
    'auth = (self.auth[0], "********") if self.auth else None',
    "Sets the 'Cookie:' HTTP header on the `Request`.",
    'HEADERS = {"authorization", "proxy-authorization"}',
    "",
]

FRAGMENTS = [text for text, _ in SECRETS] + HARMLESS + list("\"'\\:=,@ \n[]<>&?") + [REDACTED]

ADVERSARIAL = {
    "one word": "a" * 10**6,
    "dashed words": "a-" * 500_000,
    "dotted words": "a." * 500_000,
    "backslashes": "password=" + "\\" * 10**6,
    "unclosed quotes": "password='password=\"" * 50_000,
    "open key blocks": "-----BEGIN PRIVATE KEY-----" * 37_000,
    "block scalars": "password: |\n" * 80_000,
    "values": "password\n value" * 70_000,
    "commands": "mysql " * 170_000,
    "logins": "login a " * 120_000 + "password ",
    "escapes": "\\u0026" * 160_000,
    "key gaps": ("-----BEGIN PRIVATE KEY-----" + " 1:" * 300) * 1_000,
    "key lines": "-----BEGIN PRIVATE KEY-----\n" + "1\tMIIEfakefakefakefake\n" * 40_000,
    "empty key blocks": "-----BEGIN PRIVATE KEY----------END PRIVATE KEY-----" * 20_000,
    "schemes": "://" * 330_000,
    "long userinfo": ("http://" + "a" * 600) * 1_600,
    "at signs": "http://" + "@" * 10**6,
    "spaces": "password" + " " * 10**6,
    "webhooks": "/api/webhooks/12345678901234567/" * 30_000,
    "Q~": "aaa1Q~" * 170_000,
    "half tokens": "eyJaaaaaaaa." * 80_000,
    "prefixes": "sk-" * 300_000,
    "tags": "<password>" * 100_000,
    "flags": "--a " * 250_000,
    "pairs": "token: abcdefg1" * 70_000,
    "cells": "password | " * 90_000,
    "nested": 'password: {"value": ' * 50_000,
    "settings": "set -x " * 140_000 + "token",
    "options": "config -a -b -c " * 60_000,
    "paths": "setx " + "a/" * 500_000 + " token",
    "pipes": "echo aaa | a " * 80_000 + "chpasswd",
    "statements": "with password '" * 70_000,
    "values first": "abc123 is the very long " * 40_000 + "password",
}


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_is_replaced_once_and_for_all(text: str, secret: str) -> None:
    """The secret is gone, the replacement is visible and counted, and a second pass is idle."""
    redacted, count = redact_and_count(text)
    assert secret not in redacted
    assert REDACTED in redacted
    assert count >= 1
    assert redact_and_count(redacted) == (redacted, 0)


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_on_a_line_of_a_file_is_found_in_json(text: str, secret: str) -> None:
    """Tool inputs hold whole files: behind an escaped line break or tab a line begins, too."""
    for before, after in (("", ""), ("first line\n", "\nlast line"), ("\t", "\r\n")):
        written = before + text + after
        for _ in range(3):
            assert secret not in redact_secrets(written)
            written = json.dumps({"content": written}, ensure_ascii=False)


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_stays_byte_for_byte(text: str) -> None:
    """Hashes, ids, images, code, prose and ordinary URLs are not secrets."""
    assert redact_and_count(text) == (text, 0)


def test_names_and_structure_stay_readable() -> None:
    """Only values are replaced, so a decision model still sees what the call was about."""
    text = '{"headers":{"Authorization":"Bearer abc"},"url":"https://u:p@h/"}'
    assert redact_and_count(text) == (
        '{"headers":{"Authorization":"Bearer [redacted]"},"url":"https://[redacted]@h/"}',
        2,
    )


def test_what_was_json_stays_json() -> None:
    """The escapes that are written out end no string."""
    text = json.dumps({"note": '密码："hunter2" \\ \n \x00 \ud800 😀 "', "password": "hunter2"})
    for escaped in (text, text.replace('\\"', "\\u0022")):
        assert json.loads(redact_secrets(escaped))["password"] == REDACTED


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=8))
def test_redacting_twice_changes_nothing_more(fragments: list[str]) -> None:
    """Any mixture of secrets, code and punctuation reaches its final form in one pass."""
    once = redact_secrets("".join(fragments))
    assert redact_secrets(once) == once


@given(st.from_regex(FORMATS))
def test_no_format_is_ruled_out_at_a_glance(text: str) -> None:
    """What a search for the formats finds is searched for, whichever format it is."""
    assert may_have_format(text)


@given(st.from_regex(PLACED))
def test_no_place_is_ruled_out_at_a_glance(text: str) -> None:
    """The same for secrets that are given away by what is before them."""
    assert holds_any(text, PLACES)


@given(st.text())
def test_any_text_is_accepted(text: str) -> None:
    """No text raises."""
    redact_secrets(text)


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_time_is_linear(name: str) -> None:
    """A megabyte made to provoke backtracking ends within seconds, not hours."""
    started = time.process_time()
    redact_secrets(ADVERSARIAL[name])
    assert time.process_time() - started < 5
