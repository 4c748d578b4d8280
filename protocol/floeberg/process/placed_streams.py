"""Read streams whose batches say where to go on after them, from one place at a time.

Each batch carries its place (task, next physical row). Whoever reads keeps the last one, and asks
elsewhere for the rest when the stream breaks: no row comes twice, and none is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Event, Lock

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.protocol.errors import InternalError
from floeberg.protocol.plans import START, ResumePlace
from floeberg.protocol.tickets import decode_place, with_resume

Placed = tuple[pa.RecordBatch, ResumePlace]
"""A batch, and the place after it."""


class OpenStreams:
    """The streams of one query while they are read, so that another thread can end them.

    A part of them ends with the whole, and can be ended by itself.
    """

    def __init__(self, whole: OpenStreams | None = None) -> None:
        self._whole = whole
        self._lock = Lock()
        self._readers: set[fl.FlightStreamReader] = set()
        self._stopped = Event()

    @property
    def stopped(self) -> bool:
        return self._stopped.is_set() or (self._whole is not None and self._whole.stopped)

    @contextmanager
    def hold(self, reader: fl.FlightStreamReader) -> Iterator[None]:
        whole = nullcontext() if self._whole is None else self._whole.hold(reader)
        with whole, self._held(reader):
            yield

    @contextmanager
    def _held(self, reader: fl.FlightStreamReader) -> Iterator[None]:
        with self._lock:
            self._readers.add(reader)
        try:
            if self.stopped:
                reader.cancel()
            yield
        finally:
            with self._lock:
                self._readers.discard(reader)
            reader.cancel()  # harmless at a stream's end, and needed before it

    def pause(self, seconds: float) -> None:
        """Wait, but not beyond the end of the query."""
        self._stopped.wait(seconds)

    def stop(self) -> None:
        self._stopped.set()
        with self._lock:
            readers = list(self._readers)
        for reader in readers:
            reader.cancel()


def from_place(ticket: bytes, place: ResumePlace) -> fl.Ticket:
    """Return what to ask for the rows of a sealed ticket from `place` on."""
    return fl.Ticket(ticket if place == START else with_resume(ticket, place))


def read_placed(
    client: fl.FlightClient,
    ticket: fl.Ticket,
    options: fl.FlightCallOptions,
    schema: pa.Schema,
    named: str,
    errors: Callable[[], AbstractContextManager[None]],
    streams: OpenStreams,
) -> Generator[Placed, None, None]:
    """Yield the batches of one stream of a scan, each with the place after it.

    What the call raises goes through `errors`; `named` is who is asked, for messages. Raises
    `InternalError` for a stream of another schema, or of batches without their places.
    """
    for batch, after in read_batches(client, ticket, options, schema, named, errors, streams):
        if after is None:
            raise InternalError(f"{named} sent a batch without its place")
        yield batch, decode_place(after.to_pybytes())


def read_batches(
    client: fl.FlightClient,
    ticket: fl.Ticket,
    options: fl.FlightCallOptions,
    schema: pa.Schema,
    named: str,
    errors: Callable[[], AbstractContextManager[None]],
    streams: OpenStreams,
) -> Iterator[tuple[pa.RecordBatch, pa.Buffer | None]]:
    """Yield the batches of a stream, each with its app_metadata. The arguments are
    `read_placed`'s."""
    with errors():
        reader = client.do_get(ticket, options)
    with streams.hold(reader):
        with errors():
            sent = reader.schema
        if not sent.equals(schema):
            raise InternalError(f"{named} sent another schema than the plan's: {sent}")
        while True:
            with errors():
                chunk = next(reader, None)
            if chunk is None:
                return
            if chunk.data is not None:
                yield chunk.data, chunk.app_metadata
