"""Database replication lag; marketing, travel weather and an old load test are done with."""

from __future__ import annotations

from agentscope_compaction.testing import HistoryBuilder
from tests.scenarios.scenario import Scenario, add_broken_calls
from tests.scenarios.texts import log, reviews, table

__all__ = ["replication_lag"]

_STATUS = """ application_name | client_addr | state     | sent_lsn    | replay_lsn  | replay_lag
------------------+-------------+-----------+-------------+-------------+-----------------
 replica-east-1   | 192.0.2.41  | streaming | 5C/A1F00188 | 5C/A1EFE2D0 | 00:00:00.114
 replica-east-2   | 192.0.2.42  | streaming | 5C/A1F00188 | 58/03B7C910 | 00:41:17.902
 replica-west-1   | 192.0.2.61  | streaming | 5C/A1F00188 | 5C/A1EF9A00 | 00:00:00.388
(3 rows)
"""
_CONFIG = """# replica-east-2, conf.d/50-standby.conf, changed 2026-03-12 by Jonas Lindqvist
hot_standby = on
hot_standby_feedback = off
max_standby_streaming_delay = 3600s   # was 30s before the reporting job moved here
max_standby_archive_delay = 3600s
wal_receiver_timeout = 60s
recovery_min_apply_delay = 0
max_parallel_workers_per_gather = 4
effective_io_concurrency = 200
"""
_BLOCKER = """ pid   | usename   | xact_start          | wait | query
-------+-----------+---------------------+------+---------------------------------------------
 20417 | reporting | 2026-03-14 07:52:09 |      | SELECT region, sum(total) FROM order_lines l
       |           |                     |      | JOIN orders o USING (order_id) GROUP BY 1
(1 row)
recovery is paused by conflict with pid 20417: WAL record 58/03B7C910 removes rows it still sees
"""
_DATABASE = (
    "recovery waiting for pid {n} on relation order_lines, slot east_2_{id}",
    "restartpoint complete: wrote {n} buffers",
    "replay lag {n} s exceeds 60 s, paging {who}",
    "received wal segment {id}, {n} MB behind",
)
_LOAD = (
    "virtual user {n} finished checkout on the retired monolith, trace {id}",
    "ramp step {n}, p95 within budget",
    "session {id} closed by {who}",
)
_FORECAST = ("place", "weather", "hour", "gust", "rain %")
_RUNS = ("run", "users", "p50", "p95", "errors %")


def _side_tracks(builder: HistoryBuilder) -> None:
    builder.say("The campaign review comes first, as it was promised for this morning.")
    columns = ("campaign", "channel", "visits", "orders", "rate %", "owner")
    for n, month in enumerate((1, 2, 1)):  # January's report was made again after a correction
        query = {"report": "marketing", "month": month}
        builder.call("Report", query, table(50 + n, columns, 36), f"marketing-{n}")
    opinions = {"report": "marketing opinions"}
    builder.call("Report", opinions, reviews(53, "leaflet", 34), "marketing-3")
    builder.say("The marketing review is sent; Priya Raman has signed it off.")
    builder.user("Thanks. Will the trip to the partner next week be dry?")
    for n, place in enumerate(("north pass", "lake shore")):
        query = {"weather": place, "days": "5"}
        builder.call("Forecast", query, table(60 + n, _FORECAST, 36), f"weather-{n}")
    builder.say("Take the train on Tuesday; the travel question is settled.")
    builder.user("And file the load test of the old monolith, which we retired.")
    for n in range(3):
        command = {"command": f"cat loadtest/monolith-run-{n}.log"}
        builder.call("Bash", command, log(70 + n, "loadtest", _LOAD, 30), f"load-{n}")
    command = {"command": "cat loadtest/summary.md"}
    builder.call("Bash", command, table(73, _RUNS, 30), "load-3")
    builder.say("Filed. That system is gone, so nothing follows from the load test.")


def _incident(builder: HistoryBuilder) -> None:
    builder.user("Pager: replica-east-2 lags by forty minutes. Find out why.")
    builder.think("Either the network, the disk, or a query that blocks replay.")
    builder.say("I compare the replicas and look at what runs on replica-east-2.")
    query = {"sql": "SELECT * FROM pg_stat_replication"}
    builder.call("Sql", query, _STATUS, "key-status")
    command = {"command": "cat /etc/postgresql/replica-east-2/50-standby.conf"}
    builder.call("Bash", command, _CONFIG, "key-config")
    query = {"sql": "SELECT * FROM pg_stat_activity on replica-east-2"}
    builder.call("Sql", query, _BLOCKER, "key-blocker")
    command = {"command": "journalctl -u postgres@replica-east-2"}
    builder.call("Bash", command, log(80, "postgres", _DATABASE, 36), "evidence-journal")
    add_broken_calls(builder, "Report", "lag")
    builder.reply()
    builder.say("Receipts to keep: change CHG-3307 approved by Lena Abe, page PG-118 acknowledged.")
    ticket = {"change": "CHG-3307"}
    builder.call("Ticket", ticket, "CHG-3307 approved, window 13:00-14:00. " * 14, "receipt-1")


def replication_lag() -> Scenario:
    """Build the scenario; the same history every time."""
    builder = HistoryBuilder().system("You run the databases of a shop. Change one thing a time.")
    builder.user("Here is the list for today, take it from the top.")
    _side_tracks(builder)
    _incident(builder)
    receipts = builder.messages[-1]["id"]
    builder.user("Then bring replica-east-2 back under a second, inside the approved window.")
    builder.say("I will restore max_standby_streaming_delay and move the reporting query.")
    builder.call("Bash", {"command": "date -u"}, "Sat Mar 14 12:58:40 UTC 2026", "recent-1")
    builder.user("Do not restart the primary, and leave replica-west-1 alone.")
    builder.reply().say("Understood.")
    return Scenario(
        name="replication-lag",
        goal=(
            "Bring the replay lag of replica-east-2 under one second: set "
            "max_standby_streaming_delay in 50-standby.conf back, end pid 20417, and check "
            "pg_stat_replication afterwards"
        ),
        messages=builder.messages,
        tools=("Report", "Forecast", "Bash", "Sql", "Ticket"),
        protected_messages=(receipts,),
        protected_calls=("evidence-journal",),
        key_calls=("key-status", "key-config", "key-blocker"),
        side_calls=(
            *(f"marketing-{n}" for n in range(4)),
            *(f"weather-{n}" for n in range(2)),
            *(f"load-{n}" for n in range(4)),
        ),
        side_words=("marketing", "weather", "loadtest"),
    )
