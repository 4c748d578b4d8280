from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from floeberg.process.sql.binding import bind_statement
from floeberg.protocol.errors import BadSql, UnsupportedSql

ORDERS = {
    "i0": pa.schema([("id", pa.int64()), ("u", pa.uuid()), ("ts", pa.timestamp("us", tz="UTC"))])
}

EXPRESSIONS = [
    *("true", "1::TINYINT", "1::SMALLINT", "1", "1::BIGINT", "1::HUGEINT", "1::UTINYINT"),
    *("1::USMALLINT", "1::UINTEGER", "1::UBIGINT", "1::FLOAT", "1::DOUBLE", "1.25"),
    *("'x'", "'x'::BLOB", "'1'::JSON", "DATE '2024-01-01'", "TIME '10:00'"),
    *("TIMESTAMP '2024-01-01'", "'2024-01-01'::TIMESTAMP_S", "'2024-01-01'::TIMESTAMP_MS"),
    *("'2024-01-01'::TIMESTAMP_NS", "TIMESTAMPTZ '2024-01-01'", "INTERVAL 1 DAY", "NULL"),
    *("[1, 2]", "[[1.5]]", "{'a': 1, 'b': ['x']}", "MAP {'k': 1}", "array_value(1, 2)"),
    *("sum(1::BIGINT)", "avg(1)", "count(*)", "now()"),
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_column_is_told_the_type_that_duckdb_exports(expression: str) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        exported = connection.sql(f"SELECT {expression} AS c").to_arrow_table().schema

    assert bind_statement(f"SELECT {expression} AS c", {}, "UTC") == exported


def test_uuids_stay_uuids_and_enums_are_text() -> None:
    bound = bind_statement("SELECT u, [u] AS l, 'x'::ENUM('x') AS e FROM i0", ORDERS, "UTC")

    assert bound.types == [pa.uuid(), pa.list_(pa.uuid()), pa.string()]


def test_zoned_times_are_in_utc_whatever_the_zone_of_the_session() -> None:
    bound = bind_statement("SELECT ts, date_trunc('day', ts) FROM i0", ORDERS, "Asia/Tokyo")

    assert bound.types == [pa.timestamp("us", tz="UTC")] * 2


def test_columns_are_called_as_duckdb_calls_them() -> None:
    sql = 'SELECT count(*), id + 1, id AS "a ""b""" FROM i0 GROUP BY ALL'

    assert bind_statement(sql, ORDERS, "UTC").names == ["count_star()", "(id + 1)", 'a "b"']


@pytest.mark.parametrize(
    "expression", ["'1'::BIT", "1::VARIANT", "union_value(k := 1)", "map([NULL], [1])"]
)
def test_what_arrow_has_no_type_for_is_refused(expression: str) -> None:
    with pytest.raises(UnsupportedSql, match=r"column 'c' is of type .*; cast it to VARCHAR"):
        bind_statement(f"SELECT [{expression}] AS c", {}, "UTC")


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT missing FROM i0", r'Referenced column "missing" not found .*\(there is "id"'),
        ("SELECT nothing(1)", "nothing does not exist"),
        ("SELECT id + 'x'::BLOB FROM i0", "No function matches"),
        ("SELECT * FROM i1", "no table 'i1'"),
        ("SELECT sum(id), u FROM i0", "GROUP BY"),
    ],
)
def test_what_would_not_run_is_refused(sql: str, why: str) -> None:
    with pytest.raises(BadSql, match=why):
        bind_statement(sql, ORDERS, "UTC")


def test_no_value_is_computed() -> None:
    # it would take minutes, and fail
    sql = "SELECT (SELECT count(*) FROM range(100_000_000_000)) + ('x'::INT) AS n"

    assert bind_statement(sql, {}, "UTC") == pa.schema([("n", pa.int64())])
