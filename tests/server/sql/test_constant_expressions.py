from __future__ import annotations

import random
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from floeberg.protocol.civil_time import format_date, format_timestamp
from floeberg.server.sql.constant_expressions import constant_of
from floeberg.server.sql.constants import Constant, Day, Number, Stamp
from floeberg.server.sql.instants import Zone
from floeberg.server.sql.statements import parse_statement

ENGINE = duckdb.connect()


def constant(text: str) -> Constant | None:
    tree = parse_statement(f"SELECT {text}").tree
    assert isinstance(tree, exp.Select)
    return constant_of(tree.expressions[0], Zone())


def shown(text: str) -> str | None:
    """Return a sum as DuckDB shows it."""
    match constant(text):
        case Day(days):
            return format_date(days)
        case Stamp(value, zoned=False):
            written = format_timestamp(value // 1000, nanos=False, zoned=False)
            return written.removesuffix(".000000").replace("T", " ")
        case Number(value):
            return str(value)
        case _:
            return None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("DATE '1998-12-01' - INTERVAL '90' DAY", "1998-09-02 00:00:00"),
        ("DATE '1998-12-01' - INTERVAL '90 days'", "1998-09-02 00:00:00"),
        ("DATE '1995-09-01' + INTERVAL 1 MONTH", "1995-10-01 00:00:00"),
        ("INTERVAL (3) MONTHS + DATE '1993-10-31'", "1994-01-31 00:00:00"),
        ("DATE '2024-01-31' + INTERVAL '1' MONTH", "2024-02-29 00:00:00"),
        ("DATE '2024-02-29' - INTERVAL '1' YEAR", "2023-02-28 00:00:00"),
        ("DATE '2024-03-31' + INTERVAL '-4' QUARTER", "2023-03-31 00:00:00"),
        ("TIMESTAMP '2024-01-01 00:00:00' - INTERVAL '1' SECOND", "2023-12-31 23:59:59"),
        ("CAST(DATE '2024-01-01' AS TIMESTAMP) + INTERVAL '36' HOUR", "2024-01-02 12:00:00"),
        ("DATE '2024-01-01' + INTERVAL 1 WEEK + INTERVAL 5 MINUTES", "2024-01-08 00:05:00"),
        ("DATE '1998-12-01' - 90", "1998-09-02"),
        ("90 + DATE '1998-12-01'", "1999-03-01"),
        ("0.06 - 0.01", "0.05"),
        ("1 + 10", "11"),
        ("-(2 - 5)", "3"),
        ("2 + 0.5", "2.5"),
        ("12345678901234567890123.5 - 0.25", "12345678901234567890123.25"),
    ],
)
def test_sums_of_constants_are_constant(text: str, value: str) -> None:
    assert shown(text) == value
    assert_as_duckdb_has_it(text)


@pytest.mark.parametrize(
    "text",
    [
        "a + 1",
        "random() + 1",
        "2147483647 + 1",  # fails
        "3000000000 - 1",
        "30000::SMALLINT + 30000::SMALLINT",  # fails
        "1e0 + 1",
        "0.1 + '1'",
        "12345678901234567890123456789012345678 + 0.5",
        "DATE '2024-01-01' - DATE '2023-01-01'",
        "1 - DATE '2024-01-01'",
        "'2024-01-01' - INTERVAL '1' DAY",
        "TIMESTAMP_NS '2024-01-01 00:00:00' + INTERVAL '1' DAY",
        "TIME '10:00:00' + INTERVAL '1' HOUR",
        "DATE '2024-01-01' + INTERVAL '1.5' DAY",
        "DATE '2024-01-01' + INTERVAL '1 year 2 months'",
        "DATE '2024-01-01' + INTERVAL (a) DAY",
        "DATE '2024-01-01' + INTERVAL '1' CENTURY",
        "DATE '0001-01-01' - INTERVAL '1' MONTH",
        "DATE '0001-01-01' - INTERVAL '1' HOUR",
        "DATE '9999-12-31' + 1",
        "DATE '9999-12-31' + INTERVAL '99999999' YEAR",
        "NULL + 1",
        "2 * 3",
    ],
)
def test_other_sums_are_left_to_the_engine(text: str) -> None:
    assert constant(text) is None


def test_a_sum_of_decimals_has_the_digits_that_duckdb_gives_it() -> None:
    assert constant("0.06 - 0.01") == Number(constant_value("0.05"), 1, 2)
    # an integer counts as one of 10 digits
    assert constant("1.5 + 1") == Number(constant_value("2.5"), 11, 1)


def constant_value(text: str) -> Any:
    found = constant(text)
    assert isinstance(found, Number)
    return found.value


def assert_as_duckdb_has_it(text: str) -> None:
    assert ENGINE.execute(f"SELECT ({text})::VARCHAR").fetchall() == [(shown(text),)], text


@given(st.integers(0, 2**32))
def test_sums_are_what_duckdb_makes_of_them(seed: int) -> None:
    rng = random.Random(seed)
    day = f"DATE '{rng.randint(1900, 2100)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}'"
    base = rng.choice([day, f"{day} + {rng.randint(0, 40)}", f"CAST({day} AS TIMESTAMP)"])
    text = base
    for _ in range(rng.randint(1, 3)):
        unit = rng.choice(["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"])
        sign = rng.choice("+-")
        text = f"({text}) {sign} INTERVAL '{rng.randint(-50, 50)}' {unit}"
    assert_as_duckdb_has_it(text)
    parts = [f"{rng.randint(0, 999)}{rng.choice(['', '.0', '.25', '.125'])}" for _ in range(3)]
    assert_as_duckdb_has_it(f"{parts[0]} - {parts[1]} + {parts[2]}")


ZONES = (
    *("UTC", "Europe/Vienna", "America/New_York", "America/Sao_Paulo", "Asia/Kolkata"),
    *("Australia/Lord_Howe", "Pacific/Apia", "Asia/Tehran", "Africa/Casablanca", "Asia/Gaza"),
    *("America/St_Johns", "Pacific/Chatham", "Europe/Dublin", "Antarctica/Troll"),
)


@pytest.mark.parametrize("zone", ZONES)
def test_instants_move_by_the_calendar_of_the_zone_as_duckdb_has_it(zone: str) -> None:
    rng = random.Random(zone)
    units = ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
    texts = []
    for _ in range(100):
        # in the months in which clocks change
        day = (
            f"{rng.randint(1972, 2036)}-{rng.choice((3, 4, 9, 10, 11)):02}-{rng.randint(1, 28):02}"
        )
        clock = f"{rng.randint(0, 23):02}:{rng.choice(('00', '30', '59'))}:00.5"
        moved = f"{rng.choice('+-')} INTERVAL '{rng.choice((0, 1, 2, 7, 13, 30, 90, -3))}'"
        texts.append(f"TIMESTAMPTZ '{day} {clock}+00' {moved} {rng.choice(units)}")
    with duckdb.connect() as engine:
        engine.execute(f"SET TimeZone = '{zone}'")
        listed = ", ".join(f"epoch_us({text})" for text in texts)
        ((micros,),) = engine.execute(f"SELECT [{listed}]").fetchall()
    folded = 0
    for text, value in zip(texts, micros, strict=True):
        tree = parse_statement(f"SELECT {text}").tree
        assert isinstance(tree, exp.Select)
        constant = constant_of(tree.expressions[0], Zone(zone))
        if constant is not None:
            assert constant == Stamp(value * 1000, zoned=True), text
            folded += 1
    # where the moon decides, only the past is folded
    assert folded > (60 if zone in ("Africa/Casablanca", "Asia/Gaza") else 90)
