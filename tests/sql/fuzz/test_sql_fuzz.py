"""Some of the queries that `make fuzz-sql` asks any number of, always the same."""

from __future__ import annotations

from tests.sql.fuzz.asking import Tally, ask_a_lake

SEED, LAKES, QUESTIONS = 20261130, 2, 28


def test_random_queries_are_answered_as_duckdb_does_over_the_whole_tables() -> None:
    total = Tally()
    for lake in range(LAKES):
        total.add(ask_a_lake(SEED, lake, range(QUESTIONS)))

    assert not total.findings, "\n".join(map(str, total.findings))
    often = {
        "compared": 45,
        "road scan": 5,
        "road projection": 4,
        "road fragments": 25,
        "road engine": 25,
        "asked plainly": 40,
        "asked in one endpoint": 20,
        "asked undivided": 15,
        "asked by ADBC": 6,
    }
    seldom = {"refused": 3, "failed alone": 2, "answered alone": 3, "too many rows": 2}
    assert {what: total.seen[what] for what in often if total.seen[what] < often[what]} == {}
    assert {what: total.seen[what] for what in seldom if total.seen[what] > seldom[what]} == {}
