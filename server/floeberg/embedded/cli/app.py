"""The `floeberg` command's questions: they go to a server, or to a table opened in this process."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import Annotated

import typer

from floeberg.embedded.cli import show
from floeberg.embedded.cli.access import GetAccess, reaching
from floeberg.embedded.cli.arguments import column_names, pairs, table_name
from floeberg.embedded.cli.errors import Commands
from floeberg.embedded.cli.explanation import show_explanation
from floeberg.embedded.cli.options import (
    AsOf,
    CaseInsensitive,
    Filter,
    Format,
    Json,
    Limit,
    Location,
    Name,
    Output,
    Property,
    Rebase,
    Ref,
    Select,
    SnapshotId,
)
from floeberg.embedded.cli.progress import show_planning, show_progress
from floeberg.embedded.cli.rows import SHOWN_ROWS, RowFormat, write_rows
from floeberg.embedded.cli.show_status import show_status
from floeberg.embedded.cli.sources import LocalSource, Selection, ServerSource, Source
from floeberg.embedded.cli.terminal import console, printable
from floeberg.embedded.table import open_table
from floeberg.process.version import floeberg_version
from floeberg.protocol.errors import BadRequest

app = typer.Typer(
    name="floeberg",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


@contextmanager
def _source(
    name: str | None,
    access: GetAccess,
    location: str | None,
    rebase: Sequence[str] | None,
    properties: Sequence[str] | None,
) -> Iterator[Source]:
    if location is not None:
        if name is not None:
            raise BadRequest(f"name one table: {name!r} of a server, or --table {location}")
        properties_given = pairs("--property", properties)
        yield LocalSource(open_table(location, properties_given, pairs("--rebase", rebase)))
        return
    if name is None:
        raise BadRequest("name a table of the server, such as db.orders, or give --table PATH")
    if rebase or properties:
        raise BadRequest("--rebase and --property go with --table; a server has its own")
    with access().connect() as lake:
        yield ServerSource(lake.table(table_name(name)))


def _planning(source: Source) -> AbstractContextManager[None]:
    """Show how far planning has come, where a person watches."""
    return show_planning(source.progress) if sys.stderr.isatty() else nullcontext()


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"floeberg {floeberg_version()}")
        raise typer.Exit


# --- commands -------------------------------------------------------------------------------------


@app.callback()
def floeberg(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, help="Show the version.")
    ] = False,
) -> None:
    """Serve Apache Iceberg tables over Arrow Flight, and read them."""


@app.command()
@reaching
def tables(
    access: GetAccess,
    as_json: Json = False,
) -> None:
    """List the tables that a server serves."""
    with access().connect() as lake:
        listing = lake.list_tables()
    names = listing.tables
    if as_json:
        typer.echo(json.dumps([list(name.parts) for name in names]))
    else:
        typer.echo("".join(printable(name.written()) + "\n" for name in names), nl=False)
    show.gaps(listing, console(stderr=True))


@app.command()
@reaching
def describe(
    access: GetAccess,
    name: Name = None,
    table: Location = None,
    rebase: Rebase = None,
    property: Property = None,
    as_json: Json = False,
) -> None:
    """Show what a table is like: version, columns, partitioning, branches, properties."""
    with _source(name, access, table, rebase, property) as source:
        found = source.describe()
    if as_json:
        typer.echo(found.model_dump_json())
    else:
        show.description(found, console())


@app.command()
@reaching
def schema(
    access: GetAccess,
    name: Name = None,
    table: Location = None,
    rebase: Rebase = None,
    property: Property = None,
    as_json: Json = False,
) -> None:
    """Show a table's columns, with the ids and types of nested fields."""
    with _source(name, access, table, rebase, property) as source:
        found = source.describe()
    if as_json:
        typer.echo(json.dumps(found.table_schema))
    else:
        show.columns(found, console())


@app.command()
@reaching
def snapshots(
    access: GetAccess,
    name: Name = None,
    table: Location = None,
    rebase: Rebase = None,
    property: Property = None,
    as_json: Json = False,
) -> None:
    """List a table's snapshots, oldest first, with the branches and tags at each."""
    with _source(name, access, table, rebase, property) as source:
        found = source.snapshots()
    if as_json:
        typer.echo(found.model_dump_json())
    else:
        show.snapshots(found, console())


