"""Show how far a plan or a scan has come, while a person watches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from rich import filesize
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from floeberg.embedded.cli.sources import RowStream
from floeberg.embedded.cli.terminal import console, plain
from floeberg.server.planning import PlanProgress

# most plans are made by then, and a line that comes and goes at once only flickers
_UNSEEN_SECONDS = 0.3


@contextmanager
def show_planning(progress: Callable[[], PlanProgress | None]) -> Iterator[None]:
    """Draw a line on standard error, while the block takes long, that says what `progress` does:
    None where that is not known. The line goes when the block ends."""
    line = Progress(
        SpinnerColumn(),
        _PlanColumn(progress),
        TimeElapsedColumn(),
        console=console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    line.add_task("")
    waiting = threading.Timer(_UNSEEN_SECONDS, line.start)
    waiting.daemon = True
    waiting.start()
    try:
        yield
    finally:
        waiting.cancel()
        waiting.join()
        line.stop()


class _PlanColumn(ProgressColumn):
    """What a plan is at, asked for each time that the line is drawn."""

    def __init__(self, progress: Callable[[], PlanProgress | None]) -> None:
        super().__init__()
        self._progress = progress

    def render(self, task: Task) -> Text:
        found = self._progress()
        return plain("planning" if found is None else planning_line(found))


def planning_line(progress: PlanProgress) -> str:
    """Return what a person is told of a plan.

    >>> planning_line(PlanProgress("db.t", None, "read manifests", 63, 12))
    'planning: read manifests, 12 of 63 manifests read'
    """
    read = f", {progress.manifests_read:,} of {progress.manifests:,} manifests read"
    return f"planning: {progress.phase}{read if progress.manifests else ''}"


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
