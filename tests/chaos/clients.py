"""Clients that ask one question after another: floeberg's own, and two that know nothing of it."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

import adbc_driver_flightsql.dbapi
import adbc_driver_manager
import pyarrow as pa
import pyarrow.flight as fl

from floeberg.client import Lake, Progress, connect
from floeberg.process.retries import RetryPolicy
from floeberg.protocol.commands import ScanCommand, TableName
from floeberg.protocol.errors import FloebergError, Unavailable
from floeberg.protocol.flight_errors import from_flight
from tests.chaos.lake import Question
from tests.chaos.tally import Kind, Tally

_SORRY_SECONDS = 1.0
"""How long a stock client rests after an error."""

_FLIGHT_ERRORS = (pa.ArrowException, OSError)


class Crowd:
    """Threads with a client each, from `start` until `stop`.

    floeberg's work on each batch for one of `paces_seconds` before they take the next.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        tally: Tally,
        dice: random.Random,
        paces_seconds: Sequence[float],
        patience_seconds: float,
    ) -> None:
        self._policy = RetryPolicy(patience_seconds=patience_seconds)
        self._questions = questions
        self._paces_seconds = paces_seconds
        self._tally = tally
        self._dice = dice
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._ready = threading.Barrier(1)

    def start(self, count: int, locations: Sequence[str]) -> None:
        """Connect `count` clients of floeberg to the coordinators, each with another one first, and
        one of each stock client to the first, and let them ask."""
        asks: list[tuple[Kind, Callable[[random.Random], None]]] = []
        for number in range(count):
            first = number % len(locations)
            at = (*locations[first:], *locations[:first])
            asks.append((Kind.FLOEBERG, partial(self._floeberg, at)))
        asks.append((Kind.PYARROW, partial(self._pyarrow, locations[0])))
        asks.append((Kind.ADBC, partial(self._adbc, locations[0])))
        for number, (kind, ask) in enumerate(asks):
            dice = random.Random(self._dice.random())
            name = f"{kind}-{number}"
            self._threads.append(
                threading.Thread(target=self._run, args=(ask, dice), name=name, daemon=True)
            )
        self._ready = threading.Barrier(len(self._threads) + 1)
        for thread in self._threads:
            thread.start()
        self._ready.wait()

    def stop(self, seconds: float) -> None:
        """Let each client end its query, and wait for it so long."""
        self._over.set()
        for thread in self._threads:
            thread.join(seconds)
            if thread.is_alive():
                self._tally.violate(f"{thread.name} has not ended its query")

    def _run(self, ask: Callable[[random.Random], None], dice: random.Random) -> None:
        try:
            ask(dice)
        except Exception as error:  # the edge of a thread: the run must tell of it
            self._tally.violate(f"{threading.current_thread().name} broke: {error!r}")

    def _asked(self, dice: random.Random) -> Iterator[Question]:
        while not self._over.is_set():
            yield dice.choice(self._questions)

    # --- floeberg ---------------------------------------------------------------------------------

    def _floeberg(self, locations: Sequence[str], dice: random.Random) -> None:
        with connect(locations) as lake:
            lake.status()  # a server that has never answered is not waited for
            self._ready.wait()
            for question in self._asked(dice):
                with self._tally.query(Kind.FLOEBERG, question):
                    try:
                        found, resumed = self.read(lake, question, dice.choice(self._paces_seconds))
                    except FloebergError as error:
                        is_retryable = isinstance(error, Unavailable)
                        self._tally.failed(Kind.FLOEBERG, question, error, retryable=is_retryable)
                        continue
                self._tally.answered(Kind.FLOEBERG, question, found, resumed)

    def read(self, lake: Lake, question: Question, pace_seconds: float) -> tuple[pa.Table, int]:
        """Return the answer, and how many of its streams were resumed."""
        told: list[Progress] = []
        scan = lake.table(question.table).scan(**question.arguments, on_progress=told.append)
        with replace(scan, policy=self._policy).to_reader() as reader:
            batches = []
            for batch in reader:
                batches.append(batch)
                if pace_seconds:
                    self._over.wait(pace_seconds)
            table = pa.Table.from_batches(batches, schema=reader.schema)
        return table, sum(progress.resumed_streams for progress in told)

    # --- stock clients ----------------------------------------------------------------------------

    def _pyarrow(self, location: str, dice: random.Random) -> None:
        self._ready.wait()
        for question in self._asked(dice):
            with self._tally.query(Kind.PYARROW, question):
                try:
                    info = _planned(location, question)
                    found = pa.concat_tables([_read_endpoint(e) for e in info.endpoints])
                except _FLIGHT_ERRORS as error:
                    is_retryable = isinstance(from_flight(error), Unavailable)
                    self._tally.failed(Kind.PYARROW, question, error, retryable=is_retryable)
                    self._over.wait(_SORRY_SECONDS)
                    continue
            self._tally.answered(Kind.PYARROW, question, found)

    def _adbc(self, location: str, dice: random.Random) -> None:
        """Read what pyarrow has planned, an endpoint at a time: its driver picks the location."""
        self._ready.wait()
        for question in self._asked(dice):
            with self._tally.query(Kind.ADBC, question):
                try:
                    info = _planned(location, question)
                    found = _read_partitions(location, info)
                except _FLIGHT_ERRORS as error:
                    is_retryable = isinstance(from_flight(error), Unavailable)
                    self._tally.failed(Kind.ADBC, question, error, retryable=is_retryable)
                    self._over.wait(_SORRY_SECONDS)
                    continue
                except adbc_driver_manager.Error as error:
                    self._tally.failed(Kind.ADBC, question, error, retryable=_may_pass(error))
                    self._over.wait(_SORRY_SECONDS)
                    continue
            self._tally.answered(Kind.ADBC, question, found)


def _planned(location: str, question: Question) -> fl.FlightInfo:
    command = ScanCommand.from_arguments(TableName.parse(question.table), **question.arguments)
    with fl.connect(location) as client:
        return client.get_flight_info(fl.FlightDescriptor.for_command(command.to_json()))


def _read_endpoint(endpoint: fl.FlightEndpoint) -> pa.Table:
    """Return the rows from the first location that opens the stream."""
    for location in endpoint.locations[:-1]:
        with fl.connect(location) as client:
            try:
                reader = client.do_get(endpoint.ticket)
                first = reader.schema
            except _FLIGHT_ERRORS:
                continue
            assert first is not None
            return reader.read_all()
    with fl.connect(endpoint.locations[-1]) as client:
        return client.do_get(endpoint.ticket).read_all()


def _read_partitions(location: str, info: fl.FlightInfo) -> pa.Table:
    tables = []
    with (
        closing(adbc_driver_flightsql.dbapi.connect(location, autocommit=True)) as connection,
        closing(connection.cursor()) as cursor,
    ):
        for endpoint in info.endpoints:
            alone = fl.FlightInfo(info.schema, info.descriptor, [endpoint], -1, -1)
            cursor.adbc_read_partition(alone.serialize())
            tables.append(cursor.fetch_arrow_table())
    return pa.concat_tables(tables)


def _may_pass(error: adbc_driver_manager.Error) -> bool:
    """Say whether a program would try again: the connection broke, or the service is away."""
    told = str(error).lower()
    words = ("unavailable", "connection", "eof", "reset", "transport", "closing")
    return any(word in told for word in words)
