"""The demo's lake: three Iceberg tables in a directory, with the same rows at every run.

- `nyc.trips`, by PyIceberg: taxi-like trips of 24 months, a month a partition. After the first
year, which
  a tag remembers, a column was added, one renamed and one widened; a branch holds a correction.
- `shop.orders`, by PyIceberg, then merge-on-read: position and equality deletes to be applied.
- `shop.events`, Iceberg v3 with deletion vectors.

PyIceberg writes no such deletes, so they come from the writer that the tests use too.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform, MonthTransform
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)

from tests.support.lake import FileLayout, TableWriter, required, schema, struct

FIRST_YEAR = 2023
MONTHS = 24
TRIPS_A_MONTH = 83_334
TRIPS_TAG = "first-year"
TRIPS_BRANCH = "audit"

ORDERS_A_BATCH = 60_000
ORDERS_TAG = "before-deletes"
FORGOTTEN_CUSTOMERS = 40

EVENT_DAYS = 5
EVENTS_A_DAY = 20_000

_SEED = 8815
_MONEY = pa.decimal128(9, 2)


@dataclass(frozen=True)
class Progress:
    """How far the writing of one table has come."""

    table: str
    done: int
    steps: int


def is_complete(warehouse: Path) -> bool:
    """Say whether a whole lake of this recipe stands there."""
    marker = _marker(warehouse)
    return marker.exists() and marker.read_text() == _recipe(warehouse)


def write(warehouse: Path) -> Iterator[Progress]:
    """Write the lake anew; it counts as complete when the iterator has ended."""
    _marker(warehouse).unlink(missing_ok=True)
    if warehouse.exists():
        shutil.rmtree(warehouse)
    warehouse.mkdir(parents=True)
    # it serves for writing only: what floeberg serves is the warehouse's directories
    catalog = SqlCatalog("demo", uri="sqlite:///:memory:")
    try:
        yield from _write_trips(catalog, warehouse)
        yield from _write_orders(catalog, warehouse)
    finally:
        catalog.close()
    yield from _write_events(warehouse)
    _marker(warehouse).write_text(_recipe(warehouse))


def _marker(warehouse: Path) -> Path:
    return warehouse.with_name(warehouse.name + ".complete")


def _recipe(warehouse: Path) -> str:
    # the place too, since Iceberg's metadata holds absolute paths
    return f"{warehouse.absolute()}\n{hashlib.sha256(Path(__file__).read_bytes()).hexdigest()}\n"


def _fields(*columns: tuple[str, Any]) -> Schema:
    return Schema(*(NestedField(i, n, t, required=False) for i, (n, t) in enumerate(columns, 1)))


def _table(columns: dict[str, Any]) -> pa.Table:
    """Return a table of numpy and Arrow arrays."""
    return pa.table(columns)


def _money(cents: npt.NDArray[np.int64]) -> pa.Array[Any]:
    # a decimal is its number of cents, so no division is needed
    low = cents.astype("<i8")
    both = np.column_stack([low, low >> 63])
    wide = pa.Array.from_buffers(
        pa.decimal128(18, 2), len(low), [None, pa.py_buffer(both.tobytes())]
    )
    return wide.cast(_MONEY)


# --- nyc.trips ------------------------------------------------------------------------------------


def _write_trips(catalog: SqlCatalog, warehouse: Path) -> Iterator[Progress]:
    columns = _fields(
        ("trip_id", LongType()),
        ("picked_up_at", TimestampType()),
        ("dropped_off_at", TimestampType()),
        ("passengers", IntegerType()),
        ("distance", DoubleType()),
        ("zone", IntegerType()),
        ("pay_type", StringType()),
        ("fare", DecimalType(9, 2)),
        ("tip", DecimalType(9, 2)),
    )
    by_month = PartitionSpec(PartitionField(2, 1000, MonthTransform(), "picked_up_month"))
    catalog.create_namespace("nyc")
    location = f"file://{warehouse.absolute()}/nyc/trips"
    table = catalog.create_table("nyc.trips", columns, location, by_month)
    rng = np.random.default_rng(_SEED)
    trips = pa.table({})
    for number in range(MONTHS):
        if number == 12:
            _evolve_trips(table)
        trips = _trips(number, rng)
        table.append(trips)
        yield Progress("nyc.trips", number + 1, MONTHS + 1)
    _correct_trips(table, trips)
    yield Progress("nyc.trips", MONTHS + 1, MONTHS + 1)


def _trips(number: int, rng: np.random.Generator) -> pa.Table:
    """Return the trips of one month, in order of pickup."""
    month = np.datetime64(f"{FIRST_YEAR}-01", "M") + number
    start, end = (m.astype("datetime64[us]") for m in (month, month + 1))
    rows = TRIPS_A_MONTH
    seconds = (end - start).astype("timedelta64[s]").astype(np.int64)
    pickup = start + np.sort(rng.integers(0, seconds, rows)) * 1_000_000
    distance = np.round(rng.gamma(1.6, 2.4, rows) + 0.3, 2)
    minutes = distance * rng.uniform(2.0, 5.5, rows) + 2
    fares = (300 + distance * 175 + minutes * 50).astype(np.int64)
    tips = np.where(rng.random(rows) < 0.6, fares * rng.integers(0, 31, rows) // 100, 0)
    payments = np.array(["card", "cash", "app", "voucher"])
    is_evolved = number >= 12
    columns: dict[str, Any] = {
        "trip_id": np.arange(number * rows, (number + 1) * rows),
        "picked_up_at": pickup,
        "dropped_off_at": pickup + (minutes * 60e6).astype("timedelta64[us]"),
        "passengers": rng.integers(1, 7, rows).astype(np.int64 if is_evolved else np.int32),
        "distance": distance,
        "zone": rng.integers(1, 266, rows).astype(np.int32),
        "payment" if is_evolved else "pay_type": payments[
            rng.choice(4, rows, p=[0.62, 0.24, 0.11, 0.03])
        ],
        "fare": _money(fares),
        "tip": _money(tips),
    }
    if is_evolved:
        columns["congestion_fee"] = _money(np.where(rng.random(rows) < 0.3, 275, 0))
    return _table(columns)


def _evolve_trips(table: Table) -> None:
    table.manage_snapshots().create_tag(_head(table), TRIPS_TAG).commit()
    with table.update_schema() as update:
        update.add_column("congestion_fee", DecimalType(9, 2))
        update.rename_column("pay_type", "payment")
        update.update_column("passengers", LongType())


def _correct_trips(table: Table, last_month: pa.Table) -> None:
    """On a branch, take back the tips of the last month."""
    table.manage_snapshots().create_branch(_head(table), TRIPS_BRANCH).commit()
    without_tips = _money(np.zeros(len(last_month), np.int64))
    corrected = last_month.set_column(last_month.column_names.index("tip"), "tip", without_tips)
    month = np.datetime64(f"{FIRST_YEAR}-01", "M") + MONTHS - 1
    table.overwrite(corrected, f"picked_up_at >= '{month}-01T00:00:00'", branch=TRIPS_BRANCH)


def _head(table: Table) -> int:
    snapshot = table.current_snapshot()
    assert snapshot is not None, "the table has just been written to"
    return snapshot.snapshot_id


# --- shop.orders ----------------------------------------------------------------------------------


def _write_orders(catalog: SqlCatalog, warehouse: Path) -> Iterator[Progress]:
    columns = _fields(
        ("order_id", LongType()),
        ("customer_id", LongType()),
        ("placed_at", TimestamptzType()),
        ("region", StringType()),
        ("status", StringType()),
        ("amount", DecimalType(9, 2)),
    )
    by_region = PartitionSpec(PartitionField(4, 1000, IdentityTransform(), "region"))
    catalog.create_namespace("shop")
    location = f"file://{warehouse.absolute()}/shop/orders"
    table = catalog.create_table("shop.orders", columns, location, by_region)
    rng = np.random.default_rng(_SEED + 1)
    for batch in range(2):
        table.append(_orders(batch, rng))
        yield Progress("shop.orders", batch + 1, 5)

    orders = TableWriter.open(warehouse / "shop" / "orders", clock=_now_ms)
    orders.tag(ORDERS_TAG)
    cancelled = {
        file: [
            i
            for i, status in enumerate(_column(orders, file.location, "status"))
            if status == "cancelled"
        ]
        for file in orders.files()
    }
    orders.delete_positions(cancelled, layout=FileLayout(row_group_size=50_000))
    yield Progress("shop.orders", 3, 5)
    forgotten = _table({"customer_id": np.arange(FORGOTTEN_CUSTOMERS) * 7})
    orders.delete_equal(forgotten, ["customer_id"])
    yield Progress("shop.orders", 4, 5)
    # newer than the deletes, so they don't reach it: a customer who came back
    came_back = _orders(2, rng).slice(0, 1)
    came_back = came_back.set_column(1, "customer_id", pa.array([7], pa.int64()))
    orders.append(came_back)
    yield Progress("shop.orders", 5, 5)


def _orders(batch: int, rng: np.random.Generator) -> pa.Table:
    rows = ORDERS_A_BATCH
    start = np.datetime64("2024-01-01", "us")
    placed = (
        start + np.sort(rng.integers(0, 180 * 86_400_000_000, rows)) + batch * 180 * 86_400_000_000
    )
    regions, states = (
        np.array(["eu", "us", "apac", "latam"]),
        np.array(["paid", "shipped", "cancelled"]),
    )
    return _table(
        {
            "order_id": np.arange(batch * rows, (batch + 1) * rows),
            "customer_id": rng.integers(0, 4000, rows),
            "placed_at": pa.array(placed).cast(pa.timestamp("us", "UTC")),
            "region": regions[rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])],
            "status": states[rng.choice(3, rows, p=[0.3, 0.64, 0.06])],
            "amount": _money(rng.integers(199, 49_999, rows)),
        }
    )


def _column(table: TableWriter, location: str, name: str) -> list[Any]:
    with pq.ParquetFile(table.local(location)) as file:
        return list(file.read([name]).column(0).to_pylist())


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


# --- shop.events ----------------------------------------------------------------------------------


def _write_events(warehouse: Path) -> Iterator[Progress]:
    columns = schema(
        {
            "event_id": required("long"),
            "at": "timestamptz",
            "kind": "string",
            "visitor": "uuid",
            "device": struct({"os": "string", "is_bot": "boolean"}),
        }
    )
    events = TableWriter.create(
        warehouse / "shop" / "events", columns, [("at", "day")], format_version=3, clock=_now_ms
    )
    rng = np.random.default_rng(_SEED + 2)
    layout = FileLayout(row_group_size=5_000)
    written = {}
    for day in range(EVENT_DAYS):
        table = _events(day, rng)
        (file,) = events.append(table, partition={"at_day": 19_875 + day}, layout=layout)
        bots = pc.struct_field(table["device"], "is_bot").to_pylist()
        written[file] = [i for i, is_bot in enumerate(bots) if is_bot]
        yield Progress("shop.events", day + 1, EVENT_DAYS + 1)
    events.write_vectors(written)
    yield Progress("shop.events", EVENT_DAYS + 1, EVENT_DAYS + 1)


def _events(day: int, rng: np.random.Generator) -> pa.Table:
    rows = EVENTS_A_DAY
    start = np.datetime64("2024-06-01", "us") + np.timedelta64(day, "D")
    kinds, systems = (
        np.array(["view", "search", "cart", "buy"]),
        np.array(["ios", "android", "web"]),
    )
    visitors = rng.integers(0, 256, (rows, 16), dtype=np.uint8)
    return _table(
        {
            "event_id": np.arange(day * rows, (day + 1) * rows),
            "at": pa.array(start + np.sort(rng.integers(0, 86_400_000_000, rows))).cast(
                pa.timestamp("us", "UTC")
            ),
            "kind": kinds[rng.choice(4, rows, p=[0.7, 0.2, 0.07, 0.03])],
            "visitor": pa.ExtensionArray.from_storage(
                pa.uuid(), pa.array([v.tobytes() for v in visitors], pa.binary(16))
            ),
            "device": pa.StructArray.from_arrays(
                [pa.array(systems[rng.choice(3, rows)]), pa.array(rng.random(rows) < 0.11)],
                ["os", "is_bot"],
            ),
        }
    )
