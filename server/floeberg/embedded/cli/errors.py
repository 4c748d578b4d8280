"""Where a command ends badly: errors become one line on standard error, and an exit status."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from floeberg.embedded.cli.terminal import console, plain
from floeberg.protocol.errors import BadRequest, Denied, FloebergError, Unavailable

EXIT_FAILED = 1
EXIT_BAD_REQUEST = 2
EXIT_DENIED = 3
EXIT_UNAVAILABLE = 4


class Commands(TyperGroup):
    """Commands whose errors are told in one line, `error [CODE] message`.

    The exit status is 2 for a call to change, 3 for credentials, 4 for a condition that may pass,
    and 1 for the rest: a table that cannot be read. Whoever closes the pipe that a command writes
    to has seen enough, which is no error.
    """

    def invoke(self, ctx: Any) -> Any:  # of a class that typer keeps for itself
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # while a closed pipe is still ours to notice
            return result
        except FloebergError as exc:
            told = plain("error ", "bold red").append(f"[{exc.code}] ", "bold")
            console(stderr=True).print(told + plain(exc), soft_wrap=True)
            raise typer.Exit(exit_status(exc)) from None
        except BrokenPipeError:
            _discard_output()
            raise typer.Exit(0) from None
        except OSError as exc:
            if exc.errno != errno.ENOSPC:
                raise
            _discard_output()
            console(stderr=True).print("error: there is no room for the output")
            raise typer.Exit(EXIT_FAILED) from None


def exit_status(error: FloebergError) -> int:
    match error:
        case BadRequest():
            return EXIT_BAD_REQUEST
        case Denied():
            return EXIT_DENIED
        case Unavailable():
            return EXIT_UNAVAILABLE
        case _:
            return EXIT_FAILED


def _discard_output() -> None:
    """Let what is still buffered go nowhere: at its end, Python would complain of the pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
