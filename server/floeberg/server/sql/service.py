"""Flight SQL's commands and actions, answered; knows nothing of Flight.

Listings are answered here, from what catalogs tell. What a query means, and who computes it, is for
`Statements` to say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, assert_never

import pyarrow as pa

from floeberg.protocol.errors import BadRequest, Unsupported
from floeberg.protocol.flight_sql import (
    GetCatalogs,
    GetDbSchemas,
    GetForeignKeys,
    GetPrimaryKeys,
    GetSqlInfo,
    GetTables,
    GetTableTypes,
    GetXdbcTypeInfo,
    Listing,
    OtherCommand,
    PreparedQuery,
    StatementQuery,
)
from floeberg.protocol.flight_sql.actions import Prepared, PrepareRequest
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.suggestions import quoted
from floeberg.server.access import Caller
from floeberg.server.sql import listings
from floeberg.server.sql.handles import MAX_SQL_BYTES, StatementText, open_handle, seal_handle
from floeberg.server.sql.info import SQL_INFO, sql_info
from floeberg.server.sql.sessions import SessionOptions
from floeberg.server.sql.types_info import XDBC_TYPE_INFO, type_info

if TYPE_CHECKING:
    # the package that it is in has the Flight service, which stands on this module
    from floeberg.server.flight.scans import IsCancelled, ScanAnswer

_WRITES = {
    "CommandStatementUpdate": "an update",
    "CommandPreparedStatementUpdate": "an update",
    "CommandStatementIngest": "ingestion",
}


class Statements(Protocol):
    """Answers queries in SQL. Safe to use from several threads.

    `parameters` is one row with a column for each parameter, None where none are bound (yet).
    Tables are `caller`'s, their names and snapshots as `session` says. Each raises what is wrong
    with the text, and what a scan raises.
    """

    def schema(
        self,
        sql: str,
        parameters: pa.RecordBatch | None,
        session: SessionOptions,
        caller: Caller,
    ) -> pa.Schema:
        """Return the schema of the rows; nothing is planned or computed."""
        ...

    def parameter_schema(self, sql: str, session: SessionOptions, caller: Caller) -> pa.Schema:
        """Return a field for each parameter in their order, of type null where it isn't known."""
        ...

    def info(
        self,
        sql: str,
        parameters: pa.RecordBatch | None,
        session: SessionOptions,
        caller: Caller,
        is_cancelled: IsCancelled,
        *,
        one_endpoint: bool = False,
    ) -> ScanAnswer:
        """Plan the query and return its endpoints, of exactly the schema that `schema` told; just
        `one_endpoint`, without locations, for clients that read no other.

        Raises `Cancelled` soon after `is_cancelled` says so.
        """
        ...


