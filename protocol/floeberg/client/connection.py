"""A connection to a floeberg coordinator, and to the workers that it names."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any, cast

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.client.credentials import Credentials, NoCredentials
from floeberg.client.sessions import Cookies
from floeberg.process.calling import NO_TLS, ClientPool, ClientTls
from floeberg.process.retries import Clock, RetryBudget, connection_budget
from floeberg.process.unreachable import floeberg_errors
from floeberg.protocol.errors import BadRequest, FloebergError, TimedOut, Unauthenticated
from floeberg.protocol.requests import REQUEST_ID_HEADER, TRACEPARENT_HEADER, RequestContext

_PROBE_SECONDS = 2.0
_AVOIDED_SECONDS = 10.0
"""A worker that was away a moment ago is tried last; so long a lease is, after which endpoints name
it no more."""

_LOCATION = re.compile(r"grpc(\+tcp|\+tls)?://(\[[^\]]+\]|[^/:]+):\d+/?|grpc\+unix:.+")


class Connection:
    """Dials servers under one set of credentials, and keeps a client for each of them.

    Safe to use from several threads. Credentials are only ever sent over a channel as private as
    the coordinator's: with TLS there, a plain-text location is not dialled. Of several coordinators
    one is asked until it fails.
    """

    def __init__(
        self,
        coordinators: str | Sequence[str],
        *,
        credentials: Credentials | None = None,
        tls: ClientTls = NO_TLS,
        timeout_seconds: float | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self.coordinators = (coordinators,) if isinstance(coordinators, str) else (*coordinators,)
        if not self.coordinators:
            raise BadRequest("connect needs the address of a coordinator: grpc://HOST:PORT")
        for location in self.coordinators:
            if not _LOCATION.fullmatch(location):
                raise BadRequest(
                    f"{location!r} is not a Flight location; write grpc://HOST:PORT or"
                    " grpc+tls://HOST:PORT"
                )
        self.is_private = self.coordinators[0].startswith("grpc+tls:")
        if any(at.startswith("grpc+tls:") is not self.is_private for at in self.coordinators):
            raise BadRequest("some of the coordinators are reached by TLS, and some in plain text")
        self.budget: RetryBudget = connection_budget()
        self.has_met_coordinator = False
        """Whether a call to a coordinator was answered once."""
        self.has_met_worker = False
        """Whether a batch has come once."""
        self.cookies = Cookies(clock)
        self._clients = ClientPool(tls)
        self._credentials = credentials or NoCredentials()
        self._timeout_seconds = timeout_seconds
        self._lock = Lock()
        self._clock = clock
        self._asked = 0
        self._away: dict[str, float] = {}

    @property
    def location(self) -> str:
        """The coordinator that is asked now."""
        return self.coordinators[self._asked]

    def turn_from(self, location: str) -> None:
        """Ask the next coordinator from now on, unless another thread has seen to that."""
        with self._lock:
            if self.location == location:
                self._asked = (self._asked + 1) % len(self.coordinators)

    def avoid(self, location: str) -> None:
        """Note that a worker could not be reached."""
        with self._lock:
            self._away[location] = self._clock() + _AVOIDED_SECONDS

    def likely_first(self, locations: Sequence[str | None]) -> list[str | None]:
        """Return locations in their order, but those that were away a moment ago last."""
        now = self._clock()
        with self._lock:
            self._away = {at: until for at, until in self._away.items() if until > now}
            return sorted(locations, key=lambda at: at in self._away)

    def call_options(
        self, request: RequestContext, *, bounded: bool = True, cookie: bytes | None = None
    ) -> fl.FlightCallOptions:
        """Return the options of one call: credentials, what the call belongs to, a `cookie`, and
        the deadline unless the call is a long stream.

        Logs in where the credentials must, and raises what that raises.
        """
        return self._options(request, self._timeout_seconds if bounded else None, cookie)

    def _options(
        self, request: RequestContext, timeout: float | None, cookie: bytes | None = None
    ) -> fl.FlightCallOptions:
        authorization = self._credentials.authorization(partial(self._log_in, request))
        # the stubs ask for text, and pyarrow for bytes
        headers: Any = [(REQUEST_ID_HEADER.encode(), request.request_id.encode())]
        if authorization is not None:
            headers.append((b"authorization", authorization))
        if cookie is not None:
            headers.append((b"cookie", cookie))
        if request.traceparent is not None:
            headers.append((TRACEPARENT_HEADER.encode(), request.traceparent.encode()))
        return fl.FlightCallOptions(timeout=timeout, headers=headers)

    def _log_in(self, request: RequestContext, username: str, password: str) -> bytes:
        options = fl.FlightCallOptions(timeout=self._timeout_seconds)
        location, began = self.location, self._clock()
        try:
            with self.client(location) as client, floeberg_errors(location, request):
                # the stubs have text where pyarrow gives bytes
                name, header = cast(
                    tuple[bytes, bytes],
                    client.authenticate_basic_token(username, password, options),
                )
        except FloebergError as error:
            # pyarrow has several words for a Handshake that is not answered, which takes no time
            if self._has_timed_out(began):
                raise self._silent(location) from error
            raise
        if name != b"authorization" or not header:
            raise Unauthenticated(f"{location} takes no username and password")
        return header

    @contextmanager
    def noticing_silence(
        self, client: fl.FlightClient, location: str, request: RequestContext
    ) -> Iterator[None]:
        """Raise `TimedOut` for a call within the block whose deadline passes with what the server
        does: is it silent, or does it work?

        One that is busy with a long plan still answers what takes no time, on the same connection;
        one that stands still does not.
        """
        began = self._clock()
        try:
            yield
        except TimedOut as error:
            if not self._has_timed_out(began):
                raise  # the deadline of somebody on the way
            raise self._late(client, location, request) from error

    def _has_timed_out(self, began: float) -> bool:
        seconds = self._timeout_seconds
        return seconds is not None and self._clock() - began >= 0.9 * seconds

    def _late(self, client: fl.FlightClient, location: str, request: RequestContext) -> TimedOut:
        options = self._options(request, min(_PROBE_SECONDS, self._timeout_seconds or math.inf))
        try:
            list(client.list_actions(options))
        except (fl.FlightTimedOutError, fl.FlightUnavailableError):
            return self._silent(location)
        except (pa.ArrowException, OSError):
            pass  # that it refuses is an answer
        error = TimedOut(
            f"{location} took longer than {self._timeout_seconds} s, and is busy with it; a longer"
            " deadline (timeout_seconds), or a narrower question, may help"
        )
        error.request_id = request.request_id
        return error

    def _silent(self, location: str) -> TimedOut:
        error = TimedOut(
            f"{location} answered nothing within {self._timeout_seconds} s; does it stand still?"
        )
        error.is_silent = True
        return error

    def may_dial(self, location: str) -> bool:
        return not self.is_private or location.startswith("grpc+tls:")

    @contextmanager
    def client(self, location: str | None = None) -> Iterator[fl.FlightClient]:
        """Lend a client for `location` (the coordinator when None) to one stream or call at a
        time."""
        with self._clients.lend(location or self.location) as client:
            yield client

    @contextmanager
    def own_client(
        self, location: str, middleware: fl.ClientMiddlewareFactory
    ) -> Iterator[fl.FlightClient]:
        """Dial a client for one call, whose headers `middleware` sees."""
        client = self._clients.dial(location, [middleware])
        try:
            yield client
        finally:
            client.close()

    def close(self) -> None:
        """Close what is not in use; what is closes when its stream or call ends."""
        self._clients.close()
