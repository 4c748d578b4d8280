"""The commands that write what services know their callers by: tokens and passwords."""

from __future__ import annotations

import getpass
import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from floeberg.embedded.cli.terminal import printable
from floeberg.process.auth.passwords import PasswordList, hash_password
from floeberg.process.auth.principals import is_name
from floeberg.process.auth.tokens import new_token
from floeberg.protocol.errors import BadConfig

_PANEL = "Serve"


def add_credentials(app: typer.Typer) -> None:
    """Give `app` the commands `token` and `password`."""
    app.command("token", rich_help_panel=_PANEL)(token)
    app.command("password", rich_help_panel=_PANEL)(password)


def token(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The services' 'auth_tokens'.")],
    principal: Annotated[str, typer.Argument(metavar="PRINCIPAL", help="Who the token is for.")],
) -> None:
    """Make a bearer token, and print it: the file, to which a line is added, holds its hash alone.

    To take it back, remove the line.
    """
    made, line = new_token(principal)
    before = _read(file)
    if before and not before.endswith("\n"):
        before += "\n"
    _replace(file, before + line)
    typer.echo(made)


def password(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The services' 'auth_passwords'.")],
    username: Annotated[str, typer.Argument(metavar="USERNAME", help="Whose password it is.")],
) -> None:
    """Set a user's password, which is asked for, or read from the first line of standard input.

    The file holds its hash alone. Sessions of the old password end.
    """
    if not is_name(username) or ":" in username or username.startswith("#"):
        raise BadConfig(
            "a username is 1 to 256 printable characters, without ':' and not beginning with '#'"
        )
    before = _read(file)
    PasswordList.parse(before)
    kept = [line for line in before.splitlines() if line.partition(":")[0].strip() != username]
    line = PasswordList({username: hash_password(_ask(username))}).to_text()
    _replace(file, "".join(f"{other}\n" for other in kept) + line)
    typer.echo(f"{printable(str(file))} holds the password of {printable(username)}")


def _ask(username: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    once = getpass.getpass(f"New password of {username}: ")
    if getpass.getpass("Once more: ") != once:
        raise BadConfig("the passwords differ")
    return once


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except OSError as exc:
        raise BadConfig(f"{file} cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError:
        # the cause would show bytes of the file
        raise BadConfig(f"{file} is not text") from None


def _replace(file: Path, text: str) -> None:
    """Put a whole new file in the place of the old one; only its owner may read it."""
    try:
        descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as new:
                new.write(text)
            os.replace(name, file)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as exc:
        raise BadConfig(f"{file} cannot be written: {exc.strerror}") from exc
