"""Show how far a scan has come, on a terminal; say nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import pyarrow as pa
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TransferSpeedColumn,
)


def show_progress(
    batches: Iterable[pa.RecordBatch],
    total_rows: int | None,
    parts: int,
    parts_done: Iterable[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Pass `batches` on, drawing a bar of rows, bytes and parts on standard error while a person
    watches.

    `total_rows` is None where the plan does not know it; then the bar only moves. `parts` is how
    many endpoints (or tasks) the plan has.
    """
    if not sys.stderr.isatty():
        yield from batches
        return
    console = Console(stderr=True)
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.fields[rows]:,} rows"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TextColumn("{task.fields[parts]} endpoints"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    ) as progress:
        bar = progress.add_task("scan", total=None, rows=0, parts=parts)
        rows = size = 0
        for batch in batches:
            rows += batch.num_rows
            size += batch.nbytes
            # the bar is of bytes: their total follows from the share of rows that has come
            total = size * total_rows / rows if total_rows and rows else None
            progress.update(bar, completed=size, total=total, rows=rows)
            yield batch
