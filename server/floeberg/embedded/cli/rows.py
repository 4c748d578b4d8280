"""Write the rows of a scan: as a table for a person, or as csv, json, arrow or parquet for a
program."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Table as RichTable
from rich.text import Text

from floeberg.embedded.cli.encoding import json_rows
from floeberg.embedded.cli.output import binary_output, text_output
from floeberg.embedded.cli.terminal import console, plain
from floeberg.protocol.errors import BadRequest
from floeberg.protocol.types import Json

SHOWN_ROWS = 100
"""How many rows a table shows of a scan without a limit."""


class RowFormat(StrEnum):
    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"
    PARQUET = "parquet"


def write_rows(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    format: RowFormat,
    output: Path | None,
    *,
    shown_rows: int | None = None,
) -> None:
    """Write the rows to `output`, or to standard output.

    `table` shows at most `shown_rows`, and says so when there are more. `json` is one object a
    line. `arrow` is the IPC stream format. Parquet must go to a file. When `batches` raises, what
    was written to standard output is not ended in a way that would pass for whole.
    """
    match format:
        case RowFormat.TABLE:
            _write_table(schema, batches, output, shown_rows)
        case RowFormat.CSV:
            _write_csv(schema, batches, output)
        case RowFormat.JSON:
            _write_json(batches, output)
        case RowFormat.ARROW:
            _write_arrow(schema, batches, output)
        case RowFormat.PARQUET:
            _write_parquet(schema, batches, output)


# --- for a person ---------------------------------------------------------------------------------


def _write_table(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    output: Path | None,
    shown_rows: int | None,
) -> None:
    table = RichTable()
    for field in schema:
        table.add_column(plain(field.name), overflow="fold", justify=_side(field.type))
    total = 0
    for batch in batches:
        shown = batch if shown_rows is None else batch.slice(0, max(0, shown_rows - total))
        if schema.names:
            for row in json_rows(shown):
                table.add_row(*(_cell(value) for value in row.values()))
        total += batch.num_rows
    if shown_rows is not None and total > shown_rows:
        said = f"{shown_rows:,} rows shown, and there are more: say --limit, or another --format"
    else:
        said = f"{total:,} {'row' if total == 1 else 'rows'}"
    parts = [table, said] if schema.names else [said]
    if output is None:
        console().print(*parts, sep="\n")
        return
    with text_output(output) as file:
        console(file).print(*parts, sep="\n")


def _side(type_: pa.DataType) -> Literal["left", "right"]:
    numeric = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    return "right" if numeric or pa.types.is_decimal(type_) else "left"


def _cell(value: Json) -> Text:
    if value is None:
        return plain("null", "dim")
    return plain(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


# --- for a program --------------------------------------------------------------------------------


def _write_csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch], output: Path | None) -> None:
    with text_output(output) as file:
        file.write(csv_line(schema.names))
        for batch in batches:
            file.write("".join(csv_line(list(row.values())) for row in json_rows(batch)))


def csv_line(values: list[Json]) -> str:
    r"""Return one line of CSV: null is nothing, the empty text `""`, and nested values are JSON.

    >>> csv_line([1, None, "", "a,b", True, {"c": [None]}])
    '1,,"","a,b",true,"{""c"": [null]}"\n'
    """
    if len(values) == 1 and values[0] is None:
        return '""\n'  # readers pass over an empty line
    return ",".join(_csv_field(value) for value in values) + "\n"


def _csv_field(value: Json) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if text and not any(special in text for special in ',"\n\r') and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'


def _write_json(batches: Iterable[pa.RecordBatch], output: Path | None) -> None:
    with text_output(output) as file:
        for batch in batches:
            file.write(
                "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in json_rows(batch))
            )


def _write_arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch], output: Path | None) -> None:
    with binary_output(output) as file:
        writer = pa.ipc.new_stream(file, schema)
        for batch in batches:
            writer.write_batch(batch)
        # only here: closing writes the mark of the end
        writer.close()


def _write_parquet(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], output: Path | None
) -> None:
    if output is None:
        raise BadRequest("a Parquet file cannot be written to a stream; name it with --output FILE")
    if not schema.names:
        raise BadRequest("a Parquet file without columns has no rows; select a column")
    with binary_output(output) as file, pq.ParquetWriter(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
