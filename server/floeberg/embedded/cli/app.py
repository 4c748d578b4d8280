"""The `floeberg` command's questions: they go to a server, or to a table opened in this process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from floeberg.client import connect
from floeberg.embedded.cli import show
from floeberg.embedded.cli.progress import show_progress
from floeberg.embedded.cli.rows import RowFormat, write_rows
from floeberg.embedded.cli.sources import LocalSource, Selection, ServerSource, Source
from floeberg.embedded.table import open_table
from floeberg.protocol.errors import BadRequest

app = typer.Typer(
    name="floeberg",
    help="Serve Apache Iceberg tables over Arrow Flight, and read them.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

# --- options that several commands share ---------------------------------------------------------

Name = Annotated[
    str | None, typer.Argument(metavar="[TABLE]", help="A table of the server, such as db.orders.")
]
Server = Annotated[
    str, typer.Option("--server", envvar="FLOEBERG_SERVER", help="The coordinator's address.")
]
Token = Annotated[
    str | None,
    typer.Option("--token", envvar="FLOEBERG_TOKEN", help="A bearer token.", show_default=False),
]
TlsRoots = Annotated[
    Path | None,
    typer.Option("--tls-roots", envvar="FLOEBERG_TLS_ROOTS", help="Certificates to trust (PEM)."),
]
Location = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="PATH",
        help="Read a table without a server: its directory, or a metadata file.",
    ),
]
Rebase = Annotated[
    list[str] | None,
    typer.Option("--rebase", metavar="OLD=NEW", help="With --table: where a prefix lives now."),
]
Property = Annotated[
    list[str] | None,
    typer.Option("--property", metavar="KEY=VALUE", help="With --table: a FileIO property."),
]
Filter = Annotated[
    str | None, typer.Option("--filter", "-f", help="Such as: amount > 10 AND region = 'eu'.")
]
Select = Annotated[
    list[str] | None,
    typer.Option("--select", "-s", metavar="COLUMNS", help="Comma-separated; may be repeated."),
]
SnapshotId = Annotated[int | None, typer.Option("--snapshot-id", help="Read this snapshot.")]
Ref = Annotated[str | None, typer.Option("--ref", help="Read this branch or tag.")]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", help="Read what was current then: ISO time with offset, or ms."),
]
Limit = Annotated[int | None, typer.Option("--limit", "-n", help="At most this many rows.")]
CaseInsensitive = Annotated[
    bool, typer.Option("--case-insensitive", help="Match column names without regard to case.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

DEFAULT_SERVER = "grpc://127.0.0.1:8815"


def _source(
    name: str | None,
    server: str,
    token: str | None,
    tls_roots: Path | None,
    location: str | None,
    rebase: Sequence[str] | None,
    properties: Sequence[str] | None,
) -> Source:
    if location is not None:
        if name is not None:
            raise BadRequest(f"name one table: {name!r} of a server, or --table {location}")
        pairs = _pairs("--rebase", rebase)
        return LocalSource(open_table(location, _pairs("--property", properties), pairs))
    if name is None:
        raise BadRequest("name a table of the server, such as db.orders, or give --table PATH")
    return ServerSource(connect(server, token, tls_roots).table(name))


def _pairs(option: str, given: Sequence[str] | None) -> dict[str, str]:
    pairs = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise BadRequest(f"{option} {text!r} is not of the form KEY=VALUE")
        pairs[key] = value
    return pairs


def _columns(given: Sequence[str] | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    return tuple(name.strip() for text in given for name in text.split(",") if name.strip())


# --- commands ------------------------------------------------------------------------------------


@app.command()
def tables(
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    tls_roots: TlsRoots = None,
    as_json: Json = False,
) -> None:
    """List the tables that a server serves."""
    with connect(server, token, tls_roots) as lake:
        names = lake.tables()
    if as_json:
        typer.echo(json.dumps([name.to_json() for name in names]))
    for name in () if as_json else names:
        typer.echo(str(name))


@app.command()
def describe(
    name: Name = None,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    tls_roots: TlsRoots = None,
    table: Location = None,
    rebase: Rebase = None,
    property: Property = None,
    as_json: Json = False,
) -> None:
    """Show what a table is like: version, columns, partitioning, branches, properties."""
    found = _source(name, server, token, tls_roots, table, rebase, property).describe()
    if as_json:
        typer.echo(found.model_dump_json())
    else:
        show.description(found, Console())


@app.command()
def schema(
    name: Name = None,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    tls_roots: TlsRoots = None,
    table: Location = None,
    rebase: Rebase = None,
    property: Property = None,
    as_json: Json = False,
) -> None:
    """Show a table's columns, with the ids and types of nested fields."""
    found = _source(name, server, token, tls_roots, table, rebase, property).describe()
    if as_json:
        typer.echo(json.dumps(found.table_schema))
    else:
        show.columns(found, Console())


