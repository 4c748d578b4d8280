"""The command as it is run: all of its parts, and output in UTF-8."""

from __future__ import annotations

import io
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # text is written as it is, whatever the locale has letters for
            stream.reconfigure(encoding="utf-8")
    app()
