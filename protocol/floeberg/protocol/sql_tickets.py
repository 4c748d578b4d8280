"""SQL tickets: a statement over inputs that other tickets name, sealed for the wire.

A worker redeems one as it redeems a ticket of a scan: it runs the statement over the rows of the
inputs and sends what comes out. An input is read from its endpoints, each of which is a ticket, of
a scan or of SQL again, and where to redeem it. The tickets within stay sealed, as their coordinator
has made them. The bytes:

    magic, 3 bytes: "flq" | version, 1 byte: 1 | length of the key id, 1 byte | key id
    nonce, 24 bytes | ciphertext of: head | parts | tag, 16 bytes

The head is that of `ticket_heads`. Each part is its length, 4 bytes, and so many bytes: first a
description in JSON; then the Arrow schema of the answer, as an IPC message; and then for each input
its Arrow schema, the tickets of its endpoints, as many as the description says, and its own rows,
if it has some.

There is no resume place: the rows of a statement have no order that a second run would repeat.
"""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from floeberg.protocol.bodies import dump_json
from floeberg.protocol.errors import BadTicket, ExpiredTicket, PlanTooLarge
from floeberg.protocol.plans import DEFAULT_BATCH_BYTES
from floeberg.protocol.sealing import (
    NONCE_BYTES,
    SQL_TICKET,
    Keyring,
    message_header,
    split_header,
)
from floeberg.protocol.ticket_heads import (
    NO_LIMITS,
    NO_ORIGIN,
    Origin,
    StreamLimits,
    TicketHead,
    decode_head,
    encode_head,
)
from floeberg.protocol.tickets import MAX_TICKET_BYTES

MAGIC = b"flq"
VERSION = 1
MAX_SQL_CHARACTERS = 1 << 20
MAX_INPUTS = 256
MAX_ENDPOINTS = 4096
"""Of all inputs together."""
MAX_LOCATIONS = 64
MAX_LOCATION_CHARACTERS = 1024

_LENGTH = struct.Struct(">I")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_TIMEZONE = re.compile(r"[A-Za-z0-9_+/-]{1,64}")
_BATCH_BYTES = range(1 << 10, (64 << 20) + 1)
_UNDECODABLE = (
    *(struct.error, KeyError, TypeError, ValueError, AttributeError, RecursionError),
    OverflowError,
    pa.ArrowException,
    OSError,  # what pyarrow raises for bytes that are no message
)


@dataclass(frozen=True, slots=True)
class SqlSettings:
    """How a statement is run. `timezone` is the one that timestamps with a zone are shown and
    truncated in; `batch_bytes` bounds the batches of the answer."""

    timezone: str = "UTC"
    batch_bytes: int = DEFAULT_BATCH_BYTES


@dataclass(frozen=True, slots=True)
class InputEndpoint:
    """A sealed ticket, and where it may be redeemed, first choice first: Flight URIs."""

    ticket: bytes
    locations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SqlInput:
    """Rows that a statement reads under `name`: those of all its endpoints, each stream of exactly
    `schema`, and those that it has in itself, as `encode_rows` gives them."""

    name: str
    schema: pa.Schema
    endpoints: tuple[InputEndpoint, ...] = ()
    rows: bytes = b""


@dataclass(frozen=True, slots=True)
class SqlTicket:
    """A statement, what it reads, and the schema that its rows are told to have.

    Without a text in `sql`, the answer is the rows that the inputs have in themselves. `principal`
    is who asked for it, None for nobody who is known; where it `is_bound`, nobody else may redeem
    it. One that `is_part` of a query is an input of another statement, which waits for it, and
    waits for no statement itself. No schema has a dictionary.
    """

    sql: str
    schema: pa.Schema
    inputs: tuple[SqlInput, ...]
    principal: str | None
    expires_at_ms: int
    settings: SqlSettings = SqlSettings()
    origin: Origin = NO_ORIGIN
    is_bound: bool = False
    limits: StreamLimits = NO_LIMITS
    is_part: bool = False


