"""Answers of statements on real workers, over tickets of scans that a coordinator has planned."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.protocol.sql_tickets import SqlSettings
from floeberg.protocol.tickets import Origin
from tests.support.fleet import LocalFleet
from tests.support.sql import (
    by_duckdb,
    input_of,
    planned,
    read_planned,
    redeemed,
    same_rows,
    sealed_sql,
)

COUNT = pa.schema([("n", pa.int64())])


STATEMENTS = [
    "SELECT * FROM i0",
    "SELECT id, who + 1 AS next FROM i0 WHERE id % 2 = 0 AND who IS NOT NULL",
    "SELECT count(*) AS n FROM i0",
    "SELECT who, count(*) AS n, sum(id) AS s, avg(price) AS a, min(note) AS m FROM i0 GROUP BY who",
    "SELECT sum(price) AS s, max(x) AS m FROM i0 WHERE id BETWEEN 500 AND 1500",
    "SELECT name, count(*) AS n FROM i0 JOIN i1 USING (who) GROUP BY name HAVING count(*) > 100",
    "SELECT a.id, b.id AS other FROM i0 a JOIN i0 b ON a.id = b.id + 1 WHERE b.who = 3",
    "SELECT i1.who, name FROM i1 WHERE who NOT IN (SELECT who FROM i0 WHERE who IS NOT NULL)",
    "SELECT id, row_number() OVER (PARTITION BY who ORDER BY id DESC) AS r FROM i0 QUALIFY r <= 2",
    "WITH c AS (SELECT who, max(id) AS m FROM i0 GROUP BY who) SELECT * FROM i0, c WHERE id = m",
    "SELECT who FROM i1 UNION ALL SELECT id FROM i2",
    "SELECT id, x FROM i0 WHERE x < 10 OR x IS NULL",
    "SELECT name FROM i2",
    "SELECT max(id) AS m, count(name) AS n FROM i2",
    "SELECT 1 AS one, 'a' AS text",
]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_answer_is_duckdbs_over_the_tables_read_as_a_whole(fleet: LocalFleet, sql: str) -> None:
    infos = {
        f"i{n}": planned(fleet.location, table)
        for n, table in enumerate(["db.orders", "db.people", "db.empty"])
    }
    expected = by_duckdb(sql, {name: read_planned(info) for name, info in infos.items()})
    inputs = [input_of(info, name) for name, info in infos.items()]
    raw = sealed_sql(fleet.keys, sql, expected.schema, *inputs)

    for location in (fleet.workers[0].location, fleet.workers[1].location, fleet.location):
        found = redeemed(location, raw)
        assert found.schema.equals(expected.schema)
        assert same_rows(found, expected)


def test_rows_come_in_the_order_that_is_asked_for(fleet: LocalFleet) -> None:
    info = planned(fleet.location, "db.orders")
    sql = "SELECT id FROM i0 ORDER BY who DESC NULLS LAST, id LIMIT 400 OFFSET 5"
    raw = sealed_sql(fleet.keys, sql, pa.schema([("id", pa.int64())]), input_of(info))

    found = redeemed(fleet.workers[0].location, raw)

    assert found.equals(by_duckdb(sql, {"i0": read_planned(info)}))


def test_every_type_comes_back_as_a_scan_gives_it(fleet: LocalFleet) -> None:
    info = planned(fleet.location, "db.types")
    raw = sealed_sql(fleet.keys, "SELECT * FROM i0", info.schema, input_of(info))

    found = redeemed(fleet.workers[0].location, raw)

    assert found.schema.equals(info.schema, check_metadata=True)
    # some dates are none of Python's
    assert found.sort_by("int").equals(read_planned(info).sort_by("int"))


def test_sums_come_as_they_were_told_and_times_are_in_the_zone_that_was_asked_for(
    fleet: LocalFleet,
) -> None:
    told = pa.schema(
        [pa.field("s", pa.int64(), False), ("day", pa.timestamp("us", "UTC")), ("t", pa.string())]
    )
    sql = (
        "SELECT sum(id) AS s, date_trunc('day', TIMESTAMPTZ '2024-01-01 20:00:00+00') AS day,"
        " hour(TIMESTAMPTZ '2024-01-01 20:00:00+00')::VARCHAR AS t FROM i0 WHERE id < 3"
    )
    raw = sealed_sql(
        fleet.keys,
        sql,
        told,
        input_of(planned(fleet.location, "db.orders")),
        settings=SqlSettings("Asia/Tokyo"),
    )

    found = redeemed(fleet.workers[0].location, raw)

    assert found.schema.equals(told)
    assert found["s"].to_pylist() == [3]
    assert found["day"].cast(pa.int64()).to_pylist() == [1_704_121_200_000_000]
    assert found["t"].to_pylist() == ["5"]


def test_columns_that_are_not_read_and_rows_without_any(fleet: LocalFleet) -> None:
    info = planned(fleet.location, "db.orders", select=[])
    raw = sealed_sql(fleet.keys, "SELECT count(*) AS n FROM i0", COUNT, input_of(info))

    rows = read_planned(planned(fleet.location, "db.orders")).num_rows
    assert redeemed(fleet.workers[0].location, raw)["n"].to_pylist() == [rows]


def test_batches_are_small_and_say_no_place(fleet: LocalFleet) -> None:
    told = pa.schema([("n", pa.int64())])
    raw = sealed_sql(
        fleet.keys,
        "SELECT range AS n FROM range(100000)",
        told,
        settings=SqlSettings(batch_bytes=8192),
    )

    with fl.connect(fleet.workers[0].location) as client:
        chunks = list(client.do_get(fl.Ticket(raw)))

    assert sum(chunk.data.num_rows for chunk in chunks) == 100_000
    assert max(chunk.data.nbytes for chunk in chunks) <= 2 * 8192
    assert all(chunk.app_metadata is None for chunk in chunks)


def test_status_and_metrics_show_a_statement_as_they_show_a_scan(fleet: LocalFleet) -> None:
    info = planned(fleet.location, "db.orders")
    raw = sealed_sql(
        fleet.keys,
        "SELECT count(*) AS n FROM i0",
        COUNT,
        input_of(info),
        principal="ann",
        origin=Origin("q-1", "r-1", "warehouse.db.orders"),
    )
    redeemed(fleet.workers[0].location, raw)

    entry = fleet.workers[0].status()["recent"][0]  # type: ignore[index]

    assert entry["table"] == "warehouse.db.orders"
    assert (entry["principal"], entry["request_id"]) == ("ann", "r-1")
    assert (entry["rows"], entry["outcome"]) == (1, "done")
    assert entry["task"] == entry["tasks"] == len(info.endpoints)
