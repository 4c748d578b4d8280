"""The command as it is run: all of its parts, and output in UTF-8."""

from __future__ import annotations

import io
import os
import sys

from floeberg.embedded.cli.app import app
from floeberg.embedded.cli.credentials import add_credentials
from floeberg.embedded.cli.serve import add_services
from floeberg.embedded.cli.sql import add_sql

add_sql(app)
add_services(app)
add_credentials(app)


def main() -> None:
    """Run the command line in `sys.argv` and exit; see `Commands` for the exit status."""
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # text is written as it is, whatever the locale has letters for
            stream.reconfigure(encoding="utf-8")
    app()


def _open_what_is_closed() -> None:
    """Put nothing in the place of a standard stream that whoever runs the command has closed: no
    file or connection is to get its number."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
