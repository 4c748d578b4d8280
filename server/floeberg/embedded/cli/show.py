"""Show what is known of tables and servers to a person at a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Column
from rich.table import Table as RichTable

from floeberg.client.lake import TableListing
from floeberg.embedded.cli.terminal import plain
from floeberg.protocol.actions import RefEntry, SnapshotList, TableDescription
from floeberg.protocol.civil_time import format_timestamp
from floeberg.protocol.expressions.json_form import expression_from_json
from floeberg.protocol.expressions.model import TRUE
from floeberg.protocol.expressions.text import format_filter
from floeberg.protocol.partitioning import PartitionSpec
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import Json, NestedField, children, is_nested


def gaps(found: TableListing, console: Console) -> None:
    """Print which catalogs are missing in a list of tables, or that there is none to list."""
    for catalog, reason in found.unlisted.items():
        console.print(plain(f"catalog {catalog} is not listed: {reason}"), soft_wrap=True)
    if not found.tables and not found.unlisted:
        console.print("no tables: a warehouse is the directory above those of its tables")


def description(found: TableDescription, console: Console) -> None:
    """Print what a table is like, its columns last."""
    schema = Schema.from_json(found.table_schema)
    facts = RichTable.grid(padding=(0, 2))
    for label, value in (
        ("table", ".".join(found.identifier)),
        ("catalog", found.catalog),
        ("location", found.location),
        ("metadata", found.metadata_location),
        ("format version", found.format_version),
        ("uuid", found.table_uuid),
        ("updated", _time(found.last_updated_ms)),
        ("partitioned by", _partitioning(found, schema)),
        ("snapshots", found.snapshot_count),
        ("current snapshot", found.current_snapshot_id or "none"),
        ("refs", ", ".join(_ref(r) for r in found.refs)),
        *(("property", f"{key} = {value}") for key, value in sorted(found.properties.items())),
    ):
        if value not in (None, ""):
            facts.add_row(plain(label, "bold"), plain(value))
    console.print(facts)
    console.print()
    columns(found, console)


def columns(found: TableDescription, console: Console) -> None:
    """Print a table's columns, nested fields below them."""
    table = RichTable("id", "column", "type", "nulls", "doc")

    def add(field: NestedField, depth: int) -> None:
        kind = type(field.type).__name__.removesuffix("Type").lower()
        table.add_row(
            str(field.field_id),
            plain("  " * depth + field.name),
            kind if is_nested(field.type) else plain(field.type),
            "no" if field.required else "yes",
            plain(field.doc or ""),
        )
        for child in children(field.type):
            add(child, depth + 1)

    for field in Schema.from_json(found.table_schema).fields:
        add(field, 0)
    console.print(table)


def _partitioning(found: TableDescription, schema: Schema) -> str:
    specs = [PartitionSpec.from_json(raw) for raw in found.partition_specs]
    spec = next(s for s in specs if s.spec_id == found.default_spec_id)
    terms = []
    for field in spec.fields:
        source = schema.find(field.source_id)
        name = schema.name_of(field.source_id) if source else f"(dropped column {field.source_id})"
        terms.append(name if str(field.transform) == "identity" else f"{field.transform}({name})")
    others = len(specs) - 1
    earlier = f" (and {others} other {'spec' if others == 1 else 'specs'})" if others else ""
    return (", ".join(terms) or "nothing") + earlier


def snapshots(found: SnapshotList, console: Console) -> None:
    """Print snapshots, oldest first, with the names that point at each."""
    table = RichTable(
        "snapshot", "time", "operation", _number("added rows"), _number("total rows"), "refs"
    )
    for snapshot in found.snapshots:
        refs = [r for r in found.refs if r.snapshot_id == snapshot.snapshot_id]
        table.add_row(
            str(snapshot.snapshot_id),
            _time(snapshot.timestamp_ms),
            plain(snapshot.operation),
            plain(_grouped(snapshot.summary.get("added-records", ""))),
            plain(_grouped(snapshot.summary.get("total-records", ""))),
            plain(", ".join(_ref(r) for r in refs)),
        )
    console.print(table)


def files(tasks: Sequence[Json], console: Console) -> None:
    """Print the data files of a plan, a line each."""
    table = RichTable(
        "file", _number("bytes"), _number("rows"), _number("deletes"), "left of the filter"
    )
    for task in tasks:
        file, residual = task["data-file"], expression_from_json(task["residual"])
        table.add_row(
            plain(file["file-path"]),
            f"{file['file-size-in-bytes']:,}",
            f"{file['record-count']:,}",
            str(len(task["delete-file-references"])),
            "" if residual == TRUE else plain(format_filter(residual)),
        )
    console.print(table)
    console.print(f"{len(tasks):,} {'file' if len(tasks) == 1 else 'files'}")


def _number(header: str) -> Column:
    return Column(header, justify="right")


def _grouped(count: str) -> str:
    """Return a count of a snapshot's summary, which may hold anything, with its thousands apart."""
    return f"{int(count):,}" if count.isdecimal() and len(count) < 20 else count


def _ref(ref: RefEntry) -> str:
    return f"{ref.name} ({ref.type})"


def _time(milliseconds: int) -> str:
    """Return a time to the millisecond, so that `--as-of` takes it to mean the same snapshot."""
    text = format_timestamp(milliseconds * 1000, nanos=False, zoned=False)
    return text.removesuffix("000").replace("T", " ") + "Z"
