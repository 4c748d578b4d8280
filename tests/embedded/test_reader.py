from __future__ import annotations

import threading
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from floeberg.embedded import ScanOptions, open_table
from tests.support.lake import FileLayout, TableWriter, required, schema
from tests.support.orders import live_ids
from tests.support.scans import RecordingStorage
from tests.support.waiting import wait_until


@pytest.fixture
def scan(orders: TableWriter):
    return open_table(str(orders.directory)).scan().select(["id"])


class OpeningStorage(RecordingStorage):
    """Keeps the data files that were opened, in whichever way, too."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: set[str] = set()

    def open(self, location: str):
        self.opened.add(location)
        return super().open(location)

    def read_ranges(self, location: str, ranges):
        self.opened.add(location)
        return super().read_ranges(location, ranges)


def reading_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("floeberg-read")]


def test_it_counts_tasks_and_the_rows_delivered_so_far(scan):
    with scan.to_batch_reader(ScanOptions(batch_size=10)) as reader:
        assert (reader.num_tasks, reader.rows) == (len(scan.plan_files()), 0)
        first = reader.next_batch()
        assert first is not None
        assert reader.rows == first.num_rows
        rest = reader.read_all()

    assert reader.rows == first.num_rows + rest.num_rows == len(live_ids())
    assert reader.next_batch() is None


def test_other_libraries_take_it_as_an_arrow_stream(scan):
    frame = pl.DataFrame(scan.to_batch_reader())
    table = pa.table(scan.to_batch_reader())

    assert sorted(frame["id"].to_list()) == list(live_ids())
    assert table == scan.to_table()


@pytest.mark.parametrize("workers", [1, 3])
def test_closing_it_early_stops_its_threads(scan, workers: int):
    options = ScanOptions(num_workers=workers, batch_size=1)

    with scan.to_batch_reader(options) as reader:
        reader.next_batch()
        assert len(reading_threads()) == workers

    assert reading_threads() == []
    assert reader.next_batch() is None


def test_one_that_is_dropped_stops_its_threads_too(scan):
    reader = scan.to_batch_reader(ScanOptions(num_workers=2, batch_size=1))
    reader.next_batch()
    del reader

    wait_until(lambda: reading_threads() == [], "the reading threads to end")


def test_reading_threads_work_only_as_far_ahead_as_the_window(directory: Path):
    writer = TableWriter.create(directory, schema({"id": required("long")}))
    with writer.commit() as commit:
        for first in range(0, 3000, 100):
            rows = [{"id": n} for n in range(first, first + 100)]
            commit.append(rows, layout=FileLayout(row_group_size=10))
    storage = OpeningStorage()
    scan = open_table(str(directory), io=storage).scan()

    with scan.to_batch_reader(ScanOptions(num_workers=2, batch_size=10)) as reader:
        reader.next_batch()
        wait_until(lambda: len(storage.opened) >= 2, "both threads to have begun")

    assert len(storage.opened) <= 3


def test_memory_stays_bounded_however_large_the_table_is(directory: Path):
    """Thirty files of about 2 MB each are read through a window of a few batches."""
    writer = TableWriter.create(directory, schema({"id": required("long"), "text": "string"}))
    with writer.commit() as commit:
        for number in range(30):
            rows = pa.table(
                {"id": range(2000), "text": [f"{number}-{i}-" + "x" * 1000 for i in range(2000)]}
            )
            commit.append(rows, layout=FileLayout(row_group_size=500, codec="none"))
    scan = open_table(str(directory)).scan()
    before = pa.total_allocated_bytes()
    peak = rows_read = 0

    for batch in scan.to_batch_reader(ScanOptions(num_workers=2)):
        rows_read += batch.num_rows
        peak = max(peak, pa.total_allocated_bytes() - before)

    assert rows_read == 60_000
    assert peak < 30 << 20  # of 60 MB in all
