"""Read the inputs of one statement: each endpoint where it is best read, and to its end.

A ticket whose first location is this worker is read right here, and so is one that no other worker
gives: any worker reads any ticket. The others come over Flight. A scan that breaks is taken up
after the last batch that came, at the next place. What a statement gives has no such places: it is
held until the stream has ended, up to a size, and read again from its start if it breaks before.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.process.ahead import read_as_they_come
from floeberg.process.auth import Principal, check_redeemer
from floeberg.process.calling import ClientPool
from floeberg.process.placed_streams import OpenStreams, from_place, read_batches, read_placed
from floeberg.process.retries import Attempts, RetryBudget, RetryPolicy
from floeberg.process.unreachable import floeberg_errors
from floeberg.protocol.errors import Cancelled, ServerUnavailable, Unavailable
from floeberg.protocol.requests import RequestContext, working_on
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.sql_tickets import (
    InputEndpoint,
    SqlInput,
    SqlTicket,
    decode_rows,
    is_sql_ticket,
    open_sql_ticket,
)
from floeberg.protocol.tickets import OpenTicket, ResumePlace, open_ticket
from floeberg.worker.placed import Placed

logger = logging.getLogger(__name__)

HELD_BYTES = 32 << 20
"""How much of a statement's stream is held, so that it can be read again."""

_AT_ONCE = 4
"""Endpoints of an input that are read at once; each holds a few batches ahead."""

_HERE: Final = None
"""The place that is this process."""

_LOOKS_EVERY_SECONDS = 0.05
_ON_THE_WAY_MS = 2000

_POLICY = RetryPolicy(rounds=3, patience_seconds=0)

ReadHere = Callable[[OpenTicket, ResumePlace, Callable[[], None]], Iterator[Placed]]
"""Reads a scan in this process, from a place on; raises what the last argument, a check, raises."""

RunHere = Callable[[SqlTicket], Iterator[pa.RecordBatch]]
"""Runs a statement in this process. Raises `WorkerBusy`."""

CallOptions = Callable[[Principal | None], fl.FlightCallOptions]


@dataclass(frozen=True)
class Peers:
    """How other workers are asked. `own_location` is where this one is reached; `call_options` are
    those of a call on somebody's behalf."""

    clients: ClientPool
    call_options: CallOptions
    own_location: Callable[[], str]


class InputReader:
    """Reads the inputs of one statement for `caller`. Safe to use from several threads; `stop` ends
    what is being read, with an error.

    The statement began at `began_ms`: tickets that held then are read to their end, whenever that
    is. `check` raises when the statement is not wanted any more; `on_endpoint` is told of each
    endpoint that was read to its end.
    """

    def __init__(
        self,
        keyring: Keyring,
        peers: Peers,
        caller: Principal | None,
        request: RequestContext,
        began_ms: int,
        *,
        read_here: ReadHere,
        run_here: RunHere,
        check: Callable[[], None],
        on_endpoint: Callable[[], None],
        now_ms: Callable[[], int],
    ) -> None:
        self.keyring = keyring
        self.peers = peers
        self.caller = caller
        self.request = request
        self.began_ms = began_ms
        self.read_here = read_here
        self.run_here = run_here
        self.check = check
        self.on_endpoint = on_endpoint
        self.now_ms = now_ms
        self.retries = RetryBudget(24, 5)
        self._streams = OpenStreams()

    def stop(self) -> None:
        self._streams.stop()

    def batches(self, one: SqlInput) -> Generator[pa.RecordBatch, None, None]:
        """Yield the rows of an input, in no particular order, each once.

        Every call reads it anew. Raises what reading raises where no place gives the rows.
        """
        if one.rows:
            yield from decode_rows(one.rows)
        streams = OpenStreams(self._streams)
        read = _EndpointReader(self, one.schema, streams).batches
        batches = read_as_they_come(one.endpoints, read, in_flight=_AT_ONCE, on_stop=streams.stop)
        with closing(batches):
            yield from batches


