"""Flight SQL's messages, as protobuf classes that are made from a table when this is imported.

The table has the messages that floeberg reads or writes, every field of them: so there is no
generated code, and no compiler is needed. Nothing outside of this package sees a protobuf object.

The classes live in a descriptor pool of their own: another library in the process may bring its own
copy of the same messages.

Spec: Arrow's `Flight.proto` and `FlightSql.proto`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from floeberg.protocol.errors import BadCommand
from floeberg.protocol.suggestions import quoted

# protobuf makes the attributes of a message when the program runs
Fields: TypeAlias = Any
"""A message's fields, as attributes."""

CORE = "arrow.flight.protocol"
SQL = "arrow.flight.protocol.sql"
_URL = "type.googleapis.com/"
_FIRST_BYTES = (b"\x0a", b"\x12")
"""Of an `Any`: its first or second field."""

# A field is its number, its name and its type. Before a type, `?` is explicit presence, `*` is
# repeated, `|` is a member of the message's one oneof, and `%` is a map from strings. What is no
# scalar is a message. An enum is an int32, which is the same on the wire.
MESSAGES = {
    CORE: """
        CancelFlightInfoResult: 1 status int32
        SessionOptionValue.StringListValue: 1 values *string
        SessionOptionValue: 1 string_value |string, 2 bool_value |bool, 3 int64_value |sfixed64,
            4 double_value |double, 5 string_list_value |SessionOptionValue.StringListValue
        SetSessionOptionsRequest: 1 session_options %SessionOptionValue
        SetSessionOptionsResult.Error: 1 value int32
        SetSessionOptionsResult: 1 errors %SetSessionOptionsResult.Error
        GetSessionOptionsRequest:
        GetSessionOptionsResult: 1 session_options %SessionOptionValue
        CloseSessionRequest:
        CloseSessionResult: 1 status int32
    """,
    SQL: """
        CommandGetSqlInfo: 1 info *uint32
        CommandGetXdbcTypeInfo: 1 data_type ?int32
        CommandGetCatalogs:
        CommandGetDbSchemas: 1 catalog ?string, 2 db_schema_filter_pattern ?string
        CommandGetTables: 1 catalog ?string, 2 db_schema_filter_pattern ?string,
            3 table_name_filter_pattern ?string, 4 table_types *string, 5 include_schema bool
        CommandGetTableTypes:
        CommandGetPrimaryKeys: 1 catalog ?string, 2 db_schema ?string, 3 table string
        CommandGetExportedKeys: 1 catalog ?string, 2 db_schema ?string, 3 table string
        CommandGetImportedKeys: 1 catalog ?string, 2 db_schema ?string, 3 table string
        CommandGetCrossReference: 1 pk_catalog ?string, 2 pk_db_schema ?string, 3 pk_table string,
            4 fk_catalog ?string, 5 fk_db_schema ?string, 6 fk_table string
        CommandStatementQuery: 1 query string, 2 transaction_id ?bytes
        CommandPreparedStatementQuery: 1 prepared_statement_handle bytes
        DoPutPreparedStatementResult: 1 prepared_statement_handle ?bytes
        ActionCreatePreparedStatementRequest: 1 query string, 2 transaction_id ?bytes
        ActionCreatePreparedStatementResult: 1 prepared_statement_handle bytes,
            2 dataset_schema bytes, 3 parameter_schema bytes, 4 is_update ?bool
        ActionClosePreparedStatementRequest: 1 prepared_statement_handle bytes
        ActionCancelQueryResult: 1 result int32
    """,
}

_SCALARS: dict[str, FieldDescriptorProto.Type.ValueType] = {
    "double": FieldDescriptorProto.TYPE_DOUBLE,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "uint32": FieldDescriptorProto.TYPE_UINT32,
    "sfixed64": FieldDescriptorProto.TYPE_SFIXED64,
}


