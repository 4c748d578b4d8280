"""TPC-H's queries over a fleet answer as DuckDB does over the generator's files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi
import duckdb
import pyarrow.flight as fl
import pytest
import sqlglot
from adbc_driver_manager import dbapi

from floeberg.protocol.sql_tickets import open_sql_ticket
from tests.sql.tpch.generated import QUERIES, over_generated
from tests.sql.tpch.lake import NAMESPACE
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.gate import now_ms
from tests.support.sql import redeemed

ROADS = dict.fromkeys(QUERIES, "engine") | {1: "fragments", 6: "fragments"}
"""How each query is answered."""


@pytest.fixture(scope="module")
def fleet(lake: Path) -> Iterator[LocalFleet]:
    with local_fleet(lake, workers=2) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def cursor(fleet: LocalFleet) -> Iterator[dbapi.Cursor]:
    with (
        adbc_driver_flightsql.dbapi.connect(fleet.location, autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        connection.adbc_current_db_schema = NAMESPACE
        yield cursor


@pytest.fixture(scope="module")
def generated(lake: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with over_generated(lake / NAMESPACE) as engine:
        yield engine


@pytest.mark.parametrize("number", QUERIES)
def test_the_answer_is_duckdbs_over_the_generators_files(
    cursor: dbapi.Cursor, generated: duckdb.DuckDBPyConnection, number: int
) -> None:
    expected = generated.sql(QUERIES[number]).to_arrow_table()

    found = cursor.execute(QUERIES[number]).fetch_arrow_table()

    assert found.column_names == expected.column_names
    assert expected.num_rows > 0
    keys = order_of(QUERIES[number])
    assert found.select(keys).to_pylist() == expected.select(keys).to_pylist()
    for row, other in zip(in_an_order(found), in_an_order(expected), strict=True):
        assert all(map(is_same, row, other)), (row, other)


def order_of(text: str) -> list[str]:
    """Return the columns that a query's rows are in the order of."""
    order = sqlglot.parse_one(text, dialect="duckdb").args.get("order")
    return [] if order is None else [each.this.name for each in order.expressions]


def in_an_order(rows: Any) -> list[Sequence[Any]]:
    """Return rows in an order that does not depend on what is rounded."""

    def key(row: Sequence[Any]) -> list[str]:
        return [repr(value) for value in row if not isinstance(value, float)]

    return sorted((list(row.values()) for row in rows.to_pylist()), key=key)


def is_same(value: Any, other: Any) -> bool:
    """Say whether values are the same, but for how floats are rounded, whose sums have no order."""
    if isinstance(value, float) and isinstance(other, float):
        return math.isclose(value, other, rel_tol=1e-9)
    return bool(value == other)


@pytest.mark.parametrize("number", QUERIES)
def test_each_query_takes_its_road(cursor: dbapi.Cursor, number: int) -> None:
    (item, road), *_ = cursor.execute(f"EXPLAIN {QUERIES[number]}").fetchall()

    assert (item, road.partition(":")[0]) == ("road", ROADS[number])


@pytest.mark.parametrize("number", [n for n, road in ROADS.items() if road == "fragments"])
def test_both_workers_compute_parts_of_the_answer(
    fleet: LocalFleet, cursor: dbapi.Cursor, number: int
) -> None:
    (whole,), _ = cursor.adbc_execute_partitions(QUERIES[number])

    (endpoint,) = fl.FlightInfo.deserialize(whole).endpoints
    merge = open_sql_ticket(endpoint.ticket.ticket, fleet.keys, now_ms=now_ms())
    (parts,) = merge.inputs
    computed = {worker.location: 0 for worker in fleet.workers}
    for part in parts.endpoints:
        fragment = open_sql_ticket(part.ticket, fleet.keys, now_ms=now_ms())
        (scan,) = fragment.inputs
        # the worker that computes the part is to read its rows, too
        assert {at.locations[0] for at in scan.endpoints} == {part.locations[0]}
        assert "sum(" in fragment.sql.lower()
        computed[part.locations[0]] += redeemed(part.locations[0], part.ticket).num_rows
    assert all(computed.values()), computed
