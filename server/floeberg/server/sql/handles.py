"""A prepared statement's handle: the statement itself, sealed, with whatever was bound to it.

Nothing of a prepared statement is kept anywhere else, so every coordinator that has the key
executes it, at any time. A handle gives nobody a right: who executes it reads what they may read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from floeberg.protocol.bodies import dump_json
from floeberg.protocol.errors import BadHandle, BadRequest
from floeberg.protocol.sealing import Keyring, Purpose, open_message, seal_message
from floeberg.server.sql.sessions import SessionOptions

PREPARED = Purpose("prepared statement")
MAX_SQL_BYTES = 1 << 20
MAX_PARAMETER_BYTES = 4 << 20
"""A handle is sent with every execution."""


@dataclass(frozen=True, slots=True)
class StatementText:
    """A statement as it was sent, in its session. `parameters` is one row, a column a parameter;
    None where none are bound."""

    sql: str
    session: SessionOptions
    parameters: pa.RecordBatch | None = None


def seal_handle(
    statement: StatementText, keyring: Keyring, random: Callable[[int], bytes] = os.urandom
) -> bytes:
    head = dump_json({"sql": statement.sql, "session": statement.session.to_json()})
    bound = b"" if statement.parameters is None else _as_stream(statement.parameters)
    return seal_message(keyring, PREPARED, len(head).to_bytes(4, "big") + head + bound, random)


def open_handle(handle: bytes, keyring: Keyring) -> StatementText:
    """Return the statement of a handle. Raises `BadHandle`."""
    raw = open_message(keyring, PREPARED, handle)
    if raw is None:
        raise BadHandle(
            "the handle of the prepared statement was damaged, or sealed with a key that is no"
            " longer used: prepare the statement again"
        )
    stop = 4 + int.from_bytes(raw[:4], "big")
    head = json.loads(raw[4:stop])
    session = SessionOptions.from_json(head["session"])
    bound = pa.ipc.open_stream(raw[stop:]).read_next_batch() if raw[stop:] else None
    return StatementText(head["sql"], session, bound)


def _as_stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    if sink.tell() > MAX_PARAMETER_BYTES:
        raise BadRequest(
            f"the parameters take {sink.tell()} bytes, and at most {MAX_PARAMETER_BYTES} can be"
            " bound to a statement"
        )
    return sink.getvalue().to_pybytes()