def describe_file(package: str, table: str) -> FileDescriptorProto:
    """Return the descriptors of a package's messages, as the table has them."""
    file = FileDescriptorProto(name=f"floeberg/{package}.proto", package=package, syntax="proto3")
    made: dict[str, DescriptorProto] = {}
    for line in table.replace(",\n", ",").strip().splitlines():
        name, _, fields = line.strip().partition(":")
        outer, _, inner = name.rpartition(".")
        home = file.message_type
        if outer:
            # a message may come after those within it, which it names
            if outer not in made:
                made[outer] = file.message_type.add(name=outer)
            home = made[outer].nested_type
        message = made.get(name) or home.add(name=inner)
        made[name] = message
        for field in fields.split(",") if fields.strip() else ():
            _add_field(message, f".{package}.", name, field.split())
    return file


def _add_field(message: DescriptorProto, scope: str, owner: str, words: list[str]) -> None:
    number, name, written = words
    mark, kind = (written[0], written[1:]) if written[0] in "?*|%" else ("", written)
    field = message.field.add(name=name, number=int(number))
    field.label = FieldDescriptorProto.LABEL_OPTIONAL
    if mark in "*%" and mark:
        field.label = FieldDescriptorProto.LABEL_REPEATED
    if mark == "%":
        entry = message.nested_type.add(
            name="".join(word.capitalize() for word in name.split("_")) + "Entry"
        )
        entry.options.map_entry = True
        _add_field(entry, scope, owner, ["1", "key", "string"])
        _add_field(entry, scope, owner, ["2", "value", kind])
        kind = f"{owner}.{entry.name}"
    if mark == "|":
        if not message.oneof_decl:
            message.oneof_decl.add(name="value")
        field.oneof_index = 0
    if mark == "?":
        field.proto3_optional = True
        field.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{name}")
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = scope + kind


def _classes() -> dict[str, Any]:
    pool = DescriptorPool()
    names: list[str] = []
    for package, table in MESSAGES.items():
        file = describe_file(package, table)
        pool.AddSerializedFile(file.SerializeToString())
        names += [f"{package}.{message.name}" for message in file.message_type]
    return {
        name.rpartition(".")[2]: GetMessageClass(pool.FindMessageTypeByName(name)) for name in names
    }


_CLASSES = _classes()


def encode(name: str, **fields: object) -> bytes:
    """Return the message `name` with these fields; one that is None is left out."""
    return bytes(message(name, **fields).SerializeToString(deterministic=True))


def message(name: str, **fields: object) -> Fields:
    """Return a message to be filled in; `encode` likewise, for what is whole."""
    return _CLASSES[name](**fields)


def decode(name: str, raw: bytes) -> Fields:
    """Return what a message holds. Raises `BadCommand` where it can't be read."""
    try:
        return _CLASSES[name].FromString(raw)
    except DecodeError as exc:
        raise BadCommand(f"the {name} is damaged: it is no such protobuf message") from exc


def knows(name: str) -> bool:
    return name in _CLASSES


def pack(name: str, **fields: object) -> bytes:
    """Return a message in an `Any`, as Flight SQL's commands and most bodies of actions are."""
    wrapped = AnyMessage(type_url=f"{_URL}{SQL}.{name}", value=encode(name, **fields))
    return wrapped.SerializeToString(deterministic=True)


def unpack(raw: bytes) -> tuple[str, bytes] | None:
    """Return the name of Flight SQL's message in an `Any`, and its bytes; None for what is no
    `Any`, or holds something else."""
    if raw[:1] not in _FIRST_BYTES:
        return None  # a ticket, which may be long, or JSON
    try:
        wrapped = AnyMessage.FromString(raw)
    except DecodeError:
        return None
    # only what follows the last slash names the type
    package, _, name = wrapped.type_url.rpartition("/")[2].rpartition(".")
    return (name, wrapped.value) if package == SQL else None


def unpack_body(name: str, raw: bytes) -> Fields:
    """Return the message `name` out of an action's body. Raises `BadCommand` where it isn't
    that."""
    found = unpack(raw)
    if found is None or found[0] != name:
        what = "none of Flight SQL's messages" if found is None else quoted(found[0])
        raise BadCommand(f"the action's body is {what}; it takes a {name}")
    return decode(name, found[1])