@app.command()
def snapshots(
    name: Name = None,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    tls_roots: TlsRoots = None,
    table: Location = None,
    rebase: Rebase = None,
    property: Property = None,
    as_json: Json = False,
) -> None:
    """List a table's snapshots, oldest first, with the branches and tags at each."""
    found = _source(name, server, token, tls_roots, table, rebase, property).snapshots()
    if as_json:
        typer.echo(found.model_dump_json())
    else:
        show.snapshots(found, Console())


@app.command()
def files(
    name: Name = None,
    filter: Filter = None,
    snapshot_id: SnapshotId = None,
    ref: Ref = None,
    as_of: AsOf = None,
    case_insensitive: CaseInsensitive = False,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    tls_roots: TlsRoots = None,
    table: Location = None,
    rebase: Rebase = None,
    property: Property = None,
    as_json: Json = False,
) -> None:
    """List the data files that a scan reads, with their deletes and what is left of the filter."""
    chosen = Selection(filter, None, snapshot_id, ref, as_of, None, not case_insensitive)
    found = _source(name, server, token, tls_roots, table, rebase, property).files(chosen)
    if as_json:
        typer.echo(json.dumps(found))
    else:
        show.files(found, Console())


@app.command()
def count(
    name: Name = None,
    filter: Filter = None,
    snapshot_id: SnapshotId = None,
    ref: Ref = None,
    as_of: AsOf = None,
    case_insensitive: CaseInsensitive = False,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    tls_roots: TlsRoots = None,
    table: Location = None,
    rebase: Rebase = None,
    property: Property = None,
) -> None:
    """Count rows: from metadata where that is exact, else by reading no column of them."""
    chosen = Selection(filter, None, snapshot_id, ref, as_of, None, not case_insensitive)
    source = _source(name, server, token, tls_roots, table, rebase, property)
    typer.echo(str(source.count(chosen)))


@app.command()
def scan(
    name: Name = None,
    filter: Filter = None,
    select: Select = None,
    snapshot_id: SnapshotId = None,
    ref: Ref = None,
    as_of: AsOf = None,
    limit: Limit = None,
    ordered: Annotated[bool, typer.Option("--ordered", help="Rows in plan order.")] = False,
    case_insensitive: CaseInsensitive = False,
    format: Annotated[
        RowFormat, typer.Option("--format", help="json is one object a line.")
    ] = RowFormat.TABLE,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file, instead of standard output.")
    ] = None,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    tls_roots: TlsRoots = None,
    table: Location = None,
    rebase: Rebase = None,
    property: Property = None,
) -> None:
    """Read rows.

    Values in csv and json are encoded as Iceberg's single-value JSON: ISO dates and times, decimals
    and uuids as strings, binary as hex. Struct fields go by their names.
    """
    chosen = Selection(
        filter,
        _columns(select),
        snapshot_id,
        ref,
        as_of,
        limit,
        not case_insensitive,
        ordered,
    )
    stream = _source(name, server, token, tls_roots, table, rebase, property).rows(chosen)
    batches = show_progress(stream.batches, stream.total_rows, stream.parts)
    write_rows(stream.schema, batches, format, output)


@app.command()
def status(
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    tls_roots: TlsRoots = None,
    as_json: Json = False,
) -> None:
    """Show a server's catalogs and workers, and what they are doing."""
    with connect(server, token, tls_roots) as lake:
        found = lake.status()
    if as_json:
        typer.echo(found.model_dump_json())
    else:
        show.status(found, Console())
