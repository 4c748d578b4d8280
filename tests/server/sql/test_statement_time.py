from __future__ import annotations

import duckdb
import pytest
from sqlglot import exp

from floeberg.server.sql.instants import Zone
from floeberg.server.sql.statement_time import with_statement_time
from floeberg.server.sql.statements import Statement, parse_statement

# 2024-03-31 22:30 in UTC, the next day in Vienna, whose clock went ahead that morning
AT = 1_711_924_200_123_456


def bound(text: str, zone: str = "Europe/Vienna") -> Statement:
    return with_statement_time(parse_statement(text), AT, Zone(zone))


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("now()", "CAST('2024-03-31 22:30:00.123456+00:00' AS TIMESTAMPTZ)"),
        ("current_timestamp", "CAST('2024-03-31 22:30:00.123456+00:00' AS TIMESTAMPTZ)"),
        ("transaction_timestamp()", "CAST('2024-03-31 22:30:00.123456+00:00' AS TIMESTAMPTZ)"),
        ("get_current_timestamp()", "CAST('2024-03-31 22:30:00.123456+00:00' AS TIMESTAMPTZ)"),
        ("current_date", "CAST('2024-04-01' AS DATE)"),
        ("today()", "CAST('2024-04-01' AS DATE)"),
        ("localtimestamp", "CAST('2024-04-01 00:30:00.123456' AS TIMESTAMP)"),
        ("current_localtimestamp()", "CAST('2024-04-01 00:30:00.123456' AS TIMESTAMP)"),
        ("localtime", "CAST('00:30:00.123456' AS TIME)"),
        ("current_localtime()", "CAST('00:30:00.123456' AS TIME)"),
    ],
)
def test_the_time_is_a_literal_of_the_type_that_the_engine_gives_it(call: str, value: str) -> None:
    statement = bound(f"SELECT 1 + 1, x FROM t WHERE x = {call}")

    assert statement.sql() == f"SELECT 1 + 1, x FROM t WHERE x = {value}"
    assert statement.has_time
    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'Europe/Vienna'")
        types = [engine.sql(f"SELECT {each}").types for each in (call, value)]
        assert types[0] == types[1]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT current_time",  # TIME WITH TIME ZONE
        "SELECT age(x) FROM t",
        "SELECT now(3)",
        'SELECT "now" FROM t',
        "SELECT t.today FROM t",
        "SELECT localtimestamp(3)",
    ],
)
def test_what_is_no_time_of_the_statement_stays(text: str) -> None:
    statement = parse_statement(text)

    assert with_statement_time(statement, AT, Zone()) is statement


def test_no_column_is_called_by_the_time() -> None:
    text = "SELECT now() - x, (SELECT max(today())) FROM t UNION ALL SELECT 1, 2"
    tree = bound(text).tree
    assert isinstance(tree, exp.Union)
    assert [item.alias for item in tree.left.selects] == [
        "(NOW() - x)",
        "(SELECT MAX(CURRENT_DATE))",
    ]


def test_a_column_that_has_nothing_but_the_time_keeps_its_name() -> None:
    assert bound("SELECT now(), current_date AS d", "UTC").sql() == (
        "SELECT CAST('2024-03-31 22:30:00.123456+00:00' AS TIMESTAMPTZ) AS \"now()\","
        " CAST('2024-03-31' AS DATE) AS d"
    )