class SqlService:
    """Answers a coordinator's Flight SQL. Safe to use from several threads."""

    def __init__(self, keyring: Keyring, statements: Statements) -> None:
        self._keyring = keyring
        self._statements = statements

    # --- listings --------------------------------------------------------------------------------

    def listing(
        self, command: Listing, caller: Caller, is_cancelled: Callable[[], bool]
    ) -> pa.Table:
        """Return the rows of a listing, as `caller` sees it. Raises what `list_tables` does."""
        match command:
            case GetSqlInfo(codes):
                return sql_info(codes)
            case GetXdbcTypeInfo(data_type):
                return type_info(data_type)
            case GetCatalogs():
                return listings.list_catalogs(caller)
            case GetDbSchemas():
                return listings.list_schemas(command, caller)
            case GetTables():
                return listings.list_tables(command, caller, is_cancelled)
            case GetTableTypes():
                return listings.list_table_types()
            case GetPrimaryKeys() | GetForeignKeys():
                return listing_schema(command).empty_table()
            case _:
                assert_never(command)

    # --- queries ---------------------------------------------------------------------------------

    def schema(
        self,
        command: StatementQuery | PreparedQuery | OtherCommand,
        session: SessionOptions,
        caller: Caller,
    ) -> pa.Schema:
        """Return the schema of a query's rows."""
        asked = self._statement(command, session)
        return self._statements.schema(asked.sql, asked.parameters, asked.session, caller)

    def info(
        self,
        command: StatementQuery | PreparedQuery | OtherCommand,
        session: SessionOptions,
        caller: Caller,
        is_cancelled: IsCancelled,
        *,
        one_endpoint: bool = False,
    ) -> ScanAnswer:
        """Plan a query. A prepared one runs in the session that it was prepared in.

        Raises `Unsupported` for commands that aren't served, `BadHandle`, and what `Statements`
        raise.
        """
        asked = self._statement(command, session)
        return self._statements.info(
            asked.sql,
            asked.parameters,
            asked.session,
            caller,
            is_cancelled,
            one_endpoint=one_endpoint,
        )

    def prepare(self, request: PrepareRequest, session: SessionOptions, caller: Caller) -> Prepared:
        """Return a handle of a statement, with the schemas of its rows and of its parameters."""
        asked = self._statement(StatementQuery(request.sql, request.transaction), session)
        return Prepared(
            seal_handle(asked, self._keyring),
            rows=_message(self._statements.schema(asked.sql, None, session, caller)),
            parameters=_message(self._statements.parameter_schema(asked.sql, session, caller)),
        )

    def bind(self, handle: bytes, rows: pa.Table) -> bytes:
        """Return another handle of the same statement, with the parameters that `rows` has: one
        row. Raises `BadHandle` and `BadRequest`."""
        asked = open_handle(handle, self._keyring)
        if rows.num_rows != 1:
            raise BadRequest(
                f"{rows.num_rows} rows of parameters are bound, and a query takes one row: execute"
                " it once for each"
            )
        (batch,) = rows.combine_chunks().to_batches()
        return seal_handle(StatementText(asked.sql, asked.session, batch), self._keyring)

    def close(self, handle: bytes) -> None:
        """Give up a prepared statement, of which nothing is kept. Raises `BadHandle`."""
        open_handle(handle, self._keyring)

    def _statement(
        self, command: StatementQuery | PreparedQuery | OtherCommand, session: SessionOptions
    ) -> StatementText:
        match command:
            case StatementQuery(sql, transaction):
                _check_text(sql, transaction)
                return StatementText(sql, session)
            case PreparedQuery(handle):
                return open_handle(handle, self._keyring)
            case OtherCommand(name):
                raise unserved(name)
            case _:
                assert_never(command)


def listing_schema(command: Listing) -> pa.Schema:
    """Return the columns of a listing, which are the same for everybody."""
    match command:
        case GetSqlInfo():
            return SQL_INFO
        case GetXdbcTypeInfo():
            return XDBC_TYPE_INFO
        case GetCatalogs():
            return listings.CATALOGS
        case GetDbSchemas():
            return listings.SCHEMAS
        case GetTables():
            return listings.TABLES_WITH_SCHEMA if command.with_schema else listings.TABLES
        case GetTableTypes():
            return listings.TABLE_TYPES
        case GetPrimaryKeys():
            return listings.PRIMARY_KEYS
        case GetForeignKeys():
            return listings.FOREIGN_KEYS
        case _:
            assert_never(command)


def unserved(name: str) -> Unsupported:
    """Return the error for a command that is not served, by the name of its message."""
    what = _WRITES.get(name)
    if what is not None:
        return Unsupported(
            f"{what} ({name}) is not served: tables are read here, and never written"
        )
    return Unsupported(f"Flight SQL's {quoted(name)} is not served")


def _check_text(sql: str, transaction: bytes | None) -> None:
    if transaction is not None:
        raise Unsupported("transactions are not served: turn autocommit on")
    if len(sql) > MAX_SQL_BYTES:
        raise BadRequest(f"the statement has {len(sql)} letters; at most {MAX_SQL_BYTES} are read")


def _message(schema: pa.Schema) -> bytes:
    """Return a schema as an encapsulated IPC message."""
    return schema.serialize().to_pybytes()
