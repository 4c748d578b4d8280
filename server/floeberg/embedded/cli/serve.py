"""The `floeberg` command's services: a coordinator, a worker, or a whole fleet on this machine.

Their flags are the keys of their configurations, so that a value has one name everywhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from floeberg.embedded.up import UpConfig, run_up
from floeberg.process.config import config_from_command_line
from floeberg.protocol.sealing import Keyring
from floeberg.server.config import CoordinatorConfig
from floeberg.server.process import run_coordinator
from floeberg.worker.config import WorkerConfig
from floeberg.worker.process import run_worker

# everything after the command's name, --help too, is for the configuration's own parser
_PASS_ON = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}

_UP = "Serve tables from this machine: a coordinator and workers, kept running."
_COORDINATOR = "Run a coordinator: it plans scans, and sends clients to the workers."
_WORKER = "Run a worker: it reads what coordinators have planned."


def add_services(app: typer.Typer) -> None:
    """Give `app` the commands `up`, `coordinator`, `worker` and `key`."""
    app.command("up", help=_UP, context_settings=_PASS_ON)(up)
    app.command("coordinator", help=_COORDINATOR, context_settings=_PASS_ON)(coordinator)
    app.command("worker", help=_WORKER, context_settings=_PASS_ON)(worker)
    app.command("key")(key)


def up(context: typer.Context) -> None:
    config = config_from_command_line(
        UpConfig, context.args, os.environ, program="floeberg up", summary=_UP
    )
    run_up(config, on_ready=_announce)


def coordinator(context: typer.Context) -> None:
    config = config_from_command_line(
        CoordinatorConfig,
        context.args,
        os.environ,
        program="floeberg coordinator",
        summary=_COORDINATOR,
    )
    run_coordinator(config)


def worker(context: typer.Context) -> None:
    config = config_from_command_line(
        WorkerConfig, context.args, os.environ, program="floeberg worker", summary=_WORKER
    )
    run_worker(config)


def key(
    file: Annotated[
        Path, typer.Argument(help="A new file, for 'key_file' of coordinators and workers.")
    ],
) -> None:
    """Make a key that coordinators and workers share."""
    keyring = Keyring.generate()
    keyring.write(file)
    typer.echo(f"{file} holds the new key {keyring.active.key_id}; keep it to the fleet")


def _announce(addresses: Mapping[str, object]) -> None:
    console = Console(highlight=False)
    console.print(f"coordinator  [bold]{addresses['coordinator']}[/bold]", soft_wrap=True)
    console.print(f"health       {addresses['http']}", soft_wrap=True)
    workers = addresses["workers"]
    assert isinstance(workers, list)
    for one in workers:
        console.print(f"worker       {one['location']}", soft_wrap=True)
    server = addresses["coordinator"]
    console.print(f"try          floeberg tables --server {server}", soft_wrap=True)
