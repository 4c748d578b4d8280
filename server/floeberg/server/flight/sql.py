"""Flight SQL's actions, parameters and listings, between bytes or rows and what answers them.

Knows nothing of Flight but how a client sends rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from floeberg.protocol.errors import BadRequest, Unsupported
from floeberg.protocol.flight_sql.actions import (
    CANCEL_FLIGHT_INFO,
    CANCEL_QUERY,
    CLOSE_PREPARED_STATEMENT,
    CLOSE_SESSION,
    CREATE_PREPARED_STATEMENT,
    GET_SESSION_OPTIONS,
    SERVED_ACTIONS,
    SET_SESSION_OPTIONS,
    UNSERVED_ACTIONS,
    PrepareRequest,
    encode_closed,
    encode_not_cancellable,
    encode_option_errors,
    encode_options,
    handle_to_close,
    options_to_set,
)
from floeberg.server.access import Caller
from floeberg.server.sql.handles import MAX_PARAMETER_BYTES
from floeberg.server.sql.service import SqlService
from floeberg.server.sql.sessions import SessionOptions, with_changes

SQL_ACTIONS = frozenset({name for name, _ in SERVED_ACTIONS} | UNSERVED_ACTIONS)

_MESSAGE_BYTES = 2 << 20
"""Of a listing: some clients take messages of 4 MiB at most."""


@dataclass(frozen=True, slots=True)
class SqlAnswer:
    """The results of an action; where a session is given, it is the client's from now on."""

    results: tuple[bytes, ...] = ()
    session: SessionOptions | None = None


_Handler = Callable[[bytes, SessionOptions, Caller], SqlAnswer]


class SqlActions:
    """Answers `SQL_ACTIONS`. Safe to use from several threads."""

    def __init__(self, sql: SqlService) -> None:
        self._sql = sql
        self._handlers: Mapping[str, _Handler] = {
            CREATE_PREPARED_STATEMENT: self._prepare,
            CLOSE_PREPARED_STATEMENT: self._close_prepared,
            SET_SESSION_OPTIONS: _set_options,
            GET_SESSION_OPTIONS: _get_options,
            CLOSE_SESSION: lambda *_: SqlAnswer((encode_closed(),), SessionOptions()),
            CANCEL_FLIGHT_INFO: lambda *_: SqlAnswer((encode_not_cancellable(CANCEL_FLIGHT_INFO),)),
            CANCEL_QUERY: lambda *_: SqlAnswer((encode_not_cancellable(CANCEL_QUERY),)),
        }

    def answer(self, name: str, body: bytes, session: SessionOptions, caller: Caller) -> SqlAnswer:
        """Return what an action gives. Raises `BadCommand` for a damaged body, `Unsupported` for an
        action that isn't served, and what preparing a statement raises."""
        handler = self._handlers.get(name)
        if handler is None:
            raise Unsupported(f"Flight SQL's action {name} is not served")
        return handler(body, session, caller)

    def _prepare(self, body: bytes, session: SessionOptions, caller: Caller) -> SqlAnswer:
        prepared = self._sql.prepare(PrepareRequest.parse(body), session, caller)
        return SqlAnswer((prepared.encode(),))

    def _close_prepared(self, body: bytes, session: SessionOptions, caller: Caller) -> SqlAnswer:
        self._sql.close(handle_to_close(body))
        return SqlAnswer()


def _set_options(body: bytes, session: SessionOptions, caller: Caller) -> SqlAnswer:
    changed, problems = with_changes(session, options_to_set(body), caller.catalogs)
    return SqlAnswer((encode_option_errors(problems),), changed)


def _get_options(body: bytes, session: SessionOptions, caller: Caller) -> SqlAnswer:
    return SqlAnswer((encode_options(session.told(caller.catalogs)),))


# --- rows ----------------------------------------------------------------------------------------


class Chunk(Protocol):
    @property
    def data(self) -> pa.RecordBatch | None: ...


class ChunkReader(Protocol):
    """The part of pyarrow's reader of what a client puts that is used here."""

    @property
    def schema(self) -> pa.Schema: ...

    def read_chunk(self) -> Chunk: ...


def read_parameters(reader: ChunkReader) -> pa.Table:
    """Return the rows that a client sends, to their end. Raises `BadRequest` for too much."""
    batches: list[pa.RecordBatch] = []
    size = 0
    while True:
        try:
            batch = reader.read_chunk().data
        except StopIteration:
            return pa.Table.from_batches(batches, reader.schema)
        if batch is not None:
            size += batch.nbytes
            batches.append(batch)
        if size > MAX_PARAMETER_BYTES:
            raise BadRequest(
                f"more than {MAX_PARAMETER_BYTES} bytes of parameters are sent, which is as many as"
                " can be bound to a statement"
            )


def in_messages(table: pa.Table) -> pa.RecordBatchReader:
    """Return a listing in batches that clients take as messages; mostly that is one."""
    share = max(1, -(-table.nbytes // _MESSAGE_BYTES))
    rows = max(1, table.num_rows // share)
    return table.combine_chunks().to_reader(max_chunksize=rows)
