from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb
import pytest

from floeberg.process.sql.checking import TABLE_FUNCTIONS
from floeberg.protocol.errors import BadSql, ReadOnly, UnsupportedSql
from floeberg.server.sql.functions import is_refused
from floeberg.server.sql.statements import Kind, parse_statement


@pytest.mark.parametrize(
    ("text", "kind", "sql"),
    [
        ("SELECT 1", Kind.QUERY, "SELECT 1"),
        (
            "WITH a AS (SELECT 1) SELECT * FROM a",
            Kind.QUERY,
            "WITH a AS (SELECT 1) SELECT * FROM a",
        ),
        ("VALUES (1), (2)", Kind.QUERY, "VALUES (1), (2)"),
        ("SELECT 1 UNION SELECT 2", Kind.QUERY, "SELECT 1 UNION SELECT 2"),
        ("FROM t", Kind.QUERY, "SELECT * FROM t"),
        ("TABLE t", Kind.QUERY, "SELECT * FROM t"),
        ("SHOW TABLES", Kind.SHOW_TABLES, ""),
        ("SHOW TABLES FROM a.b", Kind.SHOW_TABLES, "a.b"),
        ("show tables in a.b;", Kind.SHOW_TABLES, "a.b"),
        ("SHOW ALL TABLES", Kind.SHOW_ALL_TABLES, ""),
        ("SHOW SCHEMAS", Kind.SHOW_SCHEMAS, ""),
        ('SHOW SCHEMAS FROM "my lake"', Kind.SHOW_SCHEMAS, '"my lake"'),
        ("Show Schemas In lake", Kind.SHOW_SCHEMAS, "lake"),
        ("SHOW DATABASES", Kind.SHOW_DATABASES, ""),
        ("SHOW CATALOGS;", Kind.SHOW_DATABASES, ""),
        ("DESCRIBE db.t", Kind.DESCRIBE, "db.t"),
        ("DESC SELECT 1", Kind.DESCRIBE, "SELECT 1"),
    ],
)
def test_statements_that_read_are_taken(text: str, kind: Kind, sql: str) -> None:
    statement = parse_statement(text)

    assert (statement.kind, statement.sql()) == (kind, sql)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM read_parquet('x.parquet')", "reads files"),
        ("SELECT * FROM READ_CSV_AUTO('x')", "reads files"),
        ("SELECT * FROM parquet_metadata('x')", "reads files"),
        ("SELECT * FROM a, glob('*')", "reads files"),
        ("SELECT * FROM a, LATERAL glob(a.x)", "reads files"),
        ("SELECT * FROM a WHERE x IN (SELECT * FROM read_text('/etc/passwd'))", "reads files"),
        ("WITH a AS (FROM read_blob('x')) SELECT 1", "reads files"),
        ("SELECT * FROM duckdb_settings()", "'duckdb_settings'"),
        ("SELECT * FROM pragma_version()", "'pragma_version'"),
        ("SELECT * FROM query('SELECT 1')", "'query'"),
        ("SELECT * FROM query_table(['a'])", "'query_table'"),
        ("SELECT getenv('HOME')", "'getenv'"),
        ("SELECT 'HOME'.getenv()", "'getenv'"),
        ("SELECT GetEnv('HOME')", "'getenv'"),
        ("SELECT current_setting('threads')", "'current_setting'"),
        ("SELECT list_transform([1], x -> getvariable('a'))", "'getvariable'"),
        ("SELECT sleep_ms(100000)", "'sleep_ms'"),
        ("SELECT 1 ORDER BY nextval('s')", "'nextval'"),
        ("SELECT * FROM t FOR UPDATE", "leave out FOR UPDATE"),
        ("SELECT * FROM (DESCRIBE t)", "by itself"),
        ("SELECT * FROM (SUMMARIZE t)", "SUMMARIZE inside"),
        ("SUMMARIZE t", r"SELECT min\(a\), max\(a\) FROM t"),
        ("EXPLAIN SHOW TABLES", "EXPLAIN tells the plan of a query"),
        ("EXPLAIN DESCRIBE t", "EXPLAIN tells the plan of a query"),
        ("SELECT * FROM ONLY t", "ONLY"),
        ("SELECT $name", "'name'"),
        ("SELECT * FROM t@audit", '"t@audit"'),
        ("SELECT * FROM t WHERE a = :x", "'x'"),
        ("SELECT $1001", "between"),
        ("SELECT $0", "between"),
    ],
)
def test_what_is_not_served_is_refused_with_what_to_do(text: str, message: str) -> None:
    with pytest.raises(UnsupportedSql, match=message):
        parse_statement(text)


