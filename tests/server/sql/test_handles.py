from __future__ import annotations

import pyarrow as pa
import pytest

from floeberg.protocol.errors import BadHandle, BadRequest
from floeberg.protocol.sealing import Keyring
from floeberg.server.sql.handles import (
    MAX_PARAMETER_BYTES,
    StatementText,
    open_handle,
    seal_handle,
)
from floeberg.server.sql.sessions import SessionOptions

KEYS = Keyring.generate()
ROW = pa.record_batch({"0": pa.array([5], pa.int32()), "1": pa.array([None], pa.string())})
STATEMENTS = [
    StatementText("SELECT 'ä\n💧'", SessionOptions()),
    StatementText("SELECT ?, ?", SessionOptions("lake", "db", ref="main"), ROW),
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_handle_is_the_whole_statement(statement: StatementText):
    opened = open_handle(seal_handle(statement, KEYS), KEYS)

    assert (opened.sql, opened.session) == (statement.sql, statement.session)
    assert opened.parameters == statement.parameters


def test_nothing_of_a_statement_can_be_read_in_its_handle():
    handle = seal_handle(StatementText("SELECT 'a secret'", SessionOptions()), KEYS)

    assert b"secret" not in handle


def test_no_other_bytes_are_a_handle():
    handle = seal_handle(STATEMENTS[1], KEYS)
    flipped = handle[:-20] + bytes([handle[-20] ^ 1]) + handle[-19:]

    for raw in (b"", b"made up", handle[:-1], handle + b"x", flipped):
        with pytest.raises(BadHandle, match="prepare the statement again"):
            open_handle(raw, KEYS)
    with pytest.raises(BadHandle, match="no longer used"):
        open_handle(handle, Keyring.generate())


def test_more_parameters_than_a_handle_may_hold_are_refused():
    much = pa.record_batch({"0": pa.array(["x" * MAX_PARAMETER_BYTES])})

    with pytest.raises(BadRequest, match="can be bound to a statement"):
        seal_handle(StatementText("SELECT ?", SessionOptions(), much), KEYS)
