"""The command that asks in SQL: one statement, or one after the other at a prompt."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from floeberg.client import Lake, Progress
from floeberg.embedded.cli.access import GetAccess, reaching
from floeberg.embedded.cli.options import AsOf, Format, Limit, Output, Ref, SnapshotId
from floeberg.embedded.cli.progress import show_planning, show_progress
from floeberg.embedded.cli.prompt import run_prompt
from floeberg.embedded.cli.rows import SHOWN_ROWS, RowFormat, write_rows
from floeberg.embedded.cli.sources import RowStream
from floeberg.protocol.errors import BadRequest

_MOST_TEXT = 1 << 20


def add_sql(app: typer.Typer) -> None:
    """Give `app` the command `sql`."""
    app.command("sql")(reaching(sql))


@dataclass(frozen=True)
class _Wanted:
    """What every statement of one call of the command is run with, and how its rows are shown."""

    options: dict[str, Any]
    parameters: Sequence[Any]
    limit: int | None
    format: RowFormat
    output: Path | None


def sql(
    access: GetAccess,
    statement: Annotated[
        str | None,
        typer.Argument(metavar="STATEMENT", help="One statement; - reads it from standard input."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", metavar="FILE", help="Read the statement from a file."),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            "-p",
            metavar="VALUE",
            help="The value of a ? in the statement, as JSON (7, null) or else text; in their"
            " order.",
        ),
    ] = None,
    catalog: Annotated[
        str | None,
        typer.Option("--catalog", metavar="NAME", help="Where tables are looked up."),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option("--schema", metavar="NAME", help="The namespace, likewise: db or a.b."),
    ] = None,
    snapshot_id: SnapshotId = None,
    ref: Ref = None,
    as_of: AsOf = None,
    timezone: Annotated[
        str | None,
        typer.Option("--timezone", metavar="ZONE", help="Such as Europe/Vienna; else UTC."),
    ] = None,
    limit: Limit = None,
    format: Format = RowFormat.TABLE,
    output: Output = None,
) -> None:
    """Query in SQL; without a statement, on a terminal, at a prompt.

    A table shows the first 100 rows, unless --limit says how many.
    """
    wanted = _Wanted(
        {
            "catalog": catalog,
            "schema": schema,
            "snapshot_id": snapshot_id,
            "ref": ref,
            "as_of": as_of,
            "timezone": timezone,
        },
        [value_of(text) for text in param or ()],
        limit,
        format,
        output,
    )
    text = _text(statement, file)
    with access().connect() as lake:
        if text is None:
            run_prompt(lambda typed: _run(lake, typed, wanted))
        else:
            _run(lake, text, wanted)


def value_of(text: str) -> Any:
    """Return the value that a person has typed: JSON's number, word or quoted text; else the text
    itself.

    >>> [value_of(text) for text in ("7", "0.10", "1e3", "null", "true", "eu", '"7"', "[1]")]
    [7, Decimal('0.10'), 1000.0, None, True, 'eu', '7', '[1]']
    """
    try:
        value = json.loads(text, parse_float=_number, parse_constant=lambda name: text)
    except ValueError:
        return text
    return text if isinstance(value, list | dict) else value


def _number(text: str) -> Decimal | float:
    return float(text) if "e" in text.lower() else Decimal(text)


def _text(statement: str | None, file: Path | None) -> str | None:
    """Return the statement; None where it is to be asked for."""
    if statement is not None and file is not None:
        raise BadRequest("give a statement, or --file with one: not both")
    if file is not None:
        return _read(file)
    if statement == "-" or (statement is None and not sys.stdin.isatty()):
        return sys.stdin.read(_MOST_TEXT + 1)
    return statement


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as exc:
        raise BadRequest(f"--file {file} cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError:
        raise BadRequest(f"--file {file} is not text in UTF-8") from None


def _run(lake: Lake, text: str, wanted: _Wanted) -> None:
    shown = SHOWN_ROWS if wanted.format is RowFormat.TABLE and wanted.limit is None else None
    ended: list[None] = []  # appended to by several threads

    def note(progress: Progress) -> None:
        ended.extend([None] * progress.finished_endpoints)

    query = lake.sql(text, wanted.parameters, **wanted.options, on_progress=note)
    with show_planning(lambda: None) if sys.stderr.isatty() else nullcontext():
        planned = query.planned()
    total = planned.info.total_records
    batches = planned.batches()
    with closing(batches):
        first = _first(batches, wanted.limit if shown is None else shown + 1)
        stream = RowStream(
            planned.info.schema,
            first,
            total if total >= 0 else None,
            len(planned.info.endpoints),
            "endpoints",
            lambda: len(ended),
        )
        rows_are_seen = (
            sys.stdout.isatty() and wanted.output is None and wanted.format is not RowFormat.TABLE
        )
        is_watched = sys.stderr.isatty() and not rows_are_seen
        seen = show_progress(stream) if is_watched else first
        write_rows(stream.schema, seen, wanted.format, wanted.output, shown_rows=shown)


def _first(
    batches: Iterable[pa.RecordBatch], rows: int | None
) -> Generator[pa.RecordBatch, None, None]:
    """Yield the first rows of `batches`, all of them for None; no more is read than these take."""
    left = rows
    if left == 0:
        return
    for batch in batches:
        if left is None:
            yield batch
            continue
        part = batch.slice(0, left)
        left -= part.num_rows
        yield part
        if left == 0:
            return
