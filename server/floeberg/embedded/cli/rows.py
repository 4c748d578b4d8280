"""Write the rows of a scan: as a table for a person, or as csv, json, arrow or parquet for a
program."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, TextIO

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table as RichTable

from floeberg.embedded.cli.encoding import json_rows
from floeberg.protocol.errors import BadRequest

SHOWN_ROWS = 100


class RowFormat(StrEnum):
    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"
    PARQUET = "parquet"


def write_rows(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], format: RowFormat, output: Path | None
) -> int:
    """Write the rows to `output`, or to standard output, and return how many there were.

    `table` shows the first hundred rows and says how many more there are. `json` is one object a
    line. `arrow` is the IPC stream format. Parquet must go to a file.
    """
    match format:
        case RowFormat.TABLE:
            return _write_table(schema, batches, output)
        case RowFormat.CSV:
            return _write_csv(schema, batches, output)
        case RowFormat.JSON:
            return _write_json(batches, output)
        case RowFormat.ARROW:
            return _write_arrow(schema, batches, output)
        case RowFormat.PARQUET:
            return _write_parquet(schema, batches, output)


def _write_table(schema: pa.Schema, batches: Iterable[pa.RecordBatch], output: Path | None) -> int:
    table = RichTable()
    for name in schema.names:
        table.add_column(name, overflow="fold")
    total = 0
    for batch in batches:
        for row in json_rows(batch.slice(0, max(0, SHOWN_ROWS - total))):
            table.add_row(*(_cell(value) for value in row.values()))
        total += batch.num_rows
    with _text(output) as file:
        console = Console(file=file, soft_wrap=False)
        if schema.names:
            console.print(table)
        hidden = total - SHOWN_ROWS
        console.print(
            f"{total:,} rows"
            + (f"; {hidden:,} of them not shown (another --format shows all)" if hidden > 0 else "")
        )
    return total


def _cell(value: object) -> str:
    if value is None:
        return "[dim]null[/dim]"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.replace("[", r"\[")


def _write_csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch], output: Path | None) -> int:
    total = 0
    with _text(output) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(schema.names)
        for batch in batches:
            for row in json_rows(batch):
                writer.writerow(_csv_cell(value) for value in row.values())
            total += batch.num_rows
    return total


def _csv_cell(value: object) -> object:
    """Return nested values as JSON, truth as true and false; null is the empty field."""
    if isinstance(value, dict | list | bool):
        return json.dumps(value, ensure_ascii=False)
    return value


def _write_json(batches: Iterable[pa.RecordBatch], output: Path | None) -> int:
    total = 0
    with _text(output) as file:
        for batch in batches:
            for row in json_rows(batch):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            total += batch.num_rows
    return total


def _write_arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch], output: Path | None) -> int:
    total = 0
    with (
        _binary(output) as file,
        pa.ipc.new_stream(pa.PythonFile(file, mode="w"), schema) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)
            total += batch.num_rows
    return total


def _write_parquet(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], output: Path | None
) -> int:
    if output is None:
        raise BadRequest("a Parquet file cannot be written to a stream; name it with --output FILE")
    total = 0
    with pq.ParquetWriter(output, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            total += batch.num_rows
    return total


@contextmanager
def _text(output: Path | None) -> Iterator[TextIO]:
    if output is None:
        yield sys.stdout
        return
    with output.open("w", encoding="utf-8", newline="") as file:
        yield file


@contextmanager
def _binary(output: Path | None) -> Iterator[BinaryIO]:
    if output is None:
        if sys.stdout.isatty():
            raise BadRequest("binary data would garble the terminal; add --output FILE, or a pipe")
        yield sys.stdout.buffer
        return
    with output.open("wb") as file:
        yield file
