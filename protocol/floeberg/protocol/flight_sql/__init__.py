"""Flight SQL's commands, actions and session options, as values of Python.

`decode_command` reads what a descriptor asks for, `actions` the bodies of actions, and `codes` has
the protocol's numbers. What floeberg's client sends encodes itself. `wire` alone deals with
protobuf; `pack` makes the other messages that tests send.
"""

from floeberg.protocol.flight_sql.commands import (
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
    SqlCommand,
    StatementQuery,
    decode_command,
)

__all__ = [
    "GetCatalogs",
    "GetDbSchemas",
    "GetForeignKeys",
    "GetPrimaryKeys",
    "GetSqlInfo",
    "GetTableTypes",
    "GetTables",
    "GetXdbcTypeInfo",
    "Listing",
    "OtherCommand",
    "PreparedQuery",
    "SqlCommand",
    "StatementQuery",
    "decode_command",
]
