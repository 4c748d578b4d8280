from __future__ import annotations

from pathlib import Path
from unittest.mock import create_autospec

import pyarrow as pa
import pytest

from floeberg.protocol.errors import BadHandle, BadRequest, Unsupported
from floeberg.protocol.flight_sql import OtherCommand, PreparedQuery, StatementQuery
from floeberg.protocol.sealing import Keyring
from floeberg.server.access import Caller, Callers
from floeberg.server.catalogs import Catalogs, WarehouseCatalog
from floeberg.server.sql.handles import MAX_SQL_BYTES
from floeberg.server.sql.service import SqlService, Statements
from floeberg.server.sql.sessions import SessionOptions

KEYS = Keyring.generate()
SERVICE = SqlService(KEYS, create_autospec(Statements))
SESSION = SessionOptions()


@pytest.fixture
def caller(tmp_path: Path) -> Caller:
    return Callers(Catalogs([WarehouseCatalog("lake", str(tmp_path))])).of(None)


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
        with pytest.raises(error):
            SERVICE.schema(command, SESSION, caller)


def test_only_a_handle_can_be_bound_or_closed():
    with pytest.raises(BadHandle):
        SERVICE.bind(b"made up", pa.table({"0": [1]}))
    with pytest.raises(BadHandle):
        SERVICE.close(b"made up")
