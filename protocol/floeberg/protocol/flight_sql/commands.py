"""Flight SQL's commands: what a descriptor asks for, or the ticket of a listing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from floeberg.protocol.flight_sql.wire import Fields, decode, pack, unpack


@dataclass(frozen=True, slots=True)
class GetSqlInfo:
    """What the server is like. No codes ask for all there is."""

    codes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GetXdbcTypeInfo:
    """The types of columns; with `data_type`, those of that code alone."""

    data_type: int | None = None


@dataclass(frozen=True, slots=True)
class GetCatalogs:
    pass


@dataclass(frozen=True, slots=True)
class GetDbSchemas:
    """Schemas, of one catalog (exactly so called) and by a pattern of LIKE, where they are not
    None."""

    catalog: str | None = None
    schema_pattern: str | None = None


@dataclass(frozen=True, slots=True)
class GetTables:
    """Tables, likewise. `types` are the types of table that are asked for, none for all."""

    catalog: str | None = None
    schema_pattern: str | None = None
    table_pattern: str | None = None
    types: tuple[str, ...] = ()
    with_schema: bool = False


@dataclass(frozen=True, slots=True)
class GetTableTypes:
    pass


@dataclass(frozen=True, slots=True)
class GetPrimaryKeys:
    pass


@dataclass(frozen=True, slots=True)
class GetForeignKeys:
    """Keys that lead from or to a table (exported, imported, or between two tables)."""


@dataclass(frozen=True, slots=True)
class StatementQuery:
    """A query as SQL text. `transaction` is the id of a transaction, None for none."""

    sql: str
    transaction: bytes | None = None

    def encode(self) -> bytes:
        return pack("CommandStatementQuery", query=self.sql, transaction_id=self.transaction)


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query by the handle that preparing it gave."""

    handle: bytes

    def encode(self) -> bytes:
        return pack("CommandPreparedStatementQuery", prepared_statement_handle=self.handle)


@dataclass(frozen=True, slots=True)
class OtherCommand:
    """A command that is not served, by the name of its message."""

    name: str


Listing: TypeAlias = (
    GetSqlInfo
    | GetXdbcTypeInfo
    | GetCatalogs
    | GetDbSchemas
    | GetTables
    | GetTableTypes
    | GetPrimaryKeys
    | GetForeignKeys
)
"""A command that is answered by the coordinator itself, with a small table."""

SqlCommand: TypeAlias = Listing | StatementQuery | PreparedQuery | OtherCommand


def decode_command(raw: bytes) -> SqlCommand | None:
    """Return the command that a descriptor's or a ticket's bytes hold; None for what is none of
    Flight SQL's. Raises `BadCommand` for one that is damaged.
    """
    found = unpack(raw)
    if found is None:
        return None
    name, value = found
    reader = _READERS.get(name)
    return OtherCommand(name) if reader is None else reader(decode(name, value))


def _text(fields: Fields, name: str) -> str | None:
    return getattr(fields, name) if fields.HasField(name) else None


def _tables(fields: Fields) -> GetTables:
    return GetTables(
        _text(fields, "catalog"),
        _text(fields, "db_schema_filter_pattern"),
        _text(fields, "table_name_filter_pattern"),
        tuple(fields.table_types),
        fields.include_schema,
    )


def _statement(fields: Fields) -> StatementQuery:
    transaction = fields.transaction_id if fields.HasField("transaction_id") else None
    return StatementQuery(fields.query, transaction)


_READERS: Mapping[str, Callable[[Fields], SqlCommand]] = {
    "CommandGetSqlInfo": lambda fields: GetSqlInfo(tuple(fields.info)),
    "CommandGetXdbcTypeInfo": lambda fields: GetXdbcTypeInfo(
        fields.data_type if fields.HasField("data_type") else None
    ),
    "CommandGetCatalogs": lambda fields: GetCatalogs(),
    "CommandGetDbSchemas": lambda fields: GetDbSchemas(
        _text(fields, "catalog"), _text(fields, "db_schema_filter_pattern")
    ),
    "CommandGetTables": _tables,
    "CommandGetTableTypes": lambda fields: GetTableTypes(),
    "CommandGetPrimaryKeys": lambda fields: GetPrimaryKeys(),
    "CommandGetExportedKeys": lambda fields: GetForeignKeys(),
    "CommandGetImportedKeys": lambda fields: GetForeignKeys(),
    "CommandGetCrossReference": lambda fields: GetForeignKeys(),
    "CommandStatementQuery": _statement,
    "CommandPreparedStatementQuery": lambda fields: PreparedQuery(fields.prepared_statement_handle),
}
