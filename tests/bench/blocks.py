"""`python -m tests.bench.blocks`: a scan that is repeated, by what a worker has kept of it.

The table lies in a real S3 behind a proxy that adds 20 ms to each request. One stream reads all of
it, in turns with nothing kept, with the footers in memory, with an empty block cache, with one that
another process has filled, with both, and from local files instead. Planning is left out.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table as RichTable

from floeberg.process.background import Background
from floeberg.process.storage import open_storage
from floeberg.protocol.plans import ReadPlan
from floeberg.protocol.storage import Storage, StorageConfig
from floeberg.worker.blocks import BlockCache
from floeberg.worker.cache import LoadingCache
from floeberg.worker.files.windows import Ahead
from floeberg.worker.reading import to_batches_for_tasks
from tests.bench.interleaved import time_in_turns
from tests.support.delaying_proxy import delaying_proxy
from tests.support.lake import FileLayout, TableWriter, schema
from tests.support.reads import plan_of
from tests.support.services import Seaweed, run_seaweed
from tests.support.waiting import wait_until

BUCKET = "blocks"
CACHE_BYTES = 4 << 30
SHAPES: dict[str, tuple[int, int]] = {
    "12 files of 13 MB": (12, 250_000),
    "200 files of 0.2 MB": (200, 3_000),
}
"""Number of files, and rows of each."""
COLUMNS = {**{f"d{i}": "double" for i in range(4)}, **{f"n{i}": "long" for i in range(8)}}
SELECTIONS: dict[str, tuple[str, ...] | None] = {"all columns": None, "2 columns": ("d0", "n3")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--milliseconds", type=float, default=20)
    arguments = parser.parse_args()
    report = RichTable("table", "reads", "kept", "ms", "of nothing kept")
    with tempfile.TemporaryDirectory(prefix="floeberg-blocks-") as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "weed").mkdir()
        services = stack.enter_context(run_seaweed(folder / "weed"))
        services.make_bucket(BUCKET)
        near = urlsplit(services.s3_endpoint).port
        assert near is not None
        far = stack.enter_context(delaying_proxy(near, arguments.milliseconds / 1000))
        for number, (title, (files, rows)) in enumerate(SHAPES.items()):
            table = _table(folder / f"t{number}", files, rows)
            store = _uploaded(table, services, far)
            for reads, select in SELECTIONS.items():
                sides = _Sides(plan_of(table, select=select), store, folder / f"c{number}-{reads}")
                timings = time_in_turns(sides.all(), arguments.rounds, before=sides.settle)
                slowest = timings["nothing"].median
                for side, timing in timings.items():
                    ratio = f"{timing.median / slowest:.2f}"
                    report.add_row(title, reads, side, f"{timing.median * 1000:,.0f}", ratio)
    Console(width=110).print(report)


@dataclass
class _Side:
    """A worker that has kept something, and the storage that it reads."""

    storage: Storage
    footers: LoadingCache | None = None
    blocks: BlockCache | None = None


class _Sides:
    """Reads a plan's rows out of `store` in different ways; caches on disk are in `folder`."""

    def __init__(self, plan: ReadPlan, store: Storage, folder: Path) -> None:
        self._plan = plan
        self._store = store
        self._folder = folder
        self._ahead = Ahead(Background(16, "bench-fetch"))
        self._numbers = itertools.count()
        self._filled = self._cache("filled")
        self._open = [self._filled]
        self._footers, self._more_footers, self._local_footers = (
            LoadingCache(),
            LoadingCache(),
            LoadingCache(),
        )

    def all(self) -> dict[str, Callable[[], int]]:
        sides: dict[str, Callable[[], _Side]] = {
            "nothing": lambda: _Side(self._store),
            "footers": lambda: _Side(self._store, self._footers),
            "an empty block cache": lambda: _Side(self._store, None, self._new()),
            "blocks": lambda: _Side(self._store, None, self._filled),
            "blocks and footers": lambda: _Side(self._store, self._more_footers, self._filled),
            "footers, and files are local": lambda: _Side(open_storage(), self._local_footers),
        }
        return {name: lambda make=make: self._read(make()) for name, make in sides.items()}

    def settle(self) -> None:
        for cache in self._open:
            wait_until(lambda cache=cache: not cache.pending_bytes, "blocks to be written", 60)
        gc.collect()

    def _new(self) -> BlockCache:
        self._open = [self._filled, self._cache(str(next(self._numbers)))]
        return self._open[1]

    def _cache(self, name: str) -> BlockCache:
        return BlockCache(self._folder / name, CACHE_BYTES)

    def _read(self, side: _Side) -> int:
        batches = to_batches_for_tasks(
            self._plan,
            side.storage,
            footers=side.footers,
            blocks=side.blocks,
            ahead=self._ahead,
        )
        return sum(placed.batch.num_rows for placed in batches)


def _table(directory: Path, files: int, rows: int) -> TableWriter:
    table = TableWriter.create(directory, schema(COLUMNS))
    with table.commit() as commit:
        for number in range(files):
            commit.append(_rows(number, rows), layout=FileLayout(row_group_size=125_000))
    return table


def _rows(seed: int, count: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            name: rng.random(count) if kind == "double" else rng.integers(0, 10_000, count)
            for name, kind in COLUMNS.items()
        }
    )


def _uploaded(table: TableWriter, services: Seaweed, port: int) -> Storage:
    """Return storage in which the table's files lie in S3, which is reached at `port`."""
    paths = list((table.directory / "data").iterdir())
    prefix = table.directory.name
    services.put(BUCKET, {f"{prefix}/data/{path.name}": path.read_bytes() for path in paths})
    properties = {**services.s3_properties(), "s3.endpoint": f"http://127.0.0.1:{port}"}
    rebase = {f"file://{table.directory}": f"s3://{BUCKET}/{prefix}"}
    return open_storage(StorageConfig(properties, rebase))


if __name__ == "__main__":
    main()
