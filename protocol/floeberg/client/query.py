"""A query in SQL on a fleet: planned by the coordinator, its rows read from the workers."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.client.calls import Call, T, ask_coordinator
from floeberg.client.planned import Reading, read_planned
from floeberg.client.rows import RemoteRows
from floeberg.client.sessions import SetCookies, SqlOptions, refused
from floeberg.protocol.errors import BadCommand, InternalError
from floeberg.protocol.flight_sql import PreparedQuery, StatementQuery
from floeberg.protocol.flight_sql.actions import (
    CREATE_PREPARED_STATEMENT,
    SET_SESSION_OPTIONS,
    Prepared,
    PrepareRequest,
    encode_options_to_set,
    parse_bound,
    parse_option_errors,
)
from floeberg.protocol.requests import RequestContext, current_request, new_request


@dataclass(frozen=True)
class RemoteQuery(RemoteRows):
    """One query. Nothing is asked of the server until a method that reads is called, and each call
    plans anew.

    Rows come as the statement orders them; without an ORDER BY, in no particular order.
    """

    sql: str
    parameters: pa.RecordBatch | None
    """One row, a column a parameter; None for a statement without any."""
    options: SqlOptions
    reading: Reading = field(repr=False)

    def planned(self) -> PlannedQuery:
        """Return the query as the coordinator plans it now: later commits change nothing in it."""
        request = current_request() or new_request()
        descriptor, cookie = self._described(request)
        info = self._ask(
            "GetFlightInfo",
            lambda client, options: client.get_flight_info(descriptor, options),
            request,
            cookie,
        )
        return PlannedQuery(self, info, request)

    def schema(self) -> pa.Schema:
        """Return the schema of the rows; nothing is computed."""
        request = current_request() or new_request()
        descriptor, cookie = self._described(request)
        # a SchemaResult, whatever the stubs say
        result: Any = self._ask(
            "GetSchema",
            lambda client, options: client.get_schema(descriptor, options),
            request,
            cookie,
        )
        schema: pa.Schema = result.schema
        return schema

    # --- what is asked for -----------------------------------------------------------------------

    def _described(self, request: RequestContext) -> tuple[fl.FlightDescriptor, bytes | None]:
        """Return what stands for the query, and the cookie to show with it."""
        cookie = self._cookie(request)
        if self.parameters is None:
            return fl.FlightDescriptor.for_command(StatementQuery(self.sql).encode()), cookie
        prepared = Prepared.parse(
            self._act(CREATE_PREPARED_STATEMENT, PrepareRequest(self.sql).encode(), request, cookie)
        )
        bound = self._bind(prepared.handle, self.parameters, request)
        # nothing is kept of a prepared statement, so that there is none to close
        return fl.FlightDescriptor.for_command(PreparedQuery(bound).encode()), cookie

    def _bind(self, handle: bytes, row: pa.RecordBatch, request: RequestContext) -> bytes:
        descriptor = fl.FlightDescriptor.for_command(PreparedQuery(handle).encode())

        def put(client: fl.FlightClient, options: fl.FlightCallOptions) -> bytes | None:
            writer, reader = client.do_put(descriptor, row.schema, options)
            with writer:
                writer.write_batch(row)
                writer.done_writing()
                # a FlightMetadataReader, whatever the stubs say
                answered = cast(Any, reader).read()
            return None if answered is None else answered.to_pybytes()

        answered = self._ask("DoPut", put, request)
        if answered is None:
            raise InternalError("the coordinator took parameters without an answer")
        return parse_bound(answered)

    def _cookie(self, request: RequestContext) -> bytes | None:
        given = self.options.given()
        if not given:
            return None

        def ask() -> bytes:
            kept = SetCookies()
            body = encode_options_to_set(given)
            errors = parse_option_errors(self._act(SET_SESSION_OPTIONS, body, request, kept=kept))
            if errors:
                raise refused(given, errors)
            return kept.header()

        return self.reading.connection.cookies.of(self.options, ask)

    def _act(
        self,
        name: str,
        body: bytes,
        request: RequestContext,
        cookie: bytes | None = None,
        kept: SetCookies | None = None,
    ) -> bytes:
        """Return the one result of an action."""

        def call(client: fl.FlightClient, options: fl.FlightCallOptions) -> list[bytes]:
            results = client.do_action(fl.Action(name, body), options)
            return [result.body.to_pybytes() for result in results]

        results = self._ask(name, call, request, cookie, kept)
        if len(results) != 1:
            raise InternalError(f"{name} has {len(results)} results, and not one")
        return results[0]

    def _ask(
        self,
        name: str,
        call: Call[T],
        request: RequestContext,
        cookie: bytes | None = None,
        kept: SetCookies | None = None,
    ) -> T:
        reading = self.reading
        return ask_coordinator(
            reading.connection, name, call, request, reading.policy, cookie=cookie, kept=kept
        )


@dataclass(frozen=True)
class PlannedQuery:
    """A query with its plan: `info` has the schema, the endpoints with tickets and locations, and
    totals (-1 unknown). `request` is what servers know it by."""

    query: RemoteQuery
    info: fl.FlightInfo
    request: RequestContext

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Yield the rows, reading several endpoints at once.

        A stream that breaks is gone on with where its place is known, which it is of plain scans;
        else it is run anew, as long as few of its rows have come. Closing the generator ends the
        streams. Raises `ServerUnavailable` for a stream that broke off later, and `InternalError`
        when, at the end, not as many rows came as the plan has counted.
        """
        info = self.info
        return read_planned(
            info, self.query.reading, self.request, ordered=info.ordered, limit=_limit(info)
        )


def _limit(info: fl.FlightInfo) -> int | None:
    """Return the limit of a plain scan, as its plan tells it."""
    try:
        told = json.loads(info.app_metadata or b"{}")
    except ValueError:
        return None
    limit = told.get("limit") if isinstance(told, dict) else None
    return limit if isinstance(limit, int) else None


def row_of(parameters: Sequence[Any] | None) -> pa.RecordBatch | None:
    """Return values as one row, with a column for each; None for none.

    Raises `BadCommand` for a value that can't be sent.

    >>> row_of([7, "x"]).to_pylist()
    [{'0': 7, '1': 'x'}]
    """
    if parameters is None or (not isinstance(parameters, str | bytes) and not len(parameters)):
        return None
    if isinstance(parameters, str | bytes) or not isinstance(parameters, Sequence):
        raise BadCommand("parameters is a list of values, one for each '?' of the statement")
    columns = [_column(number, value) for number, value in enumerate(parameters, 1)]
    return pa.RecordBatch.from_arrays(columns, names=[str(n) for n in range(len(columns))])


def _column(number: int, value: Any) -> Any:  # an array, whose type depends on the value
    if isinstance(value, UUID):
        return pa.array([value.bytes], pa.uuid())
    try:
        return pa.array([value])
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as exc:
        raise BadCommand(
            f"parameter {number}, of type {type(value).__name__}, can't be sent: {exc}"
        ) from exc
