"""The bodies and results of Flight SQL's actions, and of Flight's own about sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from floeberg.protocol.flight_sql.wire import Fields, decode, encode, message, pack, unpack_body

CREATE_PREPARED_STATEMENT = "CreatePreparedStatement"
CLOSE_PREPARED_STATEMENT = "ClosePreparedStatement"
SET_SESSION_OPTIONS = "SetSessionOptions"
GET_SESSION_OPTIONS = "GetSessionOptions"
CLOSE_SESSION = "CloseSession"
CANCEL_FLIGHT_INFO = "CancelFlightInfo"
CANCEL_QUERY = "CancelQuery"

SERVED_ACTIONS: tuple[tuple[str, str], ...] = (
    (CREATE_PREPARED_STATEMENT, "Prepare a statement: a handle, and the schema of its rows"),
    (CLOSE_PREPARED_STATEMENT, "Give up a prepared statement; nothing is kept of one"),
    (SET_SESSION_OPTIONS, "Set or erase options of the session"),
    (GET_SESSION_OPTIONS, "The session's options"),
    (CLOSE_SESSION, "End the session; nothing is kept of one"),
    (CANCEL_FLIGHT_INFO, "Answers that it can't: end the calls that read the query instead"),
    (CANCEL_QUERY, "The same, for older clients"),
)
"""The actions that are answered, and what they do."""

UNSERVED_ACTIONS = frozenset(
    {
        "BeginTransaction",
        "EndTransaction",
        "BeginSavepoint",
        "EndSavepoint",
        "CreatePreparedSubstraitPlan",
        "RenewFlightEndpoint",
    }
)
"""Others that Flight SQL has."""


# --- prepared statements -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PrepareRequest:
    """A statement to prepare. `transaction` is the id of a transaction, None for none."""

    sql: str
    transaction: bytes | None = None

    @classmethod
    def parse(cls, body: bytes) -> PrepareRequest:
        """Raises `BadCommand`."""
        fields = unpack_body("ActionCreatePreparedStatementRequest", body)
        transaction = fields.transaction_id if fields.HasField("transaction_id") else None
        return cls(fields.query, transaction)

    def encode(self) -> bytes:
        return pack(
            "ActionCreatePreparedStatementRequest",
            query=self.sql,
            transaction_id=self.transaction,
        )


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared query. Schemas are encapsulated IPC messages; `parameters` is that of a statement
    without any, where it has none."""

    handle: bytes
    rows: bytes
    parameters: bytes

    def encode(self) -> bytes:
        return pack(
            "ActionCreatePreparedStatementResult",
            prepared_statement_handle=self.handle,
            dataset_schema=self.rows,
            parameter_schema=self.parameters,
            is_update=False,
        )

    @classmethod
    def parse(cls, result: bytes) -> Prepared:
        """Raises `BadCommand` for what is no such result."""
        fields = unpack_body("ActionCreatePreparedStatementResult", result)
        return cls(fields.prepared_statement_handle, fields.dataset_schema, fields.parameter_schema)


def handle_to_close(body: bytes) -> bytes:
    """Return the handle that ClosePreparedStatement names. Raises `BadCommand`."""
    fields = unpack_body("ActionClosePreparedStatementRequest", body)
    return bytes(fields.prepared_statement_handle)


def encode_bound(handle: bytes) -> bytes:
    """Return the app_metadata that a DoPut of parameters is answered with: the handle with
    them."""
    return encode("DoPutPreparedStatementResult", prepared_statement_handle=handle)


def parse_bound(app_metadata: bytes) -> bytes:
    """Return the handle that a DoPut of parameters was answered with. Raises `BadCommand`."""
    return bytes(decode("DoPutPreparedStatementResult", app_metadata).prepared_statement_handle)


# --- sessions ------------------------------------------------------------------------------------

OptionValue: TypeAlias = str | bool | int | float | tuple[str, ...]


class OptionError(IntEnum):
    """Why an option was not set."""

    INVALID_NAME = 1
    INVALID_VALUE = 2
    ERROR = 3


class CloseResult(IntEnum):
    CLOSED = 1


class CancelResult(IntEnum):
    """The same numbers for CancelFlightInfo and CancelQuery."""

    NOT_CANCELLABLE = 3


def options_to_set(body: bytes) -> dict[str, OptionValue | None]:
    """Return the options that SetSessionOptions sets, None for one that it erases. Raises
    `BadCommand`."""
    fields = decode("SetSessionOptionsRequest", body)
    return {name: _value(value) for name, value in sorted(fields.session_options.items())}


def encode_options_to_set(options: Mapping[str, OptionValue]) -> bytes:
    """Return the body of SetSessionOptions."""
    request = message("SetSessionOptionsRequest")
    for name, value in options.items():
        _fill(request.session_options[name], value)
    return bytes(request.SerializeToString(deterministic=True))


def parse_option_errors(result: bytes) -> dict[str, OptionError]:
    """Return why options were not set, as SetSessionOptions's result has it. Raises
    `BadCommand`."""
    errors = decode("SetSessionOptionsResult", result).errors
    known = {error.value for error in OptionError}
    return {
        name: OptionError(error.value) if error.value in known else OptionError.ERROR
        for name, error in sorted(errors.items())
    }


def encode_option_errors(errors: Mapping[str, OptionError]) -> bytes:
    """Return SetSessionOptions's result: the options that were not set."""
    result = message("SetSessionOptionsResult")
    for name, error in errors.items():
        result.errors[name].value = error
    return bytes(result.SerializeToString(deterministic=True))


def encode_options(options: Mapping[str, OptionValue]) -> bytes:
    """Return GetSessionOptions's result."""
    result = message("GetSessionOptionsResult")
    for name, value in options.items():
        _fill(result.session_options[name], value)
    return bytes(result.SerializeToString(deterministic=True))


def encode_closed() -> bytes:
    """Return CloseSession's result."""
    return encode("CloseSessionResult", status=CloseResult.CLOSED)


def _value(value: Fields) -> OptionValue | None:
    kind: str | None = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "string_list_value":
        return tuple(value.string_list_value.values)
    found: str | bool | int | float = getattr(value, kind)
    return found


def _fill(value: Fields, content: OptionValue) -> None:
    match content:
        case str():
            value.string_value = content
        case bool():
            value.bool_value = content
        case int():
            value.int64_value = content
        case float():
            value.double_value = content
        case tuple():
            # also where it is empty
            value.string_list_value.SetInParent()
            value.string_list_value.values.extend(content)


# --- cancelling ----------------------------------------------------------------------------------


def encode_not_cancellable(action: str) -> bytes:
    """Return what CancelFlightInfo or CancelQuery is answered with where nothing is cancelled."""
    if action == CANCEL_QUERY:
        return pack("ActionCancelQueryResult", result=CancelResult.NOT_CANCELLABLE)
    return encode("CancelFlightInfoResult", status=CancelResult.NOT_CANCELLABLE)
