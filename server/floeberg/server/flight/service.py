"""The coordinator's Flight service: a thin adapter from pyarrow.flight to what answers.

Handlers decode, call, encode, and turn errors into statuses; nothing else.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterable, Iterator
from typing import Any, cast

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.process.auth import Gate
from floeberg.process.failures import Failures
from floeberg.process.flight import FlightService, cancellation
from floeberg.protocol.actions import TablesRequest
from floeberg.protocol.bodies import dump_json
from floeberg.protocol.commands import ScanCommand
from floeberg.protocol.errors import BadCommand, Cancelled, FloebergError, ServerUnavailable
from floeberg.protocol.flight_sql import (
    Listing,
    OtherCommand,
    PreparedQuery,
    SqlCommand,
    decode_command,
)
from floeberg.protocol.flight_sql.actions import SERVED_ACTIONS, encode_bound
from floeberg.protocol.registration import SEALED_ACTIONS
from floeberg.protocol.requests import current_request
from floeberg.server.access import Caller, Callers
from floeberg.server.flight.actions import Actions
from floeberg.server.flight.descriptors import command_from_bytes, command_from_path
from floeberg.server.flight.proxy import Proxy
from floeberg.server.flight.scans import IsCancelled, ScanAnswer, Scans
from floeberg.server.flight.sql import SQL_ACTIONS, SqlActions, in_messages, read_parameters
from floeberg.server.flight.tables import list_tables, name_filter, path_of
from floeberg.server.sql.service import SqlService, listing_schema, unserved
from floeberg.server.sql.sessions import SessionOptions


class CoordinatorServer(FlightService):
    """Answers calls from the moment it is made; `shutdown` ends it."""

    answers = "ListFlights, GetFlightInfo, GetSchema, DoGet, DoPut of parameters, and actions"

    def __init__(
        self,
        location: str,
        callers: Callers,
        scans: Scans,
        actions: Actions,
        sql: SqlService,
        proxy: Proxy,
        gate: Gate,
        failures: Failures,
        tls: list[tuple[str, str]] | None = None,
        client_roots: str | None = None,
        stall_seconds: float = 0.0,
    ) -> None:
        self._callers = callers
        self._scans = scans
        self._actions = actions
        self._sql = sql
        self._sql_actions = SqlActions(sql)
        self._proxy = proxy
        self._draining = threading.Event()
        super().__init__(location, gate, failures, tls, client_roots, stall_seconds)

    def drain(self) -> None:
        """Refuse new streams from now on; planning and actions go on until `shutdown`."""
        self._draining.set()

    # the stubs have text for the criteria's bytes, and a bare schema for GetSchema's result
    def list_flights(  # type: ignore[override]
        self, context: fl.ServerCallContext, criteria: bytes
    ) -> Iterator[fl.FlightInfo]:
        with self.answering(context):
            caller = self._caller(context)
            matches = name_filter(criteria)
            tables, _ = list_tables(caller.catalogs, TablesRequest())
            entries = [e for e in tables if matches(e)]
        return self.answering_with(
            (self._table_info(path_of(e), caller, cancellation(context)) for e in entries), context
        )

    def get_flight_info(
        self, context: fl.ServerCallContext, descriptor: fl.FlightDescriptor
    ) -> fl.FlightInfo:
        with self.answering_whole(context, "GetFlightInfo"):
            caller = self._caller(context)
            command = _command(descriptor)
            if isinstance(command, ScanCommand):
                answer = self._scans.answer(command, caller, cancellation(context))
            elif isinstance(command, Listing):
                return _listing_info(command, descriptor)
            else:
                session = self._session(context)
                answer = self._sql.info(
                    command,
                    session,
                    caller,
                    cancellation(context),
                    one_endpoint=self.wants_one_endpoint(context),
                )
            return _flight_info(answer, descriptor)

    def get_schema(  # type: ignore[override]
        self, context: fl.ServerCallContext, descriptor: fl.FlightDescriptor
    ) -> fl.SchemaResult:
        with self.answering(context):
            caller = self._caller(context)
            command = _command(descriptor)
            if isinstance(command, ScanCommand):
                schema = self._scans.schema(command, caller, cancellation(context))
            elif isinstance(command, Listing):
                schema = listing_schema(command)
            else:
                schema = self._sql.schema(command, self._session(context), caller)
            return fl.SchemaResult(schema)

    def do_get(self, context: fl.ServerCallContext, ticket: fl.Ticket) -> fl.FlightDataStream:
        with self.answering(context):
            principal = self.principal(context)
            if self._draining.is_set():
                raise ServerUnavailable("the coordinator is stopping; try again")
            listing = decode_command(ticket.ticket)
            if isinstance(listing, Listing):
                seen_by = self._callers.of(principal)
                rows = self._sql.listing(listing, seen_by, cancellation(context))
                return fl.RecordBatchStream(in_messages(rows))
            relay = self._proxy.redeem(ticket.ticket, principal)
            request = current_request()  # the ticket's
        sent = self.streaming(relay.batches, context, request)
        # the stubs don't know that a batch may come with its app_metadata
        batches = cast(Iterator[pa.RecordBatch], sent)
        return fl.GeneratorStream(relay.schema, batches)

    def do_put(
        self,
        context: fl.ServerCallContext,
        descriptor: fl.FlightDescriptor,
        reader: fl.MetadataRecordBatchReader,
        writer: fl.FlightMetadataWriter,
    ) -> None:
        with self.answering(context):
            self.principal(context)
            match decode_command(descriptor.command or b""):
                case PreparedQuery(handle):
                    bound = self._sql.bind(handle, read_parameters(reader))
                    writer.write(pa.py_buffer(encode_bound(bound)))
                    return
                case OtherCommand(name):
                    raise unserved(name)
        super().do_put(context, descriptor, reader, writer)

    # the stubs ask for Action and bytes where pyarrow takes tuples and Result
    def list_actions(  # type: ignore[override]
        self, context: fl.ServerCallContext
    ) -> list[tuple[str, str]]:
        with self.answering(context):
            self.principal(context)
        return [*self._actions.descriptions(), *SERVED_ACTIONS]

    def do_action(  # type: ignore[override]
        self, context: fl.ServerCallContext, action: fl.Action
    ) -> Iterator[fl.Result]:
        with self.answering(context):
            # workers prove themselves by the seal
            is_sealed = action.type in SEALED_ACTIONS
            caller = self._callers.of(None) if is_sealed else self._caller(context)
            name, body = action.type, action.body.to_pybytes()
            if name in SQL_ACTIONS:
                answer = self._sql_actions.answer(name, body, self._session(context), caller)
                if answer.session is not None:
                    self.have_carried(context, answer.session.to_json())
                results: Iterable[bytes] = answer.results
            else:
                results = self._actions.answer(name, body, caller, cancellation(context))
        return self.answering_with((fl.Result(pa.py_buffer(raw)) for raw in results), context)

    def _caller(self, context: fl.ServerCallContext) -> Caller:
        return self._callers.of(self.principal(context))

    def _session(self, context: fl.ServerCallContext) -> SessionOptions:
        return SessionOptions.from_json(self.carried(context))

    def _table_info(
        self, path: tuple[str, ...], caller: Caller, is_cancelled: IsCancelled
    ) -> fl.FlightInfo:
        descriptor = fl.FlightDescriptor.for_path(*path)
        try:
            schema = self._scans.schema(command_from_path(path), caller, is_cancelled)
            metadata = b""
        except Cancelled:
            raise
        except FloebergError as error:
            # one table that is damaged must not hide the others, nor be missing without a word
            schema = pa.schema([])
            metadata = dump_json({"error": {"code": error.code, "message": str(error)}})
        return fl.FlightInfo(schema, descriptor, [], -1, -1, False, metadata)


def _command(descriptor: fl.FlightDescriptor) -> ScanCommand | SqlCommand:
    match descriptor.descriptor_type:
        case fl.DescriptorType.PATH:
            return command_from_path(descriptor.path or ())
        case fl.DescriptorType.CMD:
            return command_from_bytes(descriptor.command or b"")
        case _:
            raise BadCommand("the descriptor is neither a path nor a command")


def _listing_info(command: Listing, descriptor: fl.FlightDescriptor) -> fl.FlightInfo:
    # its ticket is the command: any coordinator redeems it, for what whoever calls may see
    endpoint = fl.FlightEndpoint(descriptor.command or b"", [])
    return fl.FlightInfo(listing_schema(command), descriptor, [endpoint], -1, -1)


def _flight_info(answer: ScanAnswer, descriptor: fl.FlightDescriptor) -> fl.FlightInfo:
    # by their buffer: pyarrow's own conversion imports pandas where that is installed
    expiries = array("q", (e.expires_at_ms for e in answer.endpoints))
    buffers: list[Any] = [None, pa.py_buffer(cast(Any, expiries))]
    moments = pa.Array.from_buffers(pa.timestamp("ms", tz="UTC"), len(expiries), buffers)
    endpoints = [
        # the stubs know only one unit and no time zone
        fl.FlightEndpoint(e.ticket, list(e.locations), cast(Any, moment))
        for e, moment in zip(answer.endpoints, moments, strict=True)
    ]
    return fl.FlightInfo(
        answer.schema,
        descriptor,
        endpoints,
        answer.total_records,
        answer.total_bytes,
        answer.ordered,
        answer.app_metadata,
    )
