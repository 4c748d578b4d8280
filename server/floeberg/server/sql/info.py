"""What CommandGetSqlInfo tells of this server and its SQL, which is DuckDB's dialect.

Every fact of the specification is answered, also those of which there is little to say: JDBC's
driver fails on one that is missing.

Spec: `FlightSql.proto`, CommandGetSqlInfo and the enum SqlInfo.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import pyarrow as pa

from floeberg.process.version import floeberg_version
from floeberg.protocol.flight_sql.codes import (
    SqlInfo,
    SqlNullOrdering,
    SqlOuterJoinsSupportLevel,
    SqlSupportedCaseSensitivity,
    SqlSupportedTransaction,
)
from floeberg.server.sql.like import ESCAPE


class _Long(int):
    """A number of the member `bigint_value`; any other is an `int32_bitmask`, whatever it says."""


_Value: TypeAlias = str | bool | int | list[str] | dict[int, list[int]]

_STRINGS = pa.list_(pa.field("item", pa.string()))
_CONVERSIONS = pa.map_(pa.int32(), pa.list_(pa.field("item", pa.int32())))

# their order is their number
_MEMBERS: tuple[tuple[str, pa.DataType], ...] = (
    ("string_value", pa.string()),
    ("bool_value", pa.bool_()),
    ("bigint_value", pa.int64()),
    ("int32_bitmask", pa.int32()),
    ("string_list", _STRINGS),
    ("int32_to_int32_list_map", _CONVERSIONS),
)

SQL_INFO = pa.schema(
    [
        pa.field("info_name", pa.uint32(), nullable=False),
        pa.field(
            "value",
            pa.dense_union([pa.field(name, type_) for name, type_ in _MEMBERS]),
            nullable=False,
        ),
    ]
)

_KEYWORDS = (
    "ANTI ASOF AT COLUMNS DESCRIBE EXCLUDE EXPLAIN FILTER GLOB ILIKE LIMIT OFFSET PIVOT POSITIONAL"
    " QUALIFY REPLACE RETURNING SAMPLE SEMI SHOW STRUCT SUMMARIZE TABLESAMPLE UNPIVOT WINDOW"
)
_NUMERIC = (
    "ABS ACOS ASIN ATAN ATAN2 CEIL CEILING COS COT DEGREES EXP FLOOR GREATEST LEAST LN LOG LOG10"
    " LOG2 MOD PI POW POWER RADIANS ROUND SIGN SIN SQRT TAN TRUNC"
)
_STRING = (
    "ASCII CHR CONCAT CONCAT_WS CONTAINS ENDS_WITH LEFT LENGTH LOWER LPAD LTRIM POSITION"
    " REGEXP_EXTRACT REGEXP_MATCHES REGEXP_REPLACE REPEAT REPLACE REVERSE RIGHT RPAD RTRIM"
    " SPLIT_PART STARTS_WITH STRPOS SUBSTR SUBSTRING TRIM UPPER"
)
_SYSTEM = "COALESCE IFNULL NULLIF"
_DATETIME = (
    "AGE CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP DATE_ADD DATE_DIFF DATE_PART DATE_SUB"
    " DATE_TRUNC DAY DAYNAME DAYOFWEEK DAYOFYEAR EPOCH EXTRACT HOUR LAST_DAY MAKE_DATE"
    " MAKE_TIMESTAMP MINUTE MONTH MONTHNAME NOW QUARTER SECOND STRFTIME STRPTIME WEEK YEAR"
)


def sql_info(codes: Iterable[int]) -> pa.Table:
    """Return the facts with these codes, all for none.

    A code that isn't known has no row.
    """
    wanted = set(codes)
    facts = {
        int(code): value for code, value in _facts().items() if not wanted or int(code) in wanted
    }
    names = pa.array(facts.keys(), pa.uint32())
    return pa.Table.from_arrays([names, _union(list(facts.values()))], schema=SQL_INFO)


def _union(values: list[_Value]) -> pa.Array[Any]:
    numbers = [_member(value) for value in values]
    held: list[list[object]] = [[] for _ in _MEMBERS]
    offsets = []
    for number, value in zip(numbers, values, strict=True):
        offsets.append(len(held[number]))
        held[number].append(list(value.items()) if isinstance(value, dict) else value)
    arrays: list[pa.Array[Any]] = [
        pa.array(column, type_) for column, (_, type_) in zip(held, _MEMBERS, strict=True)
    ]
    return pa.UnionArray.from_dense(
        pa.array(numbers, pa.int8()),
        pa.array(offsets, pa.int32()),
        arrays,
        [name for name, _ in _MEMBERS],
    )


def _member(value: _Value) -> int:
    match value:
        case str():
            return 0
        case bool():
            return 1
        case _Long():
            return 2
        case int():
            return 3
        case list():
            return 4
        case dict():
            return 5


def _words(text: str) -> list[str]:
    return text.split()


def _bits(*numbers: int) -> int:
    return sum(1 << number for number in numbers)


def _facts() -> dict[SqlInfo, _Value]:
    known: dict[SqlInfo, _Value] = {
        SqlInfo.FLIGHT_SQL_SERVER_NAME: "floeberg",
        SqlInfo.FLIGHT_SQL_SERVER_VERSION: floeberg_version(),
        SqlInfo.FLIGHT_SQL_SERVER_ARROW_VERSION: pa.__version__,
        SqlInfo.FLIGHT_SQL_SERVER_READ_ONLY: True,
        SqlInfo.FLIGHT_SQL_SERVER_SQL: True,
        SqlInfo.FLIGHT_SQL_SERVER_TRANSACTION: int(
            SqlSupportedTransaction.SQL_SUPPORTED_TRANSACTION_NONE
        ),
        # handles have no end
        SqlInfo.FLIGHT_SQL_SERVER_STATEMENT_TIMEOUT: 0,
        SqlInfo.FLIGHT_SQL_SERVER_TRANSACTION_TIMEOUT: 0,
        SqlInfo.SQL_IDENTIFIER_CASE: int(
            SqlSupportedCaseSensitivity.SQL_CASE_SENSITIVITY_CASE_INSENSITIVE
        ),
        SqlInfo.SQL_IDENTIFIER_QUOTE_CHAR: '"',
        SqlInfo.SQL_QUOTED_IDENTIFIER_CASE: int(
            SqlSupportedCaseSensitivity.SQL_CASE_SENSITIVITY_CASE_INSENSITIVE
        ),
        SqlInfo.SQL_ALL_TABLES_ARE_SELECTABLE: True,
        SqlInfo.SQL_NULL_ORDERING: int(SqlNullOrdering.SQL_NULLS_SORTED_AT_END),
        SqlInfo.SQL_KEYWORDS: _words(_KEYWORDS),
        SqlInfo.SQL_NUMERIC_FUNCTIONS: _words(_NUMERIC),
        SqlInfo.SQL_STRING_FUNCTIONS: _words(_STRING),
        SqlInfo.SQL_SYSTEM_FUNCTIONS: _words(_SYSTEM),
        SqlInfo.SQL_DATETIME_FUNCTIONS: _words(_DATETIME),
        SqlInfo.SQL_SEARCH_STRING_ESCAPE: ESCAPE,
        SqlInfo.SQL_EXTRA_NAME_CHARACTERS: "",
        SqlInfo.SQL_SUPPORTS_COLUMN_ALIASING: True,
        SqlInfo.SQL_NULL_PLUS_NULL_IS_NULL: True,
        SqlInfo.SQL_SUPPORTS_CONVERT: {},
        SqlInfo.SQL_SUPPORTS_TABLE_CORRELATION_NAMES: True,
        SqlInfo.SQL_SUPPORTS_DIFFERENT_TABLE_CORRELATION_NAMES: False,
        SqlInfo.SQL_SUPPORTS_EXPRESSIONS_IN_ORDER_BY: True,
        SqlInfo.SQL_SUPPORTS_ORDER_BY_UNRELATED: True,
        # by columns that aren't selected, and by more than those that are
        SqlInfo.SQL_SUPPORTED_GROUP_BY: _bits(0, 1),
        SqlInfo.SQL_SUPPORTS_LIKE_ESCAPE_CLAUSE: True,
        SqlInfo.SQL_SUPPORTS_NON_NULLABLE_COLUMNS: True,
        # minimum and core grammar; entry level
        SqlInfo.SQL_SUPPORTED_GRAMMAR: _bits(0, 1),
        SqlInfo.SQL_ANSI92_SUPPORTED_LEVEL: _bits(0),
        SqlInfo.SQL_OUTER_JOINS_SUPPORT_LEVEL: int(SqlOuterJoinsSupportLevel.SQL_FULL_OUTER_JOINS),
        SqlInfo.SQL_SCHEMA_TERM: "schema",
        SqlInfo.SQL_PROCEDURE_TERM: "procedure",
        SqlInfo.SQL_CATALOG_TERM: "catalog",
        SqlInfo.SQL_CATALOG_AT_START: True,
        SqlInfo.SQL_SCHEMAS_SUPPORTED_ACTIONS: 0,
        SqlInfo.SQL_CATALOGS_SUPPORTED_ACTIONS: 0,
        SqlInfo.SQL_SUPPORTED_POSITIONED_COMMANDS: 0,
        # in comparisons, with EXISTS, IN and quantifiers
        SqlInfo.SQL_SUPPORTED_SUBQUERIES: _bits(0, 1, 2, 3),
        SqlInfo.SQL_CORRELATED_SUBQUERIES_SUPPORTED: True,
        SqlInfo.SQL_SUPPORTED_UNIONS: _bits(0, 1),
        SqlInfo.SQL_MAX_ROW_SIZE_INCLUDES_BLOBS: True,
        # a statement reads one snapshot of each table, and there are no transactions
        SqlInfo.SQL_DEFAULT_TRANSACTION_ISOLATION: 0,
        SqlInfo.SQL_SUPPORTED_TRANSACTIONS_ISOLATION_LEVELS: _bits(0),
        # forward only, and read only
        SqlInfo.SQL_SUPPORTED_RESULT_SET_TYPES: _bits(1),
        SqlInfo.SQL_SUPPORTED_CONCURRENCIES_FOR_RESULT_SET_UNSPECIFIED: 0,
        SqlInfo.SQL_SUPPORTED_CONCURRENCIES_FOR_RESULT_SET_FORWARD_ONLY: _bits(1),
        SqlInfo.SQL_SUPPORTED_CONCURRENCIES_FOR_RESULT_SET_SCROLL_SENSITIVE: 0,
        SqlInfo.SQL_SUPPORTED_CONCURRENCIES_FOR_RESULT_SET_SCROLL_INSENSITIVE: 0,
    }
    # the rest are lengths and numbers, 0 for no limit that is known, and things that aren't served
    return {
        code: known.get(code, _Long(0) if "_MAX_" in code.name or code in _LENGTHS else False)
        for code in SqlInfo
    }


_LENGTHS = (SqlInfo.SQL_DB_SCHEMA_NAME_LENGTH,)
