"""What a client shows with each call: a bearer token that it was given, or one that a login
answered.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from floeberg.protocol.errors import BadConfig

_FRESH_SECONDS = 300.0
"""Sessions last ten minutes at least; a login this often goes on for ever."""

LogIn = Callable[[str, str], bytes]
"""Sends a username and a password in a Handshake, and returns the `authorization` header of later
calls. Raises `FloebergError`."""


class Credentials(Protocol):
    """Safe to use from several threads."""

    def authorization(self, log_in: LogIn) -> bytes | None:
        """Return the `authorization` header of a call, None for none; logs in where it must."""
        ...


class NoCredentials:
    def authorization(self, log_in: LogIn) -> bytes | None:
        return None


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token. Raises `BadConfig` for what a header cannot hold."""

    token: str = field(repr=False)

    def __post_init__(self) -> None:
        if not (self.token and self.token.isascii() and self.token.isprintable()):
            raise BadConfig("the token has characters that a header cannot hold, or none")

    def authorization(self, log_in: LogIn) -> bytes | None:
        return f"Bearer {self.token}".encode()


class Login:
    """A username and a password: logs in with the first call, and again every five minutes."""

    def __init__(
        self, username: str, password: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not username or ":" in username:
            raise BadConfig("a username is not empty, and has no ':' in it")
        self._username = username
        self._password = password
        self._clock = clock
        self._lock = threading.Lock()
        self._header: bytes | None = None
        self._since = 0.0

    def authorization(self, log_in: LogIn) -> bytes | None:
        with self._lock:
            now = self._clock()
            if self._header is None or now - self._since > _FRESH_SECONDS:
                self._header = log_in(self._username, self._password)
                self._since = now
            return self._header


def credentials_of(token: str | None, username: str | None, password: str | None) -> Credentials:
    """Return the credentials that a caller has given. Raises `BadConfig` for a part of them, and
    for too many."""
    if username is None and password is None:
        return NoCredentials() if token is None else Token(token)
    if username is None or password is None:
        raise BadConfig("username and password go together: give both or neither")
    if token is not None:
        raise BadConfig("give a token, or username and password: not both")
    return Login(username, password)
