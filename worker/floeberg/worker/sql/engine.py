"""Run statements: each on a DuckDB that no other uses meanwhile, over inputs that are read as it
asks for them.

A stream runs while its client takes batches. Beside it, a thread looks several times a second
whether the statement is still wanted, and interrupts it where it is not.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa

from floeberg.process.auth import Principal
from floeberg.process.sql.checking import check_statement
from floeberg.process.sql.failing import sql_error
from floeberg.protocol.errors import FloebergError, InternalError, QueryTooLarge
from floeberg.protocol.requests import RequestContext
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.sql_tickets import SqlInput, SqlTicket, decode_rows
from floeberg.worker.sql.answers import Answer
from floeberg.worker.sql.databases import Databases, Settings
from floeberg.worker.sql.datasets import InputDataset, take_unaligned_buffers
from floeberg.worker.sql.inputs import InputReader, Peers, ReadHere
from floeberg.worker.sql.shares import Share, Shares
from floeberg.worker.sql.spilling import SpillDirectory

logger = logging.getLogger(__name__)

_LOOKS_EVERY_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class SqlCall:
    """What a statement is run for, from `began_ms` on.

    `check` raises when nobody wants it any more, and `on_endpoint` is told of each endpoint of an
    input that was read to its end; any thread may call them.
    """

    caller: Principal | None
    request: RequestContext
    began_ms: int
    check: Callable[[], None]
    read_here: ReadHere
    on_endpoint: Callable[[], None]


class SqlEngine:
    """Runs the statements of one worker. Safe to use from several threads.

    A statement has up to `threads`. `is_short` says that the process has more memory than it
    may: what DuckDB does not count, such as one enormous text, can only be seen there. The youngest
    statement is ended then.
    """

    def __init__(
        self,
        keyring: Keyring,
        peers: Peers,
        shares: Shares,
        spill: SpillDirectory | None,
        *,
        threads: int,
        is_short: Callable[[], bool],
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        take_unaligned_buffers()
        self._keyring = keyring
        self._peers = peers
        self._shares = shares
        self._threads = threads
        self._is_short = is_short
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._running: list[_Watch] = []
        self._databases = Databases(None if spill is None else spill.lend)

    def admit(self, ticket: SqlTicket, check: Callable[[], None] = lambda: None) -> Share:
        """Return what a statement may take, for `run`, as soon as there is so much. Raises
        `WorkerBusy` where that takes too long, and what `check` raises."""
        return self._shares.lend(is_part=ticket.is_part, check=check)

    def run(
        self, ticket: SqlTicket, share: Share, call: SqlCall
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield the rows of a statement in its told schema, and give its share back at the end.

        Raises what `call.check` and reading the inputs raise; `BadSql`, `UnsupportedSql` and
        `SqlFailed` for what is wrong with the statement; `QueryTooLarge`.
        """
        with ExitStack() as stack:
            stack.callback(share.release)
            if not ticket.sql:
                for one in ticket.inputs:
                    yield from decode_rows(one.rows)
                return
            watch = _Watch(share, call.check, self._is_too_much)
            with watch.errors():
                connection = stack.enter_context(
                    self._databases.lend(self._settings(ticket, share))
                )
            inputs = self._inputs(call)
            stack.enter_context(self._watched(watch, connection, inputs))
            answer = Answer(ticket.schema, ticket.settings.batch_bytes)
            with watch.errors():
                check_statement(connection, ticket.sql, [one.name for one in ticket.inputs])
                for one in ticket.inputs:
                    rows = watch.noticing(inputs.batches, one)
                    connection.register(one.name, InputDataset(one.schema, rows))
                found = connection.sql(ticket.sql).to_arrow_reader(answer.rows_at_once)
            stack.callback(found.close)
            # first of all, as closing waits for what DuckDB's threads are about
            stack.callback(connection.interrupt)
            stack.callback(inputs.stop)
            while True:
                with watch.errors():
                    batch = next(found, None)
                if batch is None:
                    break
                yield from answer.batches(batch)
            watch.raise_failure()

    def close(self) -> None:
        """Close the databases that no statement runs on."""
        self._databases.close()

    def _settings(self, ticket: SqlTicket, share: Share) -> Settings:
        return Settings(
            share.memory_bytes,
            share.spill_bytes,
            min(self._threads, share.threads),
            ticket.settings.timezone,
        )

    def _inputs(self, call: SqlCall) -> InputReader:
        def run_here(ticket: SqlTicket) -> Iterator[pa.RecordBatch]:
            # its endpoints are not those that the stream has told of
            inner = replace(call, on_endpoint=lambda: None)
            with closing(self.run(ticket, self.admit(ticket, call.check), inner)) as batches:
                yield from batches

        return InputReader(
            self._keyring,
            self._peers,
            call.caller,
            call.request,
            call.began_ms,
            read_here=call.read_here,
            run_here=run_here,
            check=call.check,
            on_endpoint=call.on_endpoint,
            now_ms=self._now_ms,
        )

    @contextmanager
    def _watched(
        self, watch: _Watch, connection: duckdb.DuckDBPyConnection, inputs: InputReader
    ) -> Iterator[None]:
        """Watch over a statement within the block, and stop reading its inputs after it."""

        def stop() -> None:
            connection.interrupt()
            inputs.stop()

        thread = threading.Thread(target=watch.look, args=(stop,), name="floeberg-sql", daemon=True)
        with self._registered(watch):
            # a machine may have no more threads
            thread.start()
            try:
                yield
            finally:
                watch.ended.set()
                inputs.stop()
                thread.join()

    @contextmanager
    def _registered(self, watch: _Watch) -> Iterator[None]:
        with self._lock:
            self._running.append(watch)
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(watch)

    def _is_too_much(self, watch: _Watch) -> bool:
        if not self._is_short():
            return False
        with self._lock:
            return self._running[-1] is watch


