"""The table that the documents read: the demo's `nyc.trips`, small."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from tests.support.lake import TableWriter, schema

COLUMNS = {
    "trip_id": "long",
    "picked_up_at": "timestamp",
    "dropped_off_at": "timestamp",
    "passengers": "long",
    "distance": "double",
    "zone": "int",
    "payment": "string",
    "fare": "decimal(9, 2)",
    "tip": "decimal(9, 2)",
    "congestion_fee": "decimal(9, 2)",
}
_START = datetime(2024, 1, 30)


def write_trips(directory: Path, months: int = 3, trips_a_month: int = 20) -> TableWriter:
    """Write a table partitioned by month, with a branch `audit` of one trip more."""
    table = TableWriter.create(directory, schema(COLUMNS), [("picked_up_at", "month")])
    for first in range(0, months * trips_a_month, trips_a_month):
        table.append([_trip(n) for n in range(first, first + trips_a_month)])
    table.append([_trip(months * trips_a_month)], branch="audit")
    return table


def _trip(number: int) -> dict[str, object]:
    picked_up = _START + timedelta(days=number)
    return {
        "trip_id": number,
        "picked_up_at": picked_up,
        "dropped_off_at": picked_up + timedelta(minutes=number),
        "passengers": number % 5,
        "distance": number * 0.75,
        "zone": number % 7,
        "payment": ("card", "cash", "app")[number % 3],
        "fare": number * 2,
        "tip": 0,
        "congestion_fee": None,
    }
