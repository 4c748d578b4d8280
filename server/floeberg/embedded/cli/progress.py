"""Show how far a scan has come, while a person watches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from rich import filesize
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from floeberg.embedded.cli.sources import RowStream
from floeberg.embedded.cli.terminal import console


def show_progress(stream: RowStream) -> Iterator[pa.RecordBatch]:
    """Pass the stream's batches on, drawing a bar of rows, bytes and parts on standard error.

    Where the plan does not know the total the bar only moves. The line goes when the scan ends.
    """
    with Progress(
        SpinnerColumn(),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=console(stderr=True),
        transient=True,
        # the rows go to standard output, as they are
        redirect_stdout=False,
        redirect_stderr=False,
    ) as progress:
        bar = progress.add_task(_told(stream, 0, 0), total=stream.total_rows)
        rows = size_bytes = 0
        for batch in stream.batches:
            rows += batch.num_rows
            size_bytes += batch.nbytes
            progress.update(bar, completed=rows, description=_told(stream, rows, size_bytes))
            yield batch


def _told(stream: RowStream, rows: int, size_bytes: int) -> str:
    of = "" if stream.total_rows is None else f" of {stream.total_rows:,}"
    done = "" if stream.parts_done is None else f"{stream.parts_done()} of "
    return (
        f"{rows:,}{of} rows, {filesize.decimal(size_bytes)}, {done}{stream.parts}"
        f" {stream.parts_name}"
    )
