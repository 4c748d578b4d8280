"""Show what is known of tables and servers to a person at a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from floeberg.protocol.actions import RefEntry, SnapshotList, Status, TableDescription
from floeberg.protocol.partitioning import PartitionSpec
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import Json, NestedField, children, is_nested


def description(found: TableDescription, console: Console) -> None:
    """Print what a table is like, its columns last."""
    schema = Schema.from_json(found.table_schema)
    facts = RichTable.grid(padding=(0, 2))
    for label, value in (
        ("table", ".".join(found.identifier)),
        ("catalog", found.catalog),
        ("location", found.location or ""),
        ("metadata", found.metadata_location),
        ("format version", str(found.format_version)),
        ("uuid", found.table_uuid or ""),
        ("updated", _time(found.last_updated_ms)),
        ("partitioned by", _partitioning(found, schema)),
        ("snapshots", str(found.snapshot_count)),
        ("current snapshot", str(found.current_snapshot_id or "none")),
        ("refs", ", ".join(_ref(r) for r in found.refs)),
    ):
        if value:
            facts.add_row(f"[bold]{label}[/bold]", escape(value))
    for key, value in sorted(found.properties.items()):
        facts.add_row("[bold]property[/bold]", escape(f"{key} = {value}"))
    console.print(facts)
    console.print()
    columns(found, console)


def columns(found: TableDescription, console: Console) -> None:
    """Print a table's columns, nested fields below them."""
    schema = Schema.from_json(found.table_schema)
    table = RichTable("id", "column", "type", "", "doc")

    def add(field: NestedField, depth: int) -> None:
        kind = type(field.type).__name__.removesuffix("Type").lower()
        table.add_row(
            str(field.field_id),
            "  " * depth + escape(field.name),
            kind if is_nested(field.type) else escape(str(field.type)),
            "required" if field.required else "",
            escape(field.doc or ""),
        )
        for child in children(field.type):
            add(child, depth + 1)

    for field in schema.fields:
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
    table = RichTable("snapshot", "time", "operation", "added rows", "total rows", "refs")
    for snapshot in found.snapshots:
        refs = [r for r in found.refs if r.snapshot_id == snapshot.snapshot_id]
        table.add_row(
            str(snapshot.snapshot_id),
            _time(snapshot.timestamp_ms),
            snapshot.operation,
            snapshot.summary.get("added-records", ""),
            snapshot.summary.get("total-records", ""),
            ", ".join(_ref(r) for r in refs),
        )
    console.print(table)


def files(tasks: Sequence[Json], console: Console) -> None:
    """Print a plan, a line a task."""
    table = RichTable("file", "from", "length", "rows", "deletes", "residual")
    for task in tasks:
        table.add_row(
            escape(str(task["data-file"]["file-path"])),
            f"{task['start']:,}",
            f"{task['length']:,}",
            f"{task['data-file']['record-count']:,}",
            str(len(task.get("delete-file-references") or [])),
            escape(str(task["residual"])),
        )
    console.print(table)
    console.print(f"{len(tasks):,} tasks")


def status(found: Status, console: Console) -> None:
    """Print a coordinator and its fleet."""
    console.print(
        f"coordinator {escape(found.coordinator_id)}, version {found.version},"
        f" up {found.uptime_seconds:,.0f} s"
    )
    for catalog in found.catalogs:
        default = " (default)" if catalog.is_default else ""
        console.print(f"catalog {escape(catalog.name)}: {escape(catalog.kind)}{default}")
    table = RichTable("worker", "location", "state", "zone", "streams", "in flight", "version")
    for worker in found.workers:
        table.add_row(
            escape(worker.worker_id),
            escape(worker.location),
            worker.state,
            escape(worker.zone or ""),
            f"{worker.streams} of {worker.max_streams}",
            f"{worker.bytes_in_flight:,} of {worker.max_bytes:,} bytes",
            worker.version,
        )
    console.print(table)
    if found.queries:
        console.print(", ".join(f"{n:,} {name}" for name, n in sorted(found.queries.items())))


def _ref(ref: RefEntry) -> str:
    return f"{ref.name} ({ref.type})"


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(sep=" ", timespec="seconds")
