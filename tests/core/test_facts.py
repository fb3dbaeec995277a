from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentscope_compaction.core.facts import select_facts

PIECES = st.sampled_from(
    [
        "/srv/app/main.py",
        "https://example.org/a?b=c",
        "OPS-48213",
        "3f9c2ab01d",
        "929732",
        "Error: disk full on node-7c9f1",
        "| name | what it means |",
        "## Install",
        "def retry(budget: int) -> None:",
        '{"payment_id": "credit_card_2929732", "nights": 3}',
        "plain words that say little",
        "\ud83d",
        "\r\n",
        "\n",
        " ",
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=30), max_size=40).map(" ".join) | st.lists(
    PIECES, max_size=40
).map("\n".join)


@settings(max_examples=200, deadline=None)
@given(text=TEXTS, budget=st.integers(-5, 400))
def test_facts_are_verbatim_once_and_within_budget(text: str, budget: int) -> None:
    """Every line is a substring of the text, no line comes twice, and the whole fits."""
    facts = select_facts(text, budget)
    lines = facts.split("\n") if facts else []
    assert all(line and line in text for line in lines)
    assert len(set(lines)) == len(lines)
    assert len(facts) <= max(0, budget)
    assert select_facts(text, budget) == facts


@settings(max_examples=100, deadline=None)
@given(text=TEXTS, known=TEXTS)
def test_what_is_known_is_not_repeated(text: str, known: str) -> None:
    """No fact is a line or a chunk of the text that stays visible."""
    facts = select_facts(text, 300, known=known).split("\n")
    assert not set(filter(None, facts)) & {line.strip() for line in known.split("\n")}


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("see /srv/app/main.py, please", "/srv/app/main.py"),
        ("at https://example.org/a?b=c.", "https://example.org/a?b=c"),
        ("ticket OPS-48213 was made", "OPS-48213"),
        ("commit 3f9c2ab01d by me", "3f9c2ab01d"),
        ("account 929732 is open", "929732"),
        ("reservation JG7FMM is booked", "JG7FMM"),
        ("all well\n  Error: disk full\nbye", "Error: disk full"),
        ("x\n| name | what it means |\n|---|---|", "| name | what it means |"),
        ("x\n## Install it\ny", "## Install it"),
        ("x\n    def retry(budget):\ny", "def retry(budget):"),
        ('{"nights": 3}', "nights"),
        ('{"a":"' + "word " * 60 + '","m":"pull access denied for repo"}', "pull access denied"),
    ],
)
def test_kinds_of_facts(text: str, fact: str) -> None:
    """Each kind of fact is found."""
    assert fact in select_facts(text, 200)


def test_ids_win_when_space_is_short() -> None:
    """An id is worth more per character than a name or a key."""
    text = '{"description_text": "a", "booking": "OPS-48213", "some_other_name": "b"}'
    assert select_facts(text, 10) == "OPS-48213"


def test_a_line_is_not_repeated_by_its_parts() -> None:
    """The identifiers of a line that is kept are not listed again."""
    facts = select_facts("ok\nError: cannot open /srv/app/main.py\nok", 500)
    assert facts == "Error: cannot open /srv/app/main.py"


def test_a_log_that_repeats_itself_gives_its_error_twice() -> None:
    """Lines that differ in numbers only are taken twice at most."""
    text = "\n".join(f"{n}: error: worker {n} failed" for n in range(500))
    assert select_facts(text, 10_000).count("failed") == 2


def test_reading_is_bounded() -> None:
    """Of a huge text only head and end are read."""
    text = "word " * 50_000 + " OPS-48213 " + "word " * 100_000 + " OPS-99999"
    assert select_facts(text, 100) == "OPS-99999"


def test_nothing_to_say() -> None:
    """No facts, or no room: an empty string."""
    assert select_facts("", 100) == ""
    assert select_facts("plain words only", 100) == ""
    assert select_facts("OPS-48213", 3) == ""
