from __future__ import annotations

import decimal
import threading
from dataclasses import replace
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from floeberg.client import Lake, Progress, RetryPolicy, connect
from floeberg.client.query import row_of
from floeberg.protocol.errors import (
    BadCommand,
    BadRequest,
    ConflictingSnapshot,
    FloebergError,
    ServerUnavailable,
    Unauthenticated,
    UnknownTable,
)
from tests.support.breaking import BreakingRead
from tests.support.callers import ANN, password_file, token_file
from tests.support.fleet import local_fleet
from tests.support.lake import TableWriter
from tests.support.orders import live_ids
from tests.support.rows import assert_same_rows

QUERY = "SELECT * FROM db.orders"


def test_a_query_gives_its_rows_in_every_form(lake: Lake):
    query = lake.sql(QUERY)
    expected = lake.table("db.orders").scan().to_arrow()

    rows = query.to_arrow()

    assert rows.schema == query.schema() == expected.schema
    assert_same_rows(rows, expected)
    assert_same_rows(pa.Table.from_batches(query.to_batches(), schema=rows.schema), expected)
    assert_same_rows(query.to_reader().read_all(), expected)
    assert sorted(query.to_pandas()["id"]) == sorted(query.to_polars()["id"]) == list(live_ids())


def test_what_is_computed_comes_in_the_order_that_was_asked_for(lake: Lake):
    ids = list(live_ids())

    newest = lake.sql("SELECT id FROM db.orders ORDER BY id DESC").to_arrow()
    counted = lake.sql("SELECT count(*) AS n, max(id) AS most FROM db.orders").to_arrow()

    assert newest["id"].to_pylist() == ids[::-1]
    assert counted.to_pylist() == [{"n": len(ids), "most": max(ids)}]
    explained = lake.sql("EXPLAIN SELECT id FROM db.orders").to_arrow().to_pylist()
    assert explained[0]["item"] == "road"


def test_a_query_tells_how_far_it_is(lake: Lake):
    told: list[Progress] = []

    rows = lake.sql(QUERY, on_progress=told.append).to_arrow()

    assert sum(p.rows for p in told) == rows.num_rows


def test_reading_can_end_early(lake: Lake):
    batches = lake.sql(QUERY).to_batches()
    next(batches)
    batches.close()

    assert next(batches, None) is None
    assert not [t for t in threading.enumerate() if t.name.startswith("floeberg-read")]


# --- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 3, 10_000])
def test_parameters_take_the_places_of_question_marks(lake: Lake, rows: int):
    query = lake.sql(f"{QUERY} LIMIT ?", [rows])

    assert query.to_arrow().num_rows == min(rows, len(list(live_ids())))
    assert query.schema() == lake.sql(QUERY).schema()


def test_values_travel_as_what_they_are():
    values: list[Any] = [
        *(True, -(1 << 63), 0.5, decimal.Decimal("1.50"), "ü", b"\x00", None),
        *(date(2024, 2, 29), time(12, 30), datetime(2024, 2, 29, 12, 30)),
        *(datetime(2024, 2, 29, 12, 30, tzinfo=UTC), UUID(int=7)),
    ]

    row = row_of(values)

    assert row is not None
    assert list(row.to_pylist()[0].values()) == values
    assert row.schema.names == [str(n) for n in range(len(values))]
    assert row_of([]) is row_of(()) is row_of(None) is None


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ("x", "a list of values"),
        ({"a": 1}, "a list of values"),
        ([1, object()], "parameter 2, of type object"),
        ([1 << 70], "parameter 1, of type int"),
        (["\ud800"], "parameter 1, of type str"),
        ([["\ud800"]], "parameter 1, of type list"),
    ],
)
def test_what_is_no_value_is_refused_before_anything_is_asked(
    lake: Lake, parameters: Any, why: str
):
    with pytest.raises(BadCommand, match=why):
        lake.sql(QUERY, parameters)


def test_text_that_can_not_be_sent_is_refused_before_anything_is_asked(lake: Lake):
    with pytest.raises(BadCommand, match="the statement holds half"):
        lake.sql("SELECT '\ud800'")
    with pytest.raises(BadCommand, match="ref holds half"):
        lake.sql(QUERY, ref="\ud800")


def test_a_parameter_that_is_missing_is_told(lake: Lake):
    with pytest.raises(BadRequest, match="parameter"):
        lake.sql(f"{QUERY} LIMIT ?").to_arrow()