class _Watch:
    """Knows why a statement that failed did: DuckDB keeps no more of that than a text."""

    def __init__(
        self, share: Share, check: Callable[[], None], is_too_much: Callable[[_Watch], bool]
    ) -> None:
        self._share = share
        self._check = check
        self._is_too_much = is_too_much
        self._failure: FloebergError | None = None
        self.ended = threading.Event()

    def look(self, stop: Callable[[], None]) -> None:
        """Call `stop` while there is reason to and the statement goes on."""
        while not self.ended.wait(_LOOKS_EVERY_SECONDS):
            try:
                self._check()
                if self._is_too_much(self):
                    raise QueryTooLarge(self._share.memory_bytes, self._share.spill_bytes)
            except FloebergError as error:
                self._fail(error)
            if self._failure is not None:
                stop()

    def noticing(
        self, read: Callable[[SqlInput], Generator[pa.RecordBatch, None, None]], one: SqlInput
    ) -> Callable[[], Iterator[pa.RecordBatch]]:
        """Return what reads an input, and keeps what that raises."""

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                with closing(read(one)) as found:
                    yield from found
            except FloebergError as error:
                self._fail(error)
                raise
            except Exception as error:  # what leaves here is DuckDB's, and loses its kind
                logger.error("an input could not be read", exc_info=error)
                self._fail(InternalError("an input could not be read; the log has the details"))
                raise

        return batches

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise what DuckDB raises within the block as an error of ours."""
        try:
            yield
        except (duckdb.Error, pa.ArrowException, OSError, MemoryError) as exc:
            self.raise_failure()
            if isinstance(exc, MemoryError):
                raise QueryTooLarge(self._share.memory_bytes, self._share.spill_bytes) from exc
            raise sql_error(exc, self._share.memory_bytes, self._share.spill_bytes) from exc

    def raise_failure(self) -> None:
        """Raise what has gone wrong beside DuckDB, if anything has."""
        if self._failure is not None:
            raise self._failure

    def _fail(self, error: FloebergError) -> None:
        if self._failure is None:
            self._failure = error
