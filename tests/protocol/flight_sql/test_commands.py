from __future__ import annotations

import pytest

from floeberg.protocol.errors import BadCommand
from floeberg.protocol.flight_sql import (
    GetCatalogs,
    GetDbSchemas,
    GetForeignKeys,
    GetPrimaryKeys,
    GetSqlInfo,
    GetTables,
    GetTableTypes,
    GetXdbcTypeInfo,
    OtherCommand,
    PreparedQuery,
    SqlCommand,
    StatementQuery,
    decode_command,
)
from floeberg.protocol.flight_sql.wire import SQL, pack


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (pack("CommandGetSqlInfo", info=[0, 8]), GetSqlInfo((0, 8))),
        (pack("CommandGetXdbcTypeInfo"), GetXdbcTypeInfo(None)),
        (pack("CommandGetXdbcTypeInfo", data_type=0), GetXdbcTypeInfo(0)),
        (pack("CommandGetCatalogs"), GetCatalogs()),
        (pack("CommandGetDbSchemas"), GetDbSchemas(None, None)),
        # what is empty was said, and is another thing than nothing
        (
            pack("CommandGetDbSchemas", catalog="", db_schema_filter_pattern="a%"),
            GetDbSchemas("", "a%"),
        ),
        (pack("CommandGetTables"), GetTables()),
        (
            pack(
                "CommandGetTables",
                catalog="lake",
                db_schema_filter_pattern="db",
                table_name_filter_pattern="o_",
                table_types=["table", "view"],
                include_schema=True,
            ),
            GetTables("lake", "db", "o_", ("table", "view"), with_schema=True),
        ),
        (pack("CommandGetTableTypes"), GetTableTypes()),
        (pack("CommandGetPrimaryKeys", table="t"), GetPrimaryKeys()),
        (pack("CommandGetExportedKeys", table="t"), GetForeignKeys()),
        (pack("CommandGetImportedKeys", table="t"), GetForeignKeys()),
        (pack("CommandGetCrossReference", pk_table="t", fk_table="u"), GetForeignKeys()),
        (pack("CommandStatementQuery", query="SELECT 1"), StatementQuery("SELECT 1")),
        (
            pack("CommandStatementQuery", query="SELECT 1", transaction_id=b""),
            StatementQuery("SELECT 1", b""),
        ),
        (
            pack("CommandPreparedStatementQuery", prepared_statement_handle=b"h"),
            PreparedQuery(b"h"),
        ),
    ],
)
def test_each_command_is_read(raw: bytes, expected: SqlCommand):
    assert decode_command(raw) == expected


def test_a_command_that_is_not_served_is_known_by_its_name():
    url = f"type.googleapis.com/{SQL}.CommandStatementIngest".encode()

    assert decode_command(b"\x0a" + bytes([len(url)]) + url) == OtherCommand(
        "CommandStatementIngest"
    )


def test_a_damaged_command_is_refused_by_its_name():
    url = f"type.googleapis.com/{SQL}.CommandGetTables".encode()
    raw = b"\x0a" + bytes([len(url)]) + url + b"\x12\x02\x0a\x09"

    with pytest.raises(BadCommand, match="CommandGetTables is damaged"):
        decode_command(raw)


def test_what_is_none_of_flight_sqls_is_left_to_others():
    assert decode_command(b'{"table": "db.orders"}') is None


@pytest.mark.parametrize(
    "command",
    [StatementQuery("SELECT 1"), StatementQuery("", b"t"), PreparedQuery(b"handle")],
)
def test_a_query_that_is_sent_is_read(command: StatementQuery | PreparedQuery):
    assert decode_command(command.encode()) == command
