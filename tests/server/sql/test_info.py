from __future__ import annotations

import pyarrow as pa
import pytest

from floeberg.protocol.flight_sql.codes import SqlInfo
from floeberg.server.sql.info import SQL_INFO, sql_info

MEMBERS = {name: n for n, (name) in enumerate(f.name for f in SQL_INFO.field("value").type)}


def told(*codes: int) -> dict[int, object]:
    table = sql_info(codes)
    table.validate(full=True)
    names, values = table["info_name"].to_pylist(), table["value"].to_pylist()
    return dict(zip(names, values, strict=True))


def test_everything_is_told_where_nothing_is_asked_for():
    table = sql_info(())

    assert table.schema == SQL_INFO
    assert table["info_name"].to_pylist() == [int(code) for code in SqlInfo]


def test_what_is_unknown_has_no_row():
    assert list(told(8, 77, 10_500)) == [8]


@pytest.mark.parametrize(
    ("code", "value", "member"),
    [
        (SqlInfo.FLIGHT_SQL_SERVER_NAME, "floeberg", "string_value"),
        (SqlInfo.FLIGHT_SQL_SERVER_READ_ONLY, True, "bool_value"),
        # drivers take it for transactions where it has another type
        (SqlInfo.FLIGHT_SQL_SERVER_TRANSACTION, 0, "int32_bitmask"),
        (SqlInfo.SQL_SUPPORTED_SUBQUERIES, 0b1111, "int32_bitmask"),
        (SqlInfo.SQL_MAX_STATEMENT_LENGTH, 0, "bigint_value"),
        (SqlInfo.SQL_DB_SCHEMA_NAME_LENGTH, 0, "bigint_value"),
        (SqlInfo.SQL_SYSTEM_FUNCTIONS, ["COALESCE", "IFNULL", "NULLIF"], "string_list"),
        (SqlInfo.SQL_SUPPORTS_CONVERT, [], "int32_to_int32_list_map"),
        (SqlInfo.SQL_SEARCH_STRING_ESCAPE, "\\", "string_value"),
        (SqlInfo.SQL_BATCH_UPDATES_SUPPORTED, False, "bool_value"),
        (SqlInfo.SQL_NAMED_PARAMETERS_SUPPORTED, False, "bool_value"),
    ],
)
def test_a_fact_has_its_type(code: SqlInfo, value: object, member: str):
    table = sql_info([code])

    union = table["value"].combine_chunks()
    if isinstance(union, pa.ChunkedArray):
        union = union.chunk(0)
    assert table["value"].to_pylist() == [value]
    assert union.type_codes.to_pylist() == [MEMBERS[member]]


def test_that_queries_are_served_is_told():
    assert told(4) == {4: True}
