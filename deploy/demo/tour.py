"""What the demo shows of a running floeberg, step by step."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from deploy.demo import client, lake
from deploy.demo.service import Addresses

pc: Any = pyarrow.compute  # the stubs lack overloads for what is used here


class DemoFailed(Exception):
    """Something was not as it should be; the message says what."""


class Tour:
    """Reads the lake, and shows what comes. Raises `DemoFailed` where it isn't right."""

    def __init__(self, console: Console, addresses: Addresses) -> None:
        self._console = console
        self._addresses = addresses
        self._server = addresses.coordinator
        self._steps = 0

    def run(self) -> None:
        self._console.print(
            "[dim]The client is deploy/demo/client.py: pyarrow.flight, and nothing of floeberg[/]"
        )
        self.tables()
        self.filtered()
        self.whole_table()
        self.deletes()
        self.time_travel()
        self.commands()
        self.sql()

    # --- steps ------------------------------------------------------------------------------------

    def tables(self) -> None:
        self._heading("Which tables are there?", "list_flights()")
        found = client.list_tables(self._server)
        if not found:
            raise DemoFailed("the coordinator lists no table")
        grid = _grid("table", "rows", "columns")
        for info in found:
            name = ".".join(part.decode() for part in info.descriptor.path or ())
            total = client.plan(self._server, info.descriptor).total_records
            rows = f"{total:,}" if total >= 0 else "[dim]known once read[/]"
            grid.add_row(name, rows, _shortened(info.schema.names, 4))
        self._indented(grid)

    def filtered(self) -> None:
        self._heading("A filter and four columns", "get_flight_info(command), do_get(ticket)")
        scan = {
            "table": "nyc.trips",
            "filter": "picked_up_at >= '2024-05-01T00:00:00' AND distance > 22",
            "select": ["picked_up_at", "zone", "distance", "fare"],
        }
        for key, value in scan.items():
            shown = ", ".join(value) if isinstance(value, list) else str(value)
            self._console.print(Text(f"  {key:<7} {shown}", "cyan"))
        self._console.print()
        answer = self._scan(scan)
        self._indented(_rows(answer.rows.sort_by([("distance", "descending")]), 4))
        self._served(answer)

    def whole_table(self) -> None:
        self._heading("The whole table, from all workers at once", "get_flight_info(path)")
        answer = client.read(self._server, client.path("nyc", "trips"))
        self._served(answer)
        rate = answer.rows.num_rows / answer.read_seconds
        self._console.print(f"  [green]{rate / 1e6:.1f} million rows a second[/]")
        if answer.rows.num_rows != lake.MONTHS * lake.TRIPS_A_MONTH:
            raise DemoFailed(f"nyc.trips gave {answer.rows.num_rows:,} rows")

    def deletes(self) -> None:
        self._heading("Deletes are merged while reading", "nothing was rewritten")
        before = self._scan({"table": "shop.orders", "ref": lake.ORDERS_TAG, "select": ["status"]})
        after = self._scan({"table": "shop.orders", "select": ["status"]})
        events = self._scan({"table": "shop.events", "select": ["device.is_bot"]})
        written = lake.EVENT_DAYS * lake.EVENTS_A_DAY
        grid = _grid("table", "rows", "written", "without")
        grid.add_row(
            "shop.orders",
            f"{after.rows.num_rows:,}",
            f"{before.rows.num_rows + 1:,}",
            "cancelled ones: position deletes",
        )
        grid.add_row(
            "", "", "", f"{lake.FORGOTTEN_CUSTOMERS} forgotten customers: equality deletes"
        )
        grid.add_row(
            "shop.events",
            f"{events.rows.num_rows:,}",
            f"{written:,}",
            "bots: deletion vectors",
        )
        self._indented(grid)
        bots = pc.any(pc.struct_field(events.rows["device"], "is_bot")).as_py()
        if bots or "cancelled" in after.rows["status"].to_pylist():
            raise DemoFailed("deleted rows came back")

    def time_travel(self) -> None:
        self._heading("Time travel, and the schema travels too", "tags, branches, snapshots, times")
        first = self._scan({"table": "nyc.trips", "ref": lake.TRIPS_TAG, "limit": 1}).rows.schema
        now = self._scan({"table": "nyc.trips", "limit": 1}).rows.schema
        grid = _grid("nyc.trips", "columns that differ")
        grid.add_row(f"tag {lake.TRIPS_TAG}", _only_in(first, now))
        grid.add_row("now", _only_in(now, first))
        self._indented(grid)
        self._console.print()
        grid = _grid("nyc.trips", "tips of December 2024")
        for branch in ("main", lake.TRIPS_BRANCH):
            tips = self._scan(
                {
                    "table": "nyc.trips",
                    "filter": "picked_up_at >= '2024-12-01T00:00:00'",
                    "select": ["tip"],
                    "ref": branch,
                }
            )
            grid.add_row(f"branch {branch}", f"{pc.sum(tips.rows['tip']).as_py():,}")
        self._indented(grid)

    def commands(self) -> None:
        self._heading("From the command line", f"FLOEBERG_SERVER={self._server}")
        self._floeberg("count", "shop.orders", "--filter", "region = 'eu' AND amount > 450")
        self._floeberg(
            *("scan", "nyc.trips", "--filter", "zone = 42 AND tip > 20", "--limit", "3"),
            *("--select", "picked_up_at,distance,fare,tip"),
        )

    def sql(self) -> None:
        self._heading("In SQL", "also from ADBC, JDBC and what stands on them: docs/sql.md")
        self._floeberg(
            "sql",
            "SELECT payment, count(*) AS trips, avg(fare) AS fare FROM nyc.trips"
            " GROUP BY payment ORDER BY trips DESC",
        )

    # --- details ----------------------------------------------------------------------------------

    def _scan(self, scan: Mapping[str, Any]) -> client.Answer:
        return client.read(self._server, client.command(scan))

    def _served(self, answer: client.Answer) -> None:
        """Show which worker gave what, and how long it took."""
        by_worker: dict[str, list[client.Part]] = defaultdict(list)
        for part in answer.parts:
            by_worker[part.location].append(part)
        grid = _grid("served by", "at", "endpoints", "rows", "bytes")
        for location in sorted(by_worker, key=self._addresses.name_of):
            parts = by_worker[location]
            grid.add_row(
                self._addresses.name_of(location),
                location,
                f"{len(parts)}",
                f"{sum(p.rows for p in parts):,}",
                _size(sum(p.nbytes for p in parts)),
            )
        self._console.print()
        self._indented(grid)
        self._console.print(
            f"\n  [green]{answer.rows.num_rows:,} rows[/], planned in"
            f" {answer.plan_seconds * 1000:.0f} ms and read in {answer.read_seconds * 1000:.0f} ms"
        )

    def _floeberg(self, *arguments: str) -> None:
        shown = " ".join(_quoted(argument) for argument in arguments)
        self._console.print(Text(f"  $ floeberg {shown}", "cyan"), soft_wrap=True)
        done = subprocess.run(
            [sys.executable, "-m", "floeberg.embedded", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={
                **os.environ,
                "FLOEBERG_SERVER": self._server,
                "COLUMNS": str(self._console.width - 2),
            },
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


_NUMBERS = ("rows", "written", "endpoints", "bytes", "tips of December 2024")


def _grid(*names: str) -> Table:
    grid = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for i, name in enumerate(names):
        justify: Literal["left", "right"] = "right" if name in _NUMBERS else "left"
        # where space is short, the last column gives way
        grid.add_column(name, justify=justify, no_wrap=i < len(names) - 1)
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


def _shortened(names: Sequence[str], limit: int) -> str:
    more = [f"and {len(names) - limit} more"] if len(names) > limit else []
    return ", ".join([*names[:limit], *more])


def _only_in(schema: pa.Schema, other: pa.Schema) -> str:
    fields = [f for f in schema if f.name not in other.names or other.field(f.name).type != f.type]
    return ", ".join(f"{f.name} {f.type}" for f in fields) or "none"


def _size(nbytes: int) -> str:
    return f"{nbytes / 1e6:.1f} MB" if nbytes >= 1e5 else f"{nbytes / 1e3:.1f} kB"


def _quoted(argument: str) -> str:
    """Return a shell word; double quotes suit a filter, which holds single ones."""
    return f'"{argument}"' if " " in argument else argument