def encode_rows(table: pa.Table) -> bytes:
    """Return rows that an input has in itself: a compressed IPC stream."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def decode_rows(raw: bytes) -> Iterator[pa.RecordBatch]:
    """Yield the rows that an input has in itself."""
    with pa.ipc.open_stream(raw) as reader:
        yield from reader


def is_sql_ticket(raw: bytes) -> bool:
    """Say whether these bytes, if they are a ticket at all, are one of SQL."""
    return raw[: len(MAGIC)] == MAGIC


def seal_sql_ticket(
    ticket: SqlTicket, keyring: Keyring, random: Callable[[int], bytes] = os.urandom
) -> bytes:
    """Return `ticket` sealed with the active key.

    Raises `PlanTooLarge` for one that would not be read: too long, or of too many parts.
    """
    endpoints = sum(len(one.endpoints) for one in ticket.inputs)
    if len(ticket.sql) > MAX_SQL_CHARACTERS:
        raise PlanTooLarge(
            f"a statement of {len(ticket.sql)} characters is too long: {MAX_SQL_CHARACTERS} are"
            " read",
            "the values of its parameters count, wherever they stand: join with a table rather than"
            " send so much",
        )
    if len(ticket.inputs) > MAX_INPUTS or endpoints > MAX_ENDPOINTS:
        raise PlanTooLarge(
            f"a statement over {len(ticket.inputs)} inputs of {endpoints} endpoints is too large:"
            f" {MAX_INPUTS} inputs and {MAX_ENDPOINTS} endpoints are read"
        )
    head = TicketHead(
        ticket.principal, ticket.expires_at_ms, ticket.is_bound, ticket.origin, ticket.limits
    )
    header = MAGIC + message_header(keyring.active, VERSION)
    content = encode_head(head) + encode_body(ticket)
    raw = header + keyring.active.seal(SQL_TICKET, content, header, random(NONCE_BYTES))
    if len(raw) > MAX_TICKET_BYTES:
        raise PlanTooLarge(
            f"a ticket of {len(raw)} bytes is too large: {MAX_TICKET_BYTES} are read"
        )
    return raw


def open_sql_ticket(raw: bytes, keyring: Keyring, *, now_ms: int) -> SqlTicket:
    """Return what a ticket says, if a key of the ring has sealed it; what it names stays sealed.

    Raises `ExpiredTicket`, and `BadTicket` for a bit that is not as it was sealed. Whether the
    caller is the principal is for the caller's service to check.
    """
    if len(raw) > MAX_TICKET_BYTES:
        raise BadTicket(f"ticket of {len(raw)} bytes; at most {MAX_TICKET_BYTES} are read")
    if not is_sql_ticket(raw):
        raise BadTicket("these bytes are not a ticket of floeberg")
    if len(raw) > len(MAGIC) and raw[len(MAGIC)] != VERSION:
        raise BadTicket(
            f"SQL ticket of version {raw[len(MAGIC)]}; this version of floeberg reads {VERSION}"
        )
    split = split_header(raw[len(MAGIC) :], VERSION)
    if split is None:
        raise BadTicket("ticket that was damaged: its key has no valid id")
    key_id, rest = split
    key = keyring.find(key_id)
    if key is None:
        raise BadTicket(f"ticket sealed with key {key_id!r}, which this process does not have")
    header = MAGIC + rest
    content = key.open(SQL_TICKET, raw[len(header) :], header)
    if content is None:
        raise BadTicket("ticket that was damaged, or sealed with another key")
    head, body = decode_head(content)
    if now_ms >= head.expires_at_ms:
        raise ExpiredTicket((now_ms - head.expires_at_ms) // 1000)
    try:
        parts = decode_body(body)
    except _UNDECODABLE as exc:
        raise BadTicket(f"ticket sealed by another version of floeberg: {exc}") from exc
    return SqlTicket(
        parts.sql,
        parts.schema,
        parts.inputs,
        head.principal,
        head.expires_at_ms,
        parts.settings,
        head.origin,
        head.bound,
        head.limits,
        parts.is_part,
    )


# --- what is sealed ------------------------------------------------------------------------------


class Body(NamedTuple):
    """A ticket without its head."""

    sql: str
    schema: pa.Schema
    inputs: tuple[SqlInput, ...]
    settings: SqlSettings
    is_part: bool


def encode_body(ticket: SqlTicket) -> bytes:
    """Return the parts of `ticket`."""
    description = {
        "sql": ticket.sql,
        "timezone": ticket.settings.timezone,
        "batch_bytes": ticket.settings.batch_bytes,
        "part": ticket.is_part,
        "inputs": [
            {
                "name": one.name,
                "endpoints": [list(e.locations) for e in one.endpoints],
                "rows": bool(one.rows),
            }
            for one in ticket.inputs
        ],
    }
    parts = [dump_json(description), ticket.schema.serialize().to_pybytes()]
    for one in ticket.inputs:
        parts.append(one.schema.serialize().to_pybytes())
        parts += [endpoint.ticket for endpoint in one.endpoints]
        if one.rows:
            parts.append(one.rows)
    return b"".join(piece for part in parts for piece in (_LENGTH.pack(len(part)), part))


def decode_body(raw: bytes) -> Body:
    """Return what `encode_body` wrote; raise one of several exceptions for anything else."""
    parts = _parts(raw)
    described = json.loads(_next(parts))
    if set(described) != {"sql", "timezone", "batch_bytes", "part", "inputs"}:
        raise ValueError("it says more, or less, than this version knows")
    sql, timezone = _text(described["sql"], MAX_SQL_CHARACTERS), described["timezone"]
    batch_bytes, listed = described["batch_bytes"], described["inputs"]
    if _TIMEZONE.fullmatch(timezone) is None:
        raise ValueError("a timezone that is no name")
    if not isinstance(batch_bytes, int) or batch_bytes not in _BATCH_BYTES:
        raise ValueError("batches of no valid size")
    if len(listed) > MAX_INPUTS or sum(len(one["endpoints"]) for one in listed) > MAX_ENDPOINTS:
        raise ValueError("too many inputs")
    schema = _schema(_next(parts))
    inputs = tuple(
        SqlInput(
            _name(one["name"]),
            _schema(_next(parts)),
            tuple(InputEndpoint(_next(parts), _locations(at)) for at in one["endpoints"]),
            _next(parts) if one["rows"] else b"",
        )
        for one in listed
    )
    if len({one.name for one in inputs}) != len(inputs):
        raise ValueError("two inputs of one name")
    if next(parts, None) is not None:
        raise ValueError("more parts than it says")
    return Body(sql, schema, inputs, SqlSettings(timezone, batch_bytes), described["part"] is True)


def _parts(raw: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(raw):
        (size,) = _LENGTH.unpack_from(raw, at)
        at += _LENGTH.size
        if at + size > len(raw):
            raise ValueError("a part is cut short")
        yield raw[at : at + size]
        at += size


def _next(parts: Iterator[bytes]) -> bytes:
    for part in parts:
        return part
    raise ValueError("fewer parts than it says")


def _text(value: object, most: int) -> str:
    if not isinstance(value, str) or len(value) > most:
        raise ValueError("what should be text is none, or too long")
    return value


def _name(value: str) -> str:
    if _NAME.fullmatch(value) is None:
        raise ValueError("an input without a valid name")
    return value


def _locations(listed: object) -> tuple[str, ...]:
    if not isinstance(listed, list) or len(listed) > MAX_LOCATIONS:
        raise ValueError("locations that are no list, or too many")
    return tuple(_text(location, MAX_LOCATION_CHARACTERS) for location in listed)


def _schema(raw: bytes) -> pa.Schema:
    schema = pa.ipc.read_schema(pa.py_buffer(raw))
    if any(_has_dictionary(field.type) for field in schema):
        raise ValueError("a schema with a dictionary")
    return schema


def _has_dictionary(type_: Any) -> bool:
    if isinstance(type_, pa.BaseExtensionType):
        return _has_dictionary(type_.storage_type)
    if pa.types.is_dictionary(type_):
        return True
    return any(_has_dictionary(type_.field(at).type) for at in range(type_.num_fields))
