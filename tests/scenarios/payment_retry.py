"""A payment-retry bug fix; theme CSS, icon search and stale inventory lookups are done with."""

from __future__ import annotations

from agentscope_compaction.testing import HistoryBuilder
from tests.scenarios.scenario import Scenario, add_broken_calls
from tests.scenarios.texts import listing, log, reviews, stylesheet, table

__all__ = ["payment_retry"]

_RETRY = '''"""Retries of card charges."""
import time

from billing.gateway import Gateway, GatewayTimeout
from billing.ledger import Ledger

MAX_ATTEMPTS = 4
BACKOFF_SECONDS = (0.5, 2, 8, 30)


class RetryingCharger:
    """Charge a card, retrying on timeouts."""

    def __init__(self, gateway: Gateway, ledger: Ledger) -> None:
        self.gateway = gateway
        self.ledger = ledger

    def charge(self, order_id: str, cents: int, token: str) -> str:
        for attempt in range(MAX_ATTEMPTS):
            # BUG: a new key per attempt, so a timed-out charge that went through is repeated.
            key = f"{order_id}:{attempt}:{time.time_ns()}"
            try:
                receipt = self.gateway.charge(cents, token, idempotency_key=key)
            except GatewayTimeout:
                self.ledger.note(order_id, "timeout", attempt)
                time.sleep(BACKOFF_SECONDS[attempt])
                continue
            self.ledger.book(order_id, receipt.id, cents)
            return receipt.id
        raise ChargeFailed(order_id, attempts=MAX_ATTEMPTS)
'''
_TEST = """def test_timeout_after_capture_charges_once(charger, gateway):
    gateway.script = [TimeoutAfterCapture("rcpt_7f31"), Receipt("rcpt_7f31")]
    assert charger.charge("order-5521", 1999, "tok_test") == "rcpt_7f31"
    assert len(gateway.captures) == 1
"""
_FAILURE = """FAILED tests/test_retry.py::test_timeout_after_capture_charges_once
>       assert len(gateway.captures) == 1
E       assert 2 == 1
E        +  where 2 = len([Capture('order-5521:0:1773'), Capture('order-5521:1:1773')])
tests/test_retry.py:48: AssertionError
"""
_BILLING = (
    "charge attempt {n} for order {id} timed out, retrying with a new idempotency key",
    "receipt rcpt_{id} booked for {who}, {n} cents",
    "gateway answered in {n} ms, breaker closed",
    "ledger note timeout order {id} attempt {n}",
)
_STOCK = (
    "shelf scan {id} by {who}: {n} units of a seasonal lamp",
    "recount {n} scheduled for the mezzanine, clerk {who}",
    "pallet {id} moved to the returns bay",
)


def _side_tracks(builder: HistoryBuilder) -> None:
    builder.say("First the open theme ticket: the winter colours of the shop window.")
    for n, theme in enumerate(("winter", "harvest", "midnight")):
        path = {"path": f"web/themes/{theme}.css"}
        builder.call("Read", path, stylesheet(10 + n, theme, 16), f"css-{n}")
    query = {"query": "snowflake icon set"}
    builder.call("Search", query, listing(20, "Snowflake icon", 24), "icon-0")
    query = {"query": "lantern icon set"}
    builder.call("Search", query, listing(21, "Lantern icon", 24), "icon-1")
    query = {"query": "icon licence opinions"}
    builder.call("Search", query, reviews(22, "icon licence", 30), "icon-2")
    builder.say("The theme ticket is closed, Mira Okafor approved the winter colours and icons.")
    builder.user("Thanks. Someone asked about lamp stock, please look that up as well.")
    columns = ("sku", "place", "units", "status", "owner")
    for n, page in enumerate((1, 2, 1)):  # the first page was looked up again: its first is stale
        lookup = {"query": "inventory lamps", "page": page}
        builder.call("Query", lookup, table(30 + n, columns, 34), f"stock-{n}")
    scans = {"query": "inventory shelf scans"}
    builder.call("Query", scans, log(33, "warehouse", _STOCK, 28), "stock-3")
    builder.say("Those inventory numbers were stale; the warehouse answered the question itself.")


def _bug(builder: HistoryBuilder) -> None:
    builder.user("Now the important one: customers are charged twice after a gateway timeout.")
    builder.think("The idempotency key is the first suspect.")
    builder.say("I look at the retry code, its test and the billing log.")
    builder.call("Read", {"path": "billing/retry.py"}, _RETRY, "key-source")
    builder.call("Read", {"path": "tests/test_retry.py"}, _TEST, "key-test")
    builder.call("Bash", {"command": "pytest tests/test_retry.py"}, _FAILURE, "key-failure")
    evidence = log(40, "billing", _BILLING, 38)
    builder.call("Query", {"query": "billing log order-5521"}, evidence, "evidence-log")
    add_broken_calls(builder, "Query", "pay")
    builder.reply()
    builder.say("Receipts to keep: rcpt_7f31 (captured twice), refund re_2210 for Tomas Varga.")
    builder.call("Refund", {"receipt": "rcpt_7f31"}, "refund re_2210 accepted " * 20, "receipt-1")


def payment_retry() -> Scenario:
    """Build the scenario; the same history every time."""
    builder = HistoryBuilder().system("You maintain a shop. Never charge a customer twice.")
    builder.user("Work through the open tickets of the shop, one after the other.")
    _side_tracks(builder)
    _bug(builder)
    receipts = builder.messages[-1]["id"]
    builder.user("Good find. Fix billing/retry.py so that the failing test passes.")
    builder.say("I will derive the idempotency key in billing/retry.py from the order alone.")
    builder.call("Read", {"path": "billing/ledger.py"}, "class Ledger: ...\n" * 12, "recent-1")
    builder.user("Keep BACKOFF_SECONDS and the signature of RetryingCharger.charge as they are.")
    builder.reply().say("Understood.")
    return Scenario(
        name="payment-retry",
        goal=(
            "Fix the double charge in billing/retry.py: one idempotency key per order over all "
            "attempts, so that test_timeout_after_capture_charges_once in tests/test_retry.py "
            "passes"
        ),
        messages=builder.messages,
        tools=("Read", "Search", "Query", "Bash", "Refund"),
        protected_messages=(receipts,),
        protected_calls=("evidence-log",),
        key_calls=("key-source", "key-test", "key-failure"),
        side_calls=(
            *(f"css-{n}" for n in range(3)),
            *(f"icon-{n}" for n in range(3)),
            *(f"stock-{n}" for n in range(4)),
        ),
        side_words=("web/themes", "icon", "inventory"),
    )
