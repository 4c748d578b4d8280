"""Where a command ends badly: errors become one line on standard error, and an exit status."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

import typer
from pydantic import ValidationError
from typer.core import TyperGroup

from floeberg.embedded.cli.terminal import console, plain
from floeberg.protocol.errors import BadRequest, Denied, FloebergError, Unavailable
from floeberg.protocol.suggestions import quoted
from floeberg.protocol.validation import plain_reason

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

    def get_params(self, ctx: Any) -> list[Any]:  # of classes that typer keeps for itself
        return _without_obvious_types(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command: Any = super().get_command(ctx, cmd_name)
        if command is not None:
            _without_obvious_types(command.get_params(ctx))
        return command

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # while a closed pipe is still ours to notice
            return result
        except typer.BadParameter as exc:
            if isinstance(exc.__cause__, ValidationError):
                exc.message = _what_is_wrong(exc.__cause__)
            raise
        except FloebergError as exc:
            tell(exc)
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


def tell(error: FloebergError) -> None:
    """Write an error to standard error, in one line."""
    told = plain("error ", "bold red").append(f"[{error.code}] ", "bold")
    told.append(plain(error))
    if error.request_id is not None and not isinstance(error, BadRequest):
        told.append(plain(f" (request {error.request_id})", "dim"))  # to look up in its log
    console(stderr=True).print(told, soft_wrap=True)


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


def _without_obvious_types(params: list[Any]) -> list[Any]:
    """Return parameters whose help shows no `<bool>` beside a flag, and no type beside the name of
    an argument."""
    for param in params:
        if param.param_type_name == "argument" or param.is_flag:
            param.display_type_rich = _no_type
    return params


def _no_type(ctx: object) -> None:
    return None


def _what_is_wrong(invalid: ValidationError) -> str:
    first = invalid.errors(include_url=False)[0]
    reason = plain_reason(first)
    # our own reasons and typer's for choices begin with the value
    return reason if reason.startswith("'") else f"{quoted(str(first['input']))} {reason}"


def _discard_output() -> None:
    """Let what is still buffered go nowhere: at its end, Python would complain of the pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
