"""Counts of a scan's rows, as metadata may know them."""

from __future__ import annotations

import duckdb
import pytest

from floeberg.protocol.expressions.json_form import expression_to_json
from floeberg.protocol.schema import Schema
from floeberg.server.sql.counted import Counted, counted
from floeberg.server.sql.instants import Zone
from floeberg.server.sql.names import Session
from floeberg.server.sql.statements import parse_statement
from tests.support.lake import required
from tests.support.lake import schema as lake_schema

SCHEMA = Schema.from_json(
    lake_schema({"id": required("long"), "i": "int", "day": "date", "s": "string"})
)


def count_of(text: str) -> Counted | None:
    session = Session(["lake"], "lake", ("db",), zone=Zone("UTC"))
    return counted(parse_statement(text), session, lambda _: SCHEMA)


@pytest.mark.parametrize(
    ("text", "filter_", "columns"),
    [
        ("SELECT count(*) FROM t", ["true"], 1),
        ("SELECT COUNT(*) AS n, count(1) FROM db.t AS x", ["true"], 2),
        ("SELECT count() FROM t WHERE i > 3", [">", "i", 3], 1),
        ("SELECT count(*) FROM (SELECT * FROM t WHERE i > 3) q", [">", "i", 3], 1),
        ("(SELECT count(*) FROM t)", ["true"], 1),
        ("SELECT count(*) FROM (SELECT i AS k FROM t) q WHERE q.k > 3", [">", "i", 3], 1),
    ],
)
def test_a_count_of_rows_is_known_by_its_scan(text: str, filter_: object, columns: int) -> None:
    found = count_of(text)

    assert found is not None
    told = expression_to_json(found.scan.filter)
    assert (told, found.columns) == (filter_, columns)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(i) FROM t",
        "SELECT count(*), max(i) FROM t",
        "SELECT count(*) + 1 FROM t",
        "SELECT count(NULL) FROM t",
        "SELECT count(DISTINCT 1) FROM t",
        "SELECT count(*) FILTER (WHERE i > 1) FROM t",
        "SELECT count(*) FROM t GROUP BY i",
        "SELECT count(*) FROM t HAVING count(*) > 1",
        "SELECT count(*) FROM t WHERE s LIKE '%x%'",
        "SELECT count(*) FROM t LIMIT 0",
        "SELECT count(*) FROM (SELECT i FROM t LIMIT 3) q",
        "SELECT count(*) FROM (SELECT DISTINCT i FROM t) q",
        "SELECT count(*) FROM t, t AS u",
        "SELECT count(*) OVER () FROM t",
        "SELECT 1 FROM t",
        "SELECT count(*)",
        "DESCRIBE t",
    ],
)
def test_other_queries_are_no_counts(text: str) -> None:
    assert count_of(text) is None


@pytest.mark.parametrize("shares", [0, 1, 3])
def test_what_metadata_counts_is_added_to_what_is_read(shares: int) -> None:
    found = count_of("SELECT count(*), count(1) FROM t")
    assert found is not None
    fragments = found.fragments("i0", 40)

    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE i0 AS SELECT 1 AS i FROM range(2)")
        part = connection.sql(fragments.fragment).fetchall()
        connection.execute(f"CREATE TABLE {fragments.name} (c0 BIGINT)")
        for _ in range(shares):
            connection.execute(f"INSERT INTO {fragments.name} VALUES (?)", part[0])
        answer = connection.sql(str(fragments.merge))

        assert [str(type_) for type_ in answer.types] == ["BIGINT", "BIGINT"]
        assert answer.fetchall() == [(40 + 2 * shares,) * 2]
