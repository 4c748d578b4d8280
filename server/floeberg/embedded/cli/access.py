"""The options that say which server is asked, and by whom; several commands share them.

Whoever sees a machine's processes sees their flags: so a password has none, and a token need not
stand in one.
"""

from __future__ import annotations

import functools
import getpass
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from floeberg.client import Lake, connect
from floeberg.protocol.errors import BadConfig

DEFAULT_SERVER = "grpc://127.0.0.1:8815"


@dataclass(frozen=True, slots=True)
class Access:
    """A server, and what is shown to it. `username` and `token` exclude each other."""

    server: str
    token: str | None = field(default=None, repr=False)
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls_roots: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None

    def connect(self) -> Lake:
        return connect(
            self.server,
            self.token,
            self.tls_roots,
            username=self.username,
            password=self.password,
            tls_cert=self.tls_cert,
            tls_key=self.tls_key,
        )


GetAccess: TypeAlias = Callable[[], Access]
"""Returns how a server is reached; asks for a password where it is needed."""


def _access(
    server: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", envvar="FLOEBERG_SERVER", help="The coordinator's address."
        ),
    ] = DEFAULT_SERVER,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            envvar="FLOEBERG_TOKEN",
            help="A bearer token; others on this machine see flags.",
            show_default=False,
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", envvar="FLOEBERG_TOKEN_FILE", help="A file with a bearer token."
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            envvar="FLOEBERG_USER",
            help="Log in; the password stands in FLOEBERG_PASSWORD, or is asked for.",
        ),
    ] = None,
    tls_roots: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", envvar="FLOEBERG_TLS_ROOTS", help="Certificates to trust (PEM)."
        ),
    ] = None,
    tls_cert: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", envvar="FLOEBERG_TLS_CERT", help="Your own certificate (PEM)."
        ),
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", envvar="FLOEBERG_TLS_KEY", help="Its private key (PEM)."),
    ] = None,
) -> Access:
    if token_file is not None:
        if token is not None:
            raise BadConfig("give --token or --token-file, not both")
        token = _read_token(token_file)
    if user is not None and token is not None:
        raise BadConfig("give a token, or --user: not both")
    password = None if user is None else _password(user, os.environ)
    return Access(server, token, user, password, tls_roots, tls_cert, tls_key)


def reaching(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options in the place of its parameter `access`."""
    own = inspect.signature(command, eval_str=True).parameters
    options = inspect.signature(_access, eval_str=True).parameters
    names = tuple(options)

    @functools.wraps(command)
    def run(**given: Any) -> None:
        shared = {name: given.pop(name) for name in names}
        # a table that is opened in place needs no server, and asks for no password
        command(access=functools.partial(_access, **shared), **given)

    parameters = [
        p.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in own.items()
        for p in (options.values() if name == "access" else [parameter])
    ]
    # typer reads both
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _read_token(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError as exc:
        raise BadConfig(f"--token-file {path} cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError:
        # the cause would show bytes of the file
        raise BadConfig(f"--token-file {path} holds no token") from None


def _password(user: str, environ: Mapping[str, str]) -> str:
    password = environ.get("FLOEBERG_PASSWORD")
    if password is not None:
        return password
    if not sys.stdin.isatty():
        raise BadConfig(f"no password for {user}: put it into FLOEBERG_PASSWORD")
    return getpass.getpass(f"Password of {user}: ")
