"""The rows of the benchmark's tables: seeded, made column by column, a month or a file at a time.

A trip has 19 columns as New York's yellow taxis report them; `trip_id` takes the place of a
surcharge that is always the same, so that rows can be told apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

MONTHS = 24
ROWS_A_MONTH = 500_000
LARGE_ROWS_A_MONTH = 2_400_000
FIRST_MONTH = np.datetime64("2023-01", "M")
ZONES = 265

WIDE_FILES = 8
WIDE_ROWS_A_FILE = 100_000
WIDE_TEXTS = 6

_Floats = npt.NDArray[np.float64]


def trips(month: int, rows: int = ROWS_A_MONTH) -> pa.Table:
    """Return the trips that began in a month, counted from the first, in order of time."""
    r = np.random.default_rng(month)
    begin, end = (
        (FIRST_MONTH + m).astype("datetime64[s]").astype(np.int64) for m in (month, month + 1)
    )
    picked_up = np.sort(r.integers(begin, end, rows)) * 1_000_000
    distance: _Floats = np.where(r.random(rows) < 0.01, 0.0, r.gamma(1.3, 2.6, rows)).round(2)
    seconds = (distance * 200 + r.integers(60, 900, rows)).astype(np.int64)
    payment = r.choice(np.array([1, 2, 3, 4]), rows, p=[0.78, 0.19, 0.02, 0.01])
    fare = (3 + 0.7 * np.round((2.5 * distance + seconds / 200) / 0.7)).round(2)
    tip = np.where(payment == 1, (fare * r.choice([0, 0.15, 0.2, 0.25], rows)).round(2), 0.0)
    tolls = np.where(r.random(rows) < 0.06, 6.94, 0.0)
    extra = r.choice([0.0, 0.5, 1.0, 2.5], rows)
    unknown = r.random(rows) < 0.05
    surcharge = np.where(r.random(rows) < 0.9, 2.5, 0.0)
    airport = np.where(r.random(rows) < 0.08, 1.75, 0.0)
    total = (fare + tip + tolls + extra + 0.5 + 1.0 + surcharge + airport).round(2)
    # some zones have most of the trips
    popular = np.minimum(r.zipf(1.3, (2, rows)) * 37 % ZONES + 1, ZONES)
    pickup_zone, dropoff_zone = popular
    flags = _words(["N", "Y"], (r.random(rows) < 0.01).astype(np.int64))
    return pa.table(
        {
            "trip_id": pa.array(np.arange(rows) + month * rows),
            "vendor": pa.array(r.integers(1, 3, rows)),
            "picked_up": pa.array(picked_up, pa.timestamp("us")),
            "dropped_off": pa.array(picked_up + seconds * 1_000_000, pa.timestamp("us")),
            "passengers": _nullable(r.integers(1, 7, rows).astype(float), unknown),
            "trip_distance": pa.array(distance),
            "rate_code": _nullable(r.choice([1.0, 2.0, 5.0], rows), unknown),
            "stored": flags,
            "pickup_zone": pa.array(pickup_zone),
            "dropoff_zone": pa.array(dropoff_zone),
            "payment_type": pa.array(payment),
            "fare_amount": pa.array(fare),
            "extra": pa.array(extra),
            "mta_tax": pa.array(np.full(rows, 0.5)),
            "tip_amount": pa.array(tip),
            "tolls_amount": pa.array(tolls),
            "total_amount": pa.array(total),
            "congestion_surcharge": _nullable(surcharge, unknown),
            "airport_fee": _nullable(airport, unknown),
        }
    )


def deleted_positions(month: int, rows: int = ROWS_A_MONTH) -> npt.NDArray[np.int64]:
    """Return one row in a hundred of a month's file, in order."""
    chosen = np.random.default_rng(1000 + month).choice(rows, rows // 100, replace=False)
    return np.sort(chosen.astype(np.int64))


def deleted_trips(count: int, rows: int) -> pa.Table:
    """Return `count` trip ids of a table with so many rows, in no order."""
    chosen = np.random.default_rng(2000 + count).choice(rows, count, replace=False)
    return pa.table({"trip_id": pa.array(chosen.astype(np.int64))})


def wide_rows(file: int, rows: int = WIDE_ROWS_A_FILE) -> pa.Table:
    """Return rows with six texts of 60 to 240 characters, hardly two of which are the same."""
    r = np.random.default_rng(3000 + file)
    letters = r.integers(97, 123, 1 << 20, dtype=np.uint8).tobytes()
    columns: dict[str, Any] = {
        "id": pa.array(np.arange(rows) + file * rows),
        "kind": _words([f"kind {n}" for n in range(20)], r.integers(0, 20, rows)),
    }
    for number in range(WIDE_TEXTS):
        lengths = r.integers(60, 240, rows)
        starts = r.integers(0, len(letters) - 240, rows)
        columns[f"text{number}"] = pa.array(
            [letters[a : a + n].decode() for a, n in zip(starts, lengths, strict=True)]
        )
    return pa.table(columns)


def _words(words: list[str], indices: npt.NDArray[np.int64]) -> Any:
    values: Any = pa.array(words)
    return values.take(pa.array(indices))


def _nullable(values: npt.NDArray[Any], nulls: npt.NDArray[np.bool_]) -> Any:
    return pa.array(values, mask=nulls)