@app.command()
@reaching
def files(
    access: GetAccess,
    name: Name = None,
    filter: Filter = None,
    snapshot_id: SnapshotId = None,
    ref: Ref = None,
    as_of: AsOf = None,
    case_insensitive: CaseInsensitive = False,
    table: Location = None,
    rebase: Rebase = None,
    property: Property = None,
    as_json: Json = False,
) -> None:
    """List the data files that a scan reads, with their deletes and what is left of the filter."""
    chosen = Selection(filter, None, snapshot_id, ref, as_of, None, not case_insensitive)
    with (
        _source(name, access, table, rebase, property) as source,
        _planning(source),
    ):
        found = source.files(chosen)
    if as_json:
        typer.echo(json.dumps(found))
    else:
        show.files(found["file-scan-tasks"], console())


@app.command()
@reaching
def explain(
    access: GetAccess,
    name: Name = None,
    filter: Filter = None,
    select: Select = None,
    snapshot_id: SnapshotId = None,
    ref: Ref = None,
    as_of: AsOf = None,
    limit: Limit = None,
    case_insensitive: CaseInsensitive = False,
    table: Location = None,
    rebase: Rebase = None,
    property: Property = None,
    as_json: Json = False,
) -> None:
    """Show how a scan is planned: what is ruled out and by what, deletes, endpoints, times.

    No row is read.
    """
    chosen = Selection(
        filter, column_names(select), snapshot_id, ref, as_of, limit, not case_insensitive
    )
    with (
        _source(name, access, table, rebase, property) as source,
        _planning(source),
    ):
        found = source.explain(chosen)
    if as_json:
        typer.echo(found.model_dump_json())
    else:
        show_explanation(found, console())


@app.command()
@reaching
def count(
    access: GetAccess,
    name: Name = None,
    filter: Filter = None,
    snapshot_id: SnapshotId = None,
    ref: Ref = None,
    as_of: AsOf = None,
    case_insensitive: CaseInsensitive = False,
    table: Location = None,
    rebase: Rebase = None,
    property: Property = None,
) -> None:
    """Count rows, from metadata where that is exact."""
    chosen = Selection(filter, None, snapshot_id, ref, as_of, None, not case_insensitive)
    with _source(name, access, table, rebase, property) as source:
        with _planning(source):
            rows = source.count(chosen)
        typer.echo(str(rows))


@app.command()
@reaching
def scan(
    access: GetAccess,
    name: Name = None,
    filter: Filter = None,
    select: Select = None,
    snapshot_id: SnapshotId = None,
    ref: Ref = None,
    as_of: AsOf = None,
    limit: Limit = None,
    ordered: Annotated[bool, typer.Option("--ordered", help="Rows in plan order.")] = False,
    case_insensitive: CaseInsensitive = False,
    format: Format = RowFormat.TABLE,
    output: Output = None,
    table: Location = None,
    rebase: Rebase = None,
    property: Property = None,
) -> None:
    """Read rows.

    A table shows the first 100 rows, unless --limit says how many.

    csv and json have values as Iceberg's single-value JSON: ISO dates and times,
    decimals and uuids as text, binary as hex, struct fields by their names.

    In csv, null is an empty field and the empty text is "".
    """
    columns = column_names(select)
    # without a limit, a table is a look at the first rows; without columns, it is their number
    is_look = format is RowFormat.TABLE and limit is None and columns != ()
    shown = SHOWN_ROWS if is_look else None
    chosen = Selection(
        filter,
        columns,
        snapshot_id,
        ref,
        as_of,
        limit if shown is None else shown + 1,
        not case_insensitive,
        ordered,
    )
    with _source(name, access, table, rebase, property) as source:
        with _planning(source):
            stream = source.rows(chosen)
        with closing(stream.batches):
            rows_are_seen = sys.stdout.isatty() and output is None and format is not RowFormat.TABLE
            is_watched = sys.stderr.isatty() and not rows_are_seen
            batches = show_progress(stream) if is_watched else stream.batches
            write_rows(stream.schema, batches, format, output, shown_rows=shown)


@app.command()
@reaching
def status(
    access: GetAccess,
    as_json: Json = False,
) -> None:
    """Show a server's catalogs and workers, and what they are doing."""
    with access().connect() as lake:
        found = lake.status()
    if as_json:
        typer.echo(found.model_dump_json())
    else:
        show_status(found, console())