@pytest.mark.parametrize("limit", [1, 17, 23])
def test_a_limit_is_kept_when_a_stream_is_resumed(warehouse: Path, limit: int):
    def gone() -> Exception:
        return ServerUnavailable("the worker went away")

    with local_fleet(warehouse, workers=0, batch_bytes=1024) as fleet:
        for _ in range(2):
            fleet.add_worker(BreakingRead(2, gone))
        with connect(fleet.location) as lake:
            query = lake.sql(f"{QUERY} LIMIT ?", [limit])
            policy = RetryPolicy(base_seconds=0)
            hasty = replace(query, reading=replace(query.reading, policy=policy))

            assert hasty.to_arrow().num_rows == limit


# --- options -------------------------------------------------------------------------------------


def test_options_say_where_names_are_looked_up_and_what_is_read(lake: Lake, warehouse: Path):
    metadata = TableWriter.open(warehouse / "db" / "orders").metadata
    tagged = metadata["refs"]["v1"]["snapshot-id"]
    at_ms = next(s["timestamp-ms"] for s in metadata["snapshots"] if s["snapshot-id"] == tagged)
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    expected = lake.table("db.orders").scan(ref="v1").to_arrow()

    for chosen in (
        {"ref": "v1"},
        {"snapshot_id": tagged},
        {"as_of": at_ms},
        {"as_of": at},
        {"as_of": at.isoformat(), "timezone": "Europe/Vienna"},
    ):
        query = lake.sql("SELECT * FROM orders", catalog="warehouse", schema="db", **chosen)  # type: ignore[arg-type]
        assert_same_rows(query.to_arrow(), expected)


def test_queries_with_parameters_have_options_too(lake: Lake):
    rows = lake.sql("SELECT * FROM orders LIMIT ?", [2], schema="db", ref="v1").to_arrow()

    assert rows.num_rows == 2


def test_options_are_sealed_once_for_many_queries(lake: Lake, monkeypatch: pytest.MonkeyPatch):
    query = lake.sql("SELECT * FROM orders", schema="db")
    connection = query.reading.connection
    dialled: list[str] = []
    own_client = connection.own_client

    def noting(location: str, middleware: Any) -> Any:
        dialled.append(location)
        return own_client(location, middleware)

    monkeypatch.setattr(connection, "own_client", noting)
    for _ in range(3):
        query.to_arrow()

    assert dialled == [connection.location]


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        ({"catalog": "nope"}, BadRequest, "catalog='nope' is refused: write one that"),
        ({"timezone": "Mars/Olympus"}, BadRequest, "timezone='Mars/Olympus' is refused"),
        ({"ref": "v1", "snapshot_id": 1}, ConflictingSnapshot, "snapshot_id"),
        ({"as_of": "yesterday"}, BadCommand, "as_of 'yesterday' is neither"),
        ({"as_of": datetime(2025, 1, 1)}, BadCommand, "no offset"),
    ],
)
def test_options_that_are_wrong_are_named(
    lake: Lake, options: Any, error: type[FloebergError], why: str
):
    with pytest.raises(error, match=why):
        lake.sql(QUERY, **options).to_arrow()


# --- errors and callers --------------------------------------------------------------------------


def test_what_is_wrong_with_a_statement_has_its_own_error(lake: Lake):
    for ask in (
        lake.sql("SELECT * FROM db.ordrs").schema,
        lake.sql("SELECT * FROM db.ordrs").planned,
    ):
        with pytest.raises(UnknownTable, match=r"db\.ordrs"):
            ask()


@pytest.mark.parametrize("shown", [{"token": ANN}, {"username": "ann", "password": "a pass word"}])
def test_a_caller_that_is_known_queries_with_options_and_parameters(
    warehouse: Path, tmp_path: Path, shown: dict[str, str]
):
    auth: dict[str, object] = {
        "auth_tokens": token_file(tmp_path),
        "auth_passwords": password_file(tmp_path, ann="a pass word"),
    }
    with local_fleet(warehouse, workers=0, **auth) as fleet:
        fleet.add_worker(**auth)
        with connect(fleet.location) as nobody, pytest.raises(Unauthenticated):
            nobody.sql(QUERY, schema="db").to_arrow()
        with connect(fleet.location, **shown) as lake:  # type: ignore[arg-type]
            query = lake.sql("SELECT * FROM orders LIMIT ?", [5], schema="db")

            assert query.to_arrow().num_rows == 5
