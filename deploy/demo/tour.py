"""What the demo shows of a running floeberg, step by step."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute
from deploy.demo import client, lake
from deploy.demo.service import Addresses
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

pc: Any = pyarrow.compute  # the stubs lack overloads for what is used here


class DemoFailed(Exception):
    """Something was not as it should be; the message says what."""


class Tour:
    """Reads the lake, and shows what comes. Raises `DemoFailed` where it isn't right."""

    def __init__(self, console: Console, addresses: Addresses) -> None:
        self._console = console
        self._addresses = addresses
        self._steps = 0

    def run(self) -> None:
        self._console.print(
            "[dim]The client below is stock pyarrow.flight: it imports nothing of floeberg.[/]"
        )
        self.tables()
        self.filtered()
        self.whole_table()
        self.deletes()
        self.time_travel()
        self.commands()

    # --- steps ------------------------------------------------------------------------------------

    def tables(self) -> None:
        self._heading("Which tables are there?", "list_flights()")
        found = client.list_tables(self._addresses.coordinator)
        if not found:
            raise DemoFailed("the coordinator lists no table")
        grid = _grid("table", "rows", "columns")
        for info in found:
            name = ".".join(part.decode() for part in info.descriptor.path or ())
            rows = (
                f"{info.total_records:,}" if info.total_records >= 0 else "[dim]known once read[/]"
            )
            grid.add_row(name, rows, ", ".join(info.schema.names))
        self._indented(grid)

    def filtered(self) -> None:
        self._heading(
            "A filter and four columns", "get_flight_info(command), do_get(ticket) at the workers"
        )
        answer = self._scan(
            {
                "table": "nyc.trips",
                "filter": "pickup_at >= '2024-05-01T00:00:00' AND distance_km > 22",
                "select": ["pickup_at", "zone", "distance_km", "fare"],
            }
        )
        self._indented(_rows(answer.rows.sort_by([("distance_km", "descending")]), 4))
        self._served(answer)

    def whole_table(self) -> None:
        self._heading("The whole table, from all workers at once", 'path ["nyc", "trips"]')
        answer = client.read(self._addresses.coordinator, client.path("nyc", "trips"))
        self._served(answer)
        if answer.rows.num_rows != lake.MONTHS * lake.TRIPS_A_MONTH:
            raise DemoFailed(f"nyc.trips gave {answer.rows.num_rows:,} rows")

    def deletes(self) -> None:
        self._heading(
            "Deletes are merged while reading",
            "position deletes, equality deletes, deletion vectors",
        )
        grid = _grid("scan", "rows", "")
        before = self._scan(
            {"table": "shop.orders", "ref": lake.ORDERS_TAG, "select": ["status"]}, show=False
        )
        after = self._scan(
            {"table": "shop.orders", "select": ["customer_id", "status"]}, show=False
        )
        cancelled = pc.sum(pc.equal(after.rows["status"], "cancelled")).as_py()
        grid.add_row(f"shop.orders at tag {lake.ORDERS_TAG}", f"{before.rows.num_rows:,}", "")
        grid.add_row(
            "shop.orders now",
            f"{after.rows.num_rows:,}",
            f"{cancelled} of them cancelled: position deletes took those,"
            f" and an equality delete {lake.FORGOTTEN_CUSTOMERS} customers",
        )
        events = self._scan({"table": "shop.events", "select": ["device.is_bot"]}, show=False)
        written = lake.EVENT_DAYS * lake.EVENTS_A_DAY
        grid.add_row(
            "shop.events now",
            f"{events.rows.num_rows:,}",
            f"of {written:,} written: Iceberg v3's deletion vectors took the bots",
        )
        self._indented(grid)
        if cancelled or not 0 < events.rows.num_rows < written:
            raise DemoFailed("deleted rows came back")

    def time_travel(self) -> None:
        self._heading("Time travel: the schema travels too", "snapshot_id, tags, branches")
        first = self._scan({"table": "nyc.trips", "ref": lake.TRIPS_TAG, "limit": 1}, show=False)
        now = self._scan({"table": "nyc.trips", "limit": 1}, show=False)
        grid = _grid("nyc.trips", "columns that differ")
        grid.add_row(f"at tag {lake.TRIPS_TAG}", _only_in(first.rows.schema, now.rows.schema))
        grid.add_row("now", _only_in(now.rows.schema, first.rows.schema))
        december = {
            "table": "nyc.trips",
            "filter": "pickup_at >= '2024-12-01T00:00:00'",
            "select": ["tip"],
        }
        tips = {
            ref: pc.sum(self._scan({**december, "ref": ref}, show=False).rows["tip"]).as_py()
            for ref in ("main", lake.TRIPS_BRANCH)
        }
        self._indented(grid)
        self._console.print()
        grid = _grid("nyc.trips, December 2024", "sum of tips")
        for ref, tip in tips.items():
            grid.add_row(f"on branch {ref}", f"{tip:,}")
        self._indented(grid)

    def commands(self) -> None:
        self._heading("The same from the command line", "")
        server = ("--server", self._addresses.coordinator)
        self._floeberg(
            "count", "shop.orders", "--filter", "region = 'eu' AND amount > 450", *server
        )
        self._floeberg(
            *("scan", "nyc.trips", "--filter", "zone = 42 AND tip > 20"),
            *("--select", "pickup_at,distance_km,fare,tip", "--limit", "3", *server),
        )

    # --- details ----------------------------------------------------------------------------------

    def _scan(self, scan: Mapping[str, Any], show: bool = True) -> client.Answer:
        if show:
            for key, value in scan.items():
                shown = ", ".join(value) if isinstance(value, list) else str(value)
                self._console.print(Text(f"  {key:<7} {shown}", "cyan"))
            self._console.print()
        return client.read(self._addresses.coordinator, client.command(scan))

    def _served(self, answer: client.Answer) -> None:
        """Show which worker gave what, and how fast."""
        by_worker: dict[str, list[client.Part]] = defaultdict(list)
        for part in answer.parts:
            by_worker[part.location].append(part)
        grid = _grid("served by", "at", "endpoints", "rows", "MB")
        for location in sorted(by_worker, key=self._addresses.name_of):
            parts = by_worker[location]
            grid.add_row(
                self._addresses.name_of(location),
                location,
                f"{len(parts)}",
                f"{sum(p.rows for p in parts):,}",
                f"{sum(p.nbytes for p in parts) / 1e6:.1f}",
            )
        self._console.print()
        self._indented(grid)
        rows, seconds = answer.rows.num_rows, answer.read_seconds
        self._console.print(
            f"  [green]{rows:,} rows[/]: planned in {answer.plan_seconds * 1000:.0f} ms, read in"
            f" {seconds * 1000:.0f} ms, [green]{_rounded(rows / seconds)} rows a second[/]"
        )

    def _floeberg(self, *arguments: str) -> None:
        self._console.print(Text(f"  $ floeberg {shlex.join(arguments)}", "cyan"), soft_wrap=True)
        done = subprocess.run(
            [sys.executable, "-m", "floeberg.embedded", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "COLUMNS": str(self._console.width - 4)},
        )
        if done.returncode != 0:
            raise DemoFailed(
                f"floeberg {arguments[0]} ended with status {done.returncode}: {done.stderr}"
            )
        self._indented(Text(done.stdout.rstrip()))

    def _heading(self, title: str, how: str) -> None:
        self._steps += 1
        self._console.print(f"\n[bold]{self._steps}  {title}[/]  [dim]{escape(how)}[/]")

    def _indented(self, what: Any) -> None:
        self._console.print(Padding(what, (0, 0, 0, 2)))


def _grid(*names: str) -> Table:
    grid = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for name in names:
        is_number = name in ("rows", "MB", "endpoints", "sum of tips")
        grid.add_column(name, justify="right" if is_number else "left", overflow="fold")
    return grid


def _rows(table: pa.Table, limit: int) -> Table:
    grid = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for name in table.column_names:
        is_text = pa.types.is_string(table.schema.field(name).type)
        grid.add_column(name, justify="left" if is_text else "right")
    for row in table.slice(0, limit).to_pylist():
        grid.add_row(*(str(value) for value in row.values()))
    if table.num_rows > limit:
        grid.add_row(f"[dim]and {table.num_rows - limit:,} more[/]")
    return grid


def _only_in(schema: pa.Schema, other: pa.Schema) -> str:
    fields = [f for f in schema if f.name not in other.names or other.field(f.name).type != f.type]
    return ", ".join(f"{f.name} {f.type}" for f in fields) or "[dim]none[/]"


def _rounded(number: float) -> str:
    return f"{number / 1e6:.1f} million" if number >= 1e6 else f"{number:,.0f}"
