"""Keys as their issuers write them, and private keys as tools show them; all are made up."""

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
