"""`python -m tests.bench.memory`: how much memory it takes to stream files of two gigabytes.

Each reading is a process of its own, so that its peak is its own. `wide row groups` are numbers in
row groups of one gigabyte, `long strings` are texts of 8 kB that no single Arrow string array could
hold.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table
from rich.console import Console
from rich.table import Table as RichTable

from floeberg.embedded import ScanOptions, open_table

_NUMBERS_A_GROUP = 8_000_000  # of 16 columns of 8 bytes: one gigabyte
_STRING = 8_000
_STRINGS = 300_000
_SLICE = 250_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path(".bench"))
    parser.add_argument("--read", nargs=2, metavar=("SIDE", "TABLE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    directory = arguments.directory.resolve()
    if arguments.read:
        side, name = arguments.read
        print(json.dumps(_measure(SIDES[side], _tables(directory)[name])))
        return
    report = RichTable("table", "side", "rows", "first batch", "all", "peak memory")
    for name in _tables(directory):
        for side in SIDES:
            found = _in_a_process(directory, side, name)
            report.add_row(
                name,
                side,
                f"{found['rows']:,}",
                f"{found['first_seconds'] * 1000:,.0f} ms",
                f"{found['seconds']:,.1f} s",
                f"{found['peak_bytes'] / 1e6:,.0f} MB",
            )
    Console(width=110).print(report)


def _floeberg(table: Table) -> Iterable[pa.RecordBatch]:
    return open_table(table).scan().to_batch_reader(ScanOptions(num_workers=1))


def _floeberg_two(table: Table) -> Iterable[pa.RecordBatch]:
    return open_table(table).scan().to_batch_reader(ScanOptions(num_workers=2))


def _pyiceberg(table: Table) -> Iterable[pa.RecordBatch]:
    return table.scan().to_arrow_batch_reader()


SIDES: dict[str, Callable[[Table], Iterable[pa.RecordBatch]]] = {
    "floeberg, 1 thread": _floeberg,
    "floeberg, 2 threads": _floeberg_two,
    "PyIceberg": _pyiceberg,
}


def _in_a_process(directory: Path, side: str, name: str) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.memory", "--directory", str(directory)]
    done = subprocess.run(
        [*command, "--read", side, name], stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _measure(read: Callable[[Table], Iterable[pa.RecordBatch]], table: Table) -> dict[str, float]:
    # a process starts with the peak of the one that made it
    Path("/proc/self/clear_refs").write_text("5")
    before = _memory_bytes("VmRSS")
    began = time.perf_counter()
    first_seconds, rows = 0.0, 0
    for batch in read(table):
        first_seconds = first_seconds or time.perf_counter() - began
        rows += batch.num_rows
    return {
        "rows": rows,
        "first_seconds": first_seconds,
        "seconds": time.perf_counter() - began,
        "peak_bytes": _memory_bytes("VmHWM") - before,
    }


def _memory_bytes(field: str) -> int:
    """Return a line of Linux's account of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


# --- the tables ----------------------------------------------------------------------------------


def _tables(directory: Path) -> dict[str, Table]:
    """Return the tables, written when they are not there yet."""
    lake = directory / "large"
    lake.mkdir(parents=True, exist_ok=True)
    catalog = load_catalog(
        "large", type="sql", uri=f"sqlite:///{lake}/catalog.db", warehouse=f"file://{lake}"
    )
    catalog.create_namespace_if_not_exists("large")
    tables = {}
    for name, write in {"wide row groups": _numbers, "long strings": _strings}.items():
        identifier = ("large", name.replace(" ", "_"))
        if not catalog.table_exists(identifier):
            file = lake / f"{identifier[1]}.parquet"
            write(file)
            table = catalog.create_table(identifier, pq.read_schema(file))
            table.add_files([f"file://{file}"])
        tables[name] = catalog.load_table(identifier)
    return tables


def _numbers(file: Path) -> None:
    schema = pa.schema([(f"n{i}", pa.float64()) for i in range(16)])
    rng = np.random.default_rng(1)
    with pq.ParquetWriter(file, schema, compression="none", use_dictionary=False) as writer:
        for _ in range(2):
            columns = [pa.array(rng.random(_NUMBERS_A_GROUP)) for _ in schema]
            table = pa.Table.from_arrays(columns, schema=schema)
            writer.write_table(table, row_group_size=_NUMBERS_A_GROUP)


def _strings(file: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("text", pa.large_string())])

    def slices() -> Iterator[pa.Table]:
        rng = np.random.default_rng(2)
        for first in range(0, _STRINGS, _SLICE):
            ids = range(first, min(first + _SLICE, _STRINGS))
            letters = rng.integers(97, 123, (len(ids), _STRING), dtype=np.uint8)
            texts = [row.tobytes().decode() for row in letters]
            yield pa.table({"id": ids, "text": texts}, schema=schema)

    table = pa.concat_tables(slices())
    pq.write_table(table, file, row_group_size=_STRINGS, compression="none", use_dictionary=False)


if __name__ == "__main__":
    main()
