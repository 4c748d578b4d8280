"""Run the demo: `python -m deploy.demo [--keep] [--directory DIR]`."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import flight
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from deploy.demo import lake
from deploy.demo.service import Addresses, Service, ServiceFailed
from deploy.demo.tour import DemoFailed, Tour

CHECKOUT = Path(__file__).parents[2]
WORKERS = 2
USUAL_PORT = 8815


def main() -> int:
    arguments = _arguments()
    console = Console(highlight=False)
    errors = Console(stderr=True, highlight=False)
    directory: Path = arguments.directory.absolute()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    service = None
    try:
        directory.mkdir(parents=True, exist_ok=True)
        console.print()
        warehouse = prepare_lake(console, directory)
        with Service(warehouse, WORKERS, directory, _port(arguments.keep)) as service:
            started = time.perf_counter()
            with console.status("floeberg up is starting"):
                addresses = service.addresses()
            seconds = time.perf_counter() - started
            console.print(
                f"[bold]floeberg up[/] runs a coordinator and {len(addresses.workers)} workers"
                f" [dim](started in {seconds:.1f} s)[/]"
            )
            Tour(console, addresses).run()
            show_addresses(console, addresses, warehouse, keep=arguments.keep)
            if arguments.keep:
                service.wait()
                raise DemoFailed("floeberg up ended by itself")
        console.print("[dim]Everything is stopped.[/]\n")
    except KeyboardInterrupt:
        console.print("\n[dim]Stopped.[/]")
        return 0 if arguments.keep else 130
    except (DemoFailed, ServiceFailed) as exc:
        _fail(errors, str(exc))
        return 1
    except (pa.ArrowException, flight.FlightError) as exc:
        _fail(errors, f"{exc}\n{service.log_tail() if service else ''}")
        return 1
    return 0


def _fail(errors: Console, message: str) -> None:
    errors.print(f"\n[bold red]The demo failed:[/] {escape(message)}", soft_wrap=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m deploy.demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave it running until Ctrl-C")
    parser.add_argument(
        "--directory", type=Path, default=CHECKOUT / ".demo", help="where the lake and the log go"
    )
    return parser.parse_args()


def _port(keep: bool) -> int:
    """Return the port that clients expect, if the server is to stay and it is free; else 0."""
    if keep:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", USUAL_PORT))
            except OSError:
                return 0
        return USUAL_PORT
    return 0


def prepare_lake(console: Console, directory: Path) -> Path:
    """Write the lake unless it is there; return its warehouse directory."""
    warehouse = directory / "lake"
    shown = os.path.relpath(warehouse)
    if lake.is_complete(warehouse):
        console.print(
            f"[bold]A lake[/] of three Iceberg tables is in {shown} [dim](from the last run)[/]"
        )
        return warehouse
    console.print(f"[bold]A lake[/] of three Iceberg tables is being written to {shown}")
    started = time.perf_counter()
    columns = (TextColumn("  {task.description:<12}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console) as progress:
        bars: dict[str, Any] = {}
        for step in lake.write(warehouse):
            if step.table not in bars:
                bars[step.table] = progress.add_task(step.table, total=step.steps)
            progress.update(bars[step.table], completed=step.done)
    console.print(
        f"  [dim]written in {time.perf_counter() - started:.1f} s, kept for the next run[/]"
    )
    return warehouse


def show_addresses(console: Console, addresses: Addresses, warehouse: Path, *, keep: bool) -> None:
    """Say what to try next: against what runs on, or against one that the reader starts."""
    if keep:
        lines = [
            f"coordinator  [cyan]{addresses.coordinator}[/]",
            f"health       [cyan]{addresses.http}/healthz[/]",
            f"status       [cyan]{addresses.http}/status[/]",
            f"metrics      [cyan]{addresses.http}/metrics[/]",
            "",
        ]
        if not addresses.coordinator.endswith(f":{USUAL_PORT}"):
            lines.append(f"[cyan]export FLOEBERG_SERVER={addresses.coordinator}[/]")
    else:
        lines = [
            "[cyan]make demo KEEP=1[/] leaves it running. Or start it in another terminal:",
            "",
            f"[cyan].venv/bin/floeberg up --warehouse {os.path.relpath(warehouse)}[/]",
        ]
    lines += [
        "[cyan].venv/bin/floeberg tables[/]",
        "[cyan].venv/bin/floeberg describe nyc.trips[/]",
        "[cyan].venv/bin/floeberg scan shop.orders --limit 5 --format json[/]",
        "[cyan].venv/bin/floeberg sql[/]   [dim]a prompt; SHOW TABLES;[/]",
    ]
    if keep:
        lines += ["", "Ctrl-C stops it."]
    console.print()
    console.print(Panel("\n".join(lines), title="Try next", title_align="left", padding=(1, 2)))


if __name__ == "__main__":
    sys.exit(main())