@pytest.mark.parametrize(
    "text",
    [
        "WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a",
        "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
        "SELECT a INTO b FROM t",
    ],
)
def test_a_change_inside_of_a_query_is_refused(text: str) -> None:
    with pytest.raises(ReadOnly):
        parse_statement(text)


REVIEWED = {"error", "gen_random_uuid", "random", "uuid", "uuidv4", "uuidv7"}
"""Functions that give another value each time, looked at and let through."""


def test_every_function_of_the_engine_that_is_volatile_was_looked_at() -> None:
    found = duckdb.sql(
        "SELECT DISTINCT function_name FROM duckdb_functions()"
        " WHERE stability = 'VOLATILE' AND function_type = 'scalar'"
    ).fetchall()

    assert {name for (name,) in found if not is_refused(name)} <= REVIEWED


def test_the_table_functions_that_are_served_read_nothing() -> None:
    connection = duckdb.connect(config={"enable_external_access": False})
    for name in TABLE_FUNCTIONS:
        argument = "'[1]'" if name.startswith("json") else "[1]" if name == "unnest" else "1, 2"
        connection.sql(f"SELECT * FROM {name}({argument})").fetchall()


def test_parameters_count_by_their_place_in_the_text() -> None:
    statement = parse_statement("WITH a AS (SELECT ? AS x) SELECT ?::int, x FROM a LIMIT ?")

    assert statement.parameters == 3
    assert statement.bind(["a", "7", 2]).sql() == (
        "WITH a AS (SELECT 'a' AS x) SELECT CAST('7' AS INT), x FROM a LIMIT 2"
    )


def test_a_numbered_parameter_may_stand_more_than_once() -> None:
    statement = parse_statement("SELECT $2, $1, $2")

    assert statement.bind([1, 2]).sql() == "SELECT 2, 1, 2"


VALUES: list[Any] = [
    None,
    True,
    7,
    -7,
    2**63,
    1.5,
    -0.0,
    1e300,
    1e-7,
    float("inf"),
    Decimal("-14.20"),
    Decimal("1E+3"),
    "it's; DROP TABLE t --",
    "ü\n\\",
    b"\x00\xff'\\",
    b"",
    date(2024, 2, 29),
    time(22, 31, 8, 123456),
    datetime(2024, 2, 29, 22, 31, 8, 123456),
    datetime(2024, 2, 29, 22, 31, 8, tzinfo=UTC),
    UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_bound_value_is_that_value_to_the_engine(value: Any) -> None:
    sql = parse_statement("SELECT 1 - ?, ?" if type(value) is int else "SELECT 1, ?")
    sql = sql.bind([value] * sql.parameters)
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")

    (row,) = connection.sql(sql.sql()).fetchall()

    got = row[1]
    assert (got.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else got) == value
    if type(value) is int:
        assert row[0] == 1 - value


def test_another_number_of_values_is_refused() -> None:
    with pytest.raises(BadSql, match="statement: 1, values given: 2"):
        parse_statement("SELECT ?").bind([1, 2])


def test_a_value_that_has_no_literal_is_refused() -> None:
    values: list[Any] = [[1, 2]]
    with pytest.raises(UnsupportedSql, match="type list"):
        parse_statement("SELECT ?").bind(values)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT ?", "x" * (1 << 20)),
        ("SELECT ?", b"x" * (1 << 18)),
        ("SELECT $1, $1", "x" * 600_000),
    ],
)
def test_values_that_make_a_statement_too_long_are_refused(sql: str, value: str | bytes) -> None:
    with pytest.raises(UnsupportedSql, match=r"take 1,.* characters where they stand.*; join"):
        parse_statement(sql).bind([value])
