"""DuckDB's exceptions as errors of ours, by the kinds that it writes before its messages."""

from __future__ import annotations

import re

import duckdb
import pytest

from floeberg.process.sql.failing import sql_error
from floeberg.protocol.errors import (
    BadSql,
    Cancelled,
    FloebergError,
    InternalError,
    QueryTooLarge,
    SqlFailed,
    UnsupportedSql,
)


@pytest.mark.parametrize(
    ("sql", "error", "why"),
    [
        ("SELEC 1", BadSql, "syntax error"),
        ("SELECT a", BadSql, 'column "a" was not found'),
        ("SELECT nothing(1)", BadSql, "nothing does not exist"),
        ("SELECT 'x'::INT", SqlFailed, "Could not convert string 'x' to INT32"),
        ("SELECT 2147483647::INT + 1::INT", SqlFailed, "Overflow"),
        ("SELECT error('no')", SqlFailed, "^no$"),
        ("SELECT INTERVAL 1 DAY // INTERVAL 0 DAY", BadSql, "No function matches"),
        ("SELECT * FROM read_csv('/x')", UnsupportedSql, "not available here"),
        ("SELECT TIMESTAMPTZ '2024-01-01' AT TIME ZONE 'x'", UnsupportedSql, "TimeZone 'x'"),
    ],
)
def test_what_running_a_statement_raises_says_whom_it_concerns(
    sql: str, error: type[FloebergError], why: str
) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET enable_external_access = false")
        with pytest.raises(duckdb.Error) as raised:
            connection.execute(sql).fetchall()

    told = sql_error(raised.value, 64 << 20, 0)

    assert type(told) is error
    assert re.search(why, str(told))


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("Invalid type Error: no", SqlFailed),
        ("Mismatch Type Error: no", SqlFailed),
        ("Divide by Zero Error: no", SqlFailed),
        ("Out of Memory Error: no", QueryTooLarge),
        ("INTERRUPT Error: Interrupted!", Cancelled),
        ("INTERNAL Error: no", InternalError),
        ("FATAL Error: no", InternalError),
        ("no", InternalError),
    ],
)
def test_kinds_are_known_as_duckdb_writes_them(message: str, error: type[FloebergError]) -> None:
    assert type(sql_error(duckdb.Error(message), 64 << 20, 0)) is error


def test_neither_advice_nor_a_picture_of_the_statement_is_told() -> None:
    text = 'Binder Error: no a\nCandidate bindings: "b"\n\nLINE 1: SELECT a\n       ^'

    assert str(sql_error(duckdb.Error(text), 64 << 20, 0)) == 'no a (there is "b")'
