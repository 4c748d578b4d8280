"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from floeberg.embedded.cli.rows import RowFormat

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="TABLE",
        help='A table of the server, such as db.orders; ["db", "a.b"] where a name holds a dot.',
    ),
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
    str | None,
    typer.Option(
        "--filter", "-f", metavar="FILTER", help="Such as: amount > 10 AND region = 'eu'."
    ),
]
Select = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        "-s",
        metavar="COLUMNS",
        help='Names with commas between, or a list such as ["a,b"]; may be repeated.'
        ' "" is no column, which counts rows.',
    ),
]
SnapshotId = Annotated[
    int | None, typer.Option("--snapshot-id", metavar="ID", help="Read this snapshot.")
]
Ref = Annotated[str | None, typer.Option("--ref", metavar="NAME", help="Read this branch or tag.")]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="TIME",
        help="Read what was current then: ISO 8601 with an offset, or ms since the epoch.",
    ),
]
Limit = Annotated[
    int | None, typer.Option("--limit", "-n", metavar="ROWS", help="At most this many rows.")
]
Format = Annotated[
    RowFormat,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="table, csv, json (an object a line), arrow or parquet.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="A file, instead of standard output."),
]
CaseInsensitive = Annotated[
    bool, typer.Option("--case-insensitive", help="Match column names without regard to case.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
