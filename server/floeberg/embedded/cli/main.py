"""Where the command begins and ends: errors become one line and an exit status."""

from __future__ import annotations

import sys

from rich.console import Console

from floeberg.embedded.cli.app import app
from floeberg.embedded.cli.serve import add_services
from floeberg.protocol.errors import BadRequest, Denied, FloebergError, Unavailable

EXIT_FAILED = 1
EXIT_BAD_REQUEST = 2
EXIT_DENIED = 3
EXIT_UNAVAILABLE = 4

add_services(app)


def main() -> None:
    """Run the command line in `sys.argv` and exit.

    The status is 0, or 2 for a call to change, 3 for credentials, 4 for a condition that may pass,
    and 1 for the rest: a table that cannot be read.
    """
    try:
        app()
    except FloebergError as exc:
        Console(stderr=True, highlight=False).print(
            f"[bold red]error[/bold red] \\[{exc.code}]", end=" "
        )
        print(exc, file=sys.stderr)
        raise SystemExit(_status(exc)) from None
    except BrokenPipeError:
        # the reader of our output has seen enough
        sys.stderr.close()
        raise SystemExit(0) from None


def _status(error: FloebergError) -> int:
    match error:
        case BadRequest():
            return EXIT_BAD_REQUEST
        case Denied():
            return EXIT_DENIED
        case Unavailable():
            return EXIT_UNAVAILABLE
        case _:
            return EXIT_FAILED
