from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from floeberg.protocol.errors import BadHandle, BadRequest, Unsupported
from floeberg.protocol.flight_sql import OtherCommand, PreparedQuery, StatementQuery
from floeberg.protocol.flight_sql.actions import PrepareRequest
from floeberg.protocol.sealing import Keyring
from floeberg.server.access import Caller, Callers
from floeberg.server.catalogs import Catalogs, WarehouseCatalog
from floeberg.server.sql.handles import MAX_SQL_BYTES
from floeberg.server.sql.service import SqlService
from floeberg.server.sql.sessions import SessionOptions

KEYS = Keyring.generate()
SERVICE = SqlService(KEYS)
SESSION = SessionOptions()


@pytest.fixture
def caller(tmp_path: Path) -> Caller:
    return Callers(Catalogs([WarehouseCatalog("lake", str(tmp_path))])).of(None)


def test_queries_are_refused_in_plain_words_where_nothing_answers_them(caller: Caller):
    for call in (
        lambda: SERVICE.schema(StatementQuery("SELECT 1"), SESSION, caller),
        lambda: SERVICE.info(StatementQuery("SELECT 1"), SESSION, caller, lambda: False),
        lambda: SERVICE.prepare(PrepareRequest("SELECT 1"), SESSION, caller),
    ):
        with pytest.raises(Unsupported, match="SQL queries are not served by this version"):
            call()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("CommandStatementUpdate", "never written"),
        ("CommandPreparedStatementUpdate", "never written"),
        ("CommandStatementIngest", "never written"),
        ("CommandStatementSubstraitPlan", "is not served"),
        ("CommandOfTomorrow", "is not served"),
    ],
)
def test_other_commands_are_named(name: str, why: str, caller: Caller):
    with pytest.raises(Unsupported, match=why) as raised:
        SERVICE.schema(OtherCommand(name), SESSION, caller)
    assert name in str(raised.value)


def test_what_no_statement_can_be_is_refused_first(caller: Caller):
    for command, error in (
        (StatementQuery("SELECT 1", b"1"), Unsupported),
        (StatementQuery("x" * (MAX_SQL_BYTES + 1)), BadRequest),
        (PreparedQuery(b"made up"), BadHandle),
    ):
        with pytest.raises(error) as raised:
            SERVICE.schema(command, SESSION, caller)
        assert "SQL queries are not served" not in str(raised.value)


def test_only_a_handle_can_be_bound_or_closed():
    with pytest.raises(BadHandle):
        SERVICE.bind(b"made up", pa.table({"0": [1]}))
    with pytest.raises(BadHandle):
        SERVICE.close(b"made up")
