"""The tables that the benchmarks read, written by PyIceberg once and kept in a directory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

_FILES = 12
_ROWS_A_FILE = 250_000


def trips_table(directory: Path) -> Table:
    """Return a table of 3 million rows in 12 files, 8 columns; written when it is not there yet."""
    warehouse = directory / "warehouse"
    warehouse.mkdir(parents=True, exist_ok=True)
    catalog = load_catalog(
        "bench",
        type="sql",
        uri=f"sqlite:///{directory}/catalog.db",
        warehouse=f"file://{warehouse}",
    )
    name = ("nyc", "trips")
    if catalog.table_exists(name):
        table = catalog.load_table(name)
        if len(table.metadata.snapshots) == _FILES:
            return table
        catalog.drop_table(name)
    catalog.create_namespace_if_not_exists("nyc")
    table = catalog.create_table(name, _month(0).schema)
    for month in range(_FILES):
        table.append(_month(month))
    return table


def _month(month: int) -> pa.Table:
    rng = np.random.default_rng(month)
    n = _ROWS_A_FILE
    begin = np.datetime64("2024-01-01", "us") + np.timedelta64(30 * month, "D")
    picked_up = begin + rng.integers(0, 30 * 86_400_000_000, n).astype("timedelta64[us]")
    distance = rng.gamma(2.0, 1.6, n)
    return pa.table(
        {
            "trip_id": pa.array(np.arange(n) + month * n, pa.int64()),
            "picked_up": pa.array(np.sort(picked_up)),
            "zone": pa.array(rng.integers(1, 264, n), pa.int32()),
            "passengers": pa.array(rng.integers(1, 7, n), pa.int32()),
            "distance": pa.array(distance),
            "fare": pa.array(3.0 + 2.5 * distance + rng.normal(0, 0.5, n)),
            "payment": pa.array(rng.choice(["card", "cash", "voucher"], n, p=[0.7, 0.28, 0.02])),
            "note": pa.array([f"trip {i % 977} of the day" for i in range(n)]),
        }
    )