class _EndpointReader:
    """Reads endpoints of one input, until its streams are stopped."""

    def __init__(self, inputs: InputReader, schema: pa.Schema, streams: OpenStreams) -> None:
        self._inputs = inputs
        self._schema = schema
        self._streams = streams

    def batches(self, endpoint: InputEndpoint) -> Iterator[pa.RecordBatch]:
        read = self._statement if is_sql_ticket(endpoint.ticket) else self._scan
        with working_on(self._inputs.request):
            yield from read(endpoint)
        self._inputs.on_endpoint()

    def _check(self) -> None:
        self._inputs.check()
        if self._streams.stopped:
            raise Cancelled("the statement needs no more of this input")

    # --- a scan ----------------------------------------------------------------------------------

    def _scan(self, endpoint: InputEndpoint) -> Iterator[pa.RecordBatch]:
        inputs = self._inputs
        ticket = open_ticket(endpoint.ticket, inputs.keyring, now_ms=inputs.began_ms)
        check_redeemer(ticket, inputs.caller)
        left = ticket.plan.options.limit
        place = ticket.resume
        tries = _Tries(
            lambda: self._places(endpoint, ticket), inputs.retries, self._check, self._streams
        )
        while left is None or left > 0:
            try:
                for batch, after in self._scan_at(tries.place, ticket, endpoint, place):
                    # whoever is asked to go on counts anew
                    rows = batch if left is None else batch.slice(0, left)
                    left = None if left is None else left - rows.num_rows
                    place = after
                    tries.succeeded()
                    yield rows
                    if left == 0:
                        break
                return
            except Unavailable as error:
                tries.next_after(error)

    def _scan_at(
        self,
        location: str | None,
        ticket: OpenTicket,
        endpoint: InputEndpoint,
        place: ResumePlace,
    ) -> Iterator[tuple[pa.RecordBatch, ResumePlace]]:
        if location is None:  # here
            for placed in self._inputs.read_here(ticket, place, self._check):
                yield placed.batch, placed.place
            return
        with self._inputs.peers.clients.lend(location) as client:
            asked = from_place(endpoint.ticket, place)
            yield from read_placed(
                client, asked, self._options(), self._schema, location, self._errors(location),
                self._streams,
            )  # fmt: skip

    # --- a statement -----------------------------------------------------------------------------

    def _statement(self, endpoint: InputEndpoint) -> Iterator[pa.RecordBatch]:
        inputs = self._inputs
        ticket = open_sql_ticket(endpoint.ticket, inputs.keyring, now_ms=inputs.began_ms)
        check_redeemer(ticket, inputs.caller)
        tries = _Tries(
            lambda: self._places(endpoint, ticket), inputs.retries, self._check, self._streams
        )
        while True:
            held: list[pa.RecordBatch] = []
            held_bytes = 0
            try:
                for batch in self._statement_at(tries.place, ticket, endpoint):
                    if held_bytes > HELD_BYTES:
                        yield batch
                        continue
                    held.append(batch)
                    held_bytes += batch.nbytes
                    if held_bytes > HELD_BYTES:
                        yield from held
                        held.clear()
                break
            except Unavailable as error:
                if held_bytes > HELD_BYTES:
                    self._check()
                    raise ServerUnavailable(
                        "a part of the query broke off after some of its rows; run it again"
                    ) from error
                tries.next_after(error)
        yield from held

    def _statement_at(
        self,
        location: str | None,
        ticket: SqlTicket,
        endpoint: InputEndpoint,
    ) -> Iterator[pa.RecordBatch]:
        if location is None:  # here
            yield from self._inputs.run_here(ticket)
            return
        with self._inputs.peers.clients.lend(location) as client:
            asked = fl.Ticket(endpoint.ticket)
            stream = read_batches(
                client, asked, self._options(), self._schema, location, self._errors(location),
                self._streams,
            )  # fmt: skip
            yield from (batch for batch, _ in stream)

    # --- places ----------------------------------------------------------------------------------

    def _places(
        self, endpoint: InputEndpoint, ticket: OpenTicket | SqlTicket
    ) -> Sequence[str | None]:
        """Return where to read a ticket now, first choice first."""
        if self._inputs.now_ms() >= ticket.expires_at_ms - _ON_THE_WAY_MS:
            return (_HERE,)  # no other would take it any more
        own = self._inputs.peers.own_location()
        # what shows who calls is sent over TLS alone where this worker has that; and a client's
        # own connection, which a location may name too, is none of ours
        dialled = "grpc+tls:" if own.startswith("grpc+tls:") else "grpc"
        named = [at for at in endpoint.locations if at.startswith(dialled)]
        places = [_HERE if at == own else at for at in named]
        return places if _HERE in places else [*places, _HERE]

    def _options(self) -> fl.FlightCallOptions:
        return self._inputs.peers.call_options(self._inputs.caller)

    def _errors(self, location: str) -> Callable[[], AbstractContextManager[None]]:
        return partial(floeberg_errors, location, self._inputs.request, is_coordinator=False)


class _Tries:
    """The places of one ticket, in turn; `places` gives those of now."""

    def __init__(
        self,
        places: Callable[[], Sequence[str | None]],
        retries: RetryBudget,
        check: Callable[[], None],
        streams: OpenStreams,
    ) -> None:
        self._look_up = places
        self._places = places()
        self._attempts = Attempts(_POLICY, retries)
        self._check = check
        self._streams = streams
        self._turn = 0

    @property
    def place(self) -> str | None:
        return self._places[self._turn % len(self._places)]

    def succeeded(self) -> None:
        self._attempts.succeeded()

    def next_after(self, error: Unavailable) -> None:
        """Go on at the next place after a pause; raise `error` if there is no use."""
        self._check()
        if self._streams.stopped:
            raise error
        pause = self._attempts.pause_after(error, len(self._places), was_served=True)
        if pause is None:
            raise error
        logger.info(
            "an input broke off; reading on elsewhere",
            extra={"location": self.place or "here", "why": str(error), "seconds": round(pause, 3)},
        )
        self._turn += 1
        places = self._look_up()
        if places != self._places:
            self._places, self._turn = places, 0
        until = time.monotonic() + pause
        while (left := until - time.monotonic()) > 0:
            self._streams.pause(min(left, _LOOKS_EVERY_SECONDS))
            self._check()
