"""`make bench`: floeberg beside PyIceberg, in turns on one machine, with the ratio of their
medians.

Both read the same table to an Arrow table; `flight` reads it through a coordinator and two worker
processes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pyarrow as pa
from pyiceberg.table import ALWAYS_TRUE
from pyiceberg.table import Table as PyIcebergTable
from rich.console import Console
from rich.table import Table as RichTable

from floeberg.client import RemoteTable, connect
from floeberg.embedded import ScanOptions, open_table
from floeberg.embedded.up import Cluster, UpConfig
from tests.bench.interleaved import Timing, time_in_turns
from tests.bench.lake import trips_table

QUERIES: dict[str, tuple[str | None, list[str] | None]] = {
    "all rows, all columns": (None, None),
    "all rows, 2 columns": (None, ["trip_id", "fare"]),
    "1 file in 12 by its bounds": ("picked_up < '2024-01-08T00:00:00'", ["trip_id", "fare"]),
    "2% of the rows": ("payment = 'voucher'", ["trip_id", "fare", "payment"]),
    "1 row": ("trip_id = 1234567", None),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path(".bench"))
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    directory = arguments.directory.resolve()
    table = trips_table(directory)
    report = RichTable("query", "rows", "PyIceberg", "floeberg", "ratio", "flight", "ratio")
    with (
        Cluster(UpConfig(warehouse=str(directory / "warehouse"), port=0, workers=2)) as fleet,
        connect(fleet.coordinator) as lake,
    ):
        for title, (filter, select) in QUERIES.items():
            timings = _compare(table, lake.table("nyc.trips"), filter, select, arguments.rounds)
            report.add_row(title, *_cells(timings))
    Console(width=110).print(report)


def _compare(
    table: PyIcebergTable,
    remote: RemoteTable,
    filter: str | None,
    select: list[str] | None,
    rounds: int,
) -> dict[str, Timing]:
    # each side plans anew and reads to an Arrow table, as a user's call would
    def pyiceberg() -> int:
        scan = table.scan(filter or ALWAYS_TRUE, tuple(select) if select else ("*",))
        return scan.to_arrow().num_rows

    def embedded() -> int:
        scan = open_table(table).scan()
        scan = scan.filter(filter) if filter else scan
        scan = scan.select(select) if select else scan
        return scan.to_table(ScanOptions(num_workers=2)).num_rows

    def flight() -> int:
        rows: pa.Table = remote.scan(filter=filter, select=select).to_arrow()
        return rows.num_rows

    sides = {"PyIceberg": pyiceberg, "floeberg": embedded, "flight": flight}
    return time_in_turns(sides, rounds)


def _cells(timings: dict[str, Timing]) -> list[str]:
    peer = timings["PyIceberg"].median
    cells = [f"{timings['PyIceberg'].answer:,}", f"{peer * 1000:,.0f} ms"]
    for side in ("floeberg", "flight"):
        ours = timings[side].median
        cells += [f"{ours * 1000:,.0f} ms", f"{peer / ours:.1f}x"]
    return cells


if __name__ == "__main__":
    main()
