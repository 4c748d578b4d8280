"""The `floeberg` command's services: a coordinator, a worker, or a whole fleet on this machine.

Their flags are the keys of their configurations, so that a value has one name everywhere. A service
is imported when it is asked for: the libraries of its catalogs and stores take longer to load than
most questions to a server take to answer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from floeberg.embedded.cli.terminal import printable
from floeberg.process.config import config_from_command_line
from floeberg.protocol.sealing import Keyring

# everything after the command's name, --help too, is for the configuration's own parser
_PASS_ON = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
_PANEL = "Serve"

_UP = "Serve tables from this machine: a coordinator and workers, kept running."
_COORDINATOR = "Run a coordinator: it plans scans, and sends clients to the workers."
_WORKER = "Run a worker: it reads what coordinators have planned."


def add_services(app: typer.Typer) -> None:
    """Give `app` the commands `up`, `coordinator`, `worker` and `key`."""
    passing_on = partial(app.command, context_settings=_PASS_ON, rich_help_panel=_PANEL)
    passing_on("up", help=_UP)(up)
    passing_on("coordinator", help=_COORDINATOR)(coordinator)
    passing_on("worker", help=_WORKER)(worker)
    app.command("key", rich_help_panel=_PANEL)(key)


def up(context: typer.Context) -> None:
    from floeberg.embedded.up import UpConfig, run_up

    config = config_from_command_line(
        UpConfig, context.args, os.environ, program="floeberg up", summary=_UP
    )
    run_up(config, on_ready=_announce)


def coordinator(context: typer.Context) -> None:
    from floeberg.server.config import CoordinatorConfig
    from floeberg.server.process import run_coordinator

    config = config_from_command_line(
        CoordinatorConfig,
        context.args,
        os.environ,
        program="floeberg coordinator",
        summary=_COORDINATOR,
    )
    run_coordinator(config)


def worker(context: typer.Context) -> None:
    from floeberg.worker.config import WorkerConfig
    from floeberg.worker.process import run_worker

    config = config_from_command_line(
        WorkerConfig, context.args, os.environ, program="floeberg worker", summary=_WORKER
    )
    run_worker(config)


def key(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A new file, for 'key_file' of coordinators and workers."
        ),
    ],
) -> None:
    """Make a key that coordinators and workers share."""
    keyring = Keyring.generate()
    keyring.write(file)
    typer.echo(
        f"{printable(str(file))} holds the new key {keyring.active.key_id}; keep it to the fleet"
    )


def _announce(addresses: Mapping[str, object]) -> None:
    """Say where everything is, and what to try."""
    workers = addresses["workers"]
    assert isinstance(workers, list)
    server = addresses["coordinator"]
    typer.echo(f"coordinator  {server}")
    typer.echo(f"health       {addresses['http']}/healthz")
    typer.echo(f"status       {addresses['http']}/status")
    for one in workers:
        typer.echo(f"worker       {one['location']}")
    typer.echo(f"try          floeberg tables --server {server}")
