"""Iceberg's types as SQL calls them: for columns in listings, and for CommandGetXdbcTypeInfo.

The names are DuckDB's, whose dialect queries are written in.

Spec: `FlightSql.proto`, CommandGetXdbcTypeInfo; JDBC's `DatabaseMetaData.getTypeInfo`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never

import pyarrow as pa

from floeberg.protocol.flight_sql.codes import (
    Nullable,
    Searchable,
    XdbcDataType,
    XdbcDatetimeSubcode,
)
from floeberg.protocol.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntType,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    TimeType,
    Type,
    UnknownType,
    UuidType,
    VariantType,
)

_COLUMNS: list[pa.Field[Any]] = [
    pa.field("type_name", pa.string(), nullable=False),
    pa.field("data_type", pa.int32(), nullable=False),
    pa.field("column_size", pa.int32()),
    pa.field("literal_prefix", pa.string()),
    pa.field("literal_suffix", pa.string()),
    pa.field("create_params", pa.list_(pa.field("item", pa.string(), nullable=False))),
    pa.field("nullable", pa.int32(), nullable=False),
    pa.field("case_sensitive", pa.bool_(), nullable=False),
    pa.field("searchable", pa.int32(), nullable=False),
    pa.field("unsigned_attribute", pa.bool_()),
    pa.field("fixed_prec_scale", pa.bool_(), nullable=False),
    pa.field("auto_increment", pa.bool_()),
    pa.field("local_type_name", pa.string()),
    pa.field("minimum_scale", pa.int32()),
    pa.field("maximum_scale", pa.int32()),
    pa.field("sql_data_type", pa.int32(), nullable=False),
    pa.field("datetime_subcode", pa.int32()),
    pa.field("num_prec_radix", pa.int32()),
    pa.field("interval_precision", pa.int32()),
]
XDBC_TYPE_INFO = pa.schema(_COLUMNS)


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type as XDBC tells of it. `size` is digits, or characters of a value as text; None for
    what has no bound. A literal is its text behind
    `prefix`, which holds an opening quote, and before a closing one."""

    name: str
    xdbc: XdbcDataType
    size: int | None = None
    prefix: str | None = None
    is_number: bool = False
    scales: tuple[int, int] | None = None
    subcode: XdbcDatetimeSubcode | None = None
    radix: int | None = None
    searchable: Searchable = Searchable.SEARCHABLE_BASIC
    create_params: tuple[str, ...] | None = None

    def row(self) -> dict[str, object]:
        return {
            "type_name": self.name,
            "data_type": self.xdbc,
            "column_size": self.size,
            "literal_prefix": self.prefix,
            "literal_suffix": None if self.prefix is None else "'",
            "create_params": self.create_params,
            "nullable": Nullable.NULLABILITY_NULLABLE,
            "case_sensitive": self.name == "VARCHAR",
            "searchable": self.searchable,
            "unsigned_attribute": False if self.is_number else None,
            "fixed_prec_scale": False,
            "auto_increment": False if self.is_number else None,
            "local_type_name": self.name,
            "minimum_scale": self.scales[0] if self.scales else None,
            "maximum_scale": self.scales[1] if self.scales else None,
            "sql_data_type": self.xdbc if self.subcode is None else XdbcDataType.XDBC_DATETIME,
            "datetime_subcode": self.subcode,
            "num_prec_radix": self.radix,
            "interval_precision": None,
        }


_X, _SUB = XdbcDataType, XdbcDatetimeSubcode
_WHOLE = (0, 0)

_BOOLEAN = SqlType("BOOLEAN", _X.XDBC_BIT, 1)
_INTEGER = SqlType("INTEGER", _X.XDBC_INTEGER, 10, is_number=True, scales=_WHOLE, radix=10)
_BIGINT = SqlType("BIGINT", _X.XDBC_BIGINT, 19, is_number=True, scales=_WHOLE, radix=10)
_REAL = SqlType("REAL", _X.XDBC_REAL, 24, is_number=True, radix=2)
_DOUBLE = SqlType("DOUBLE", _X.XDBC_DOUBLE, 53, is_number=True, radix=2)
_DECIMAL = SqlType(
    "DECIMAL",
    _X.XDBC_DECIMAL,
    38,
    is_number=True,
    scales=(0, 38),
    radix=10,
    create_params=("precision", "scale"),
)
_DATE = SqlType("DATE", _X.XDBC_DATE, 10, "DATE '", subcode=_SUB.XDBC_SUBCODE_DATE)
_TIME = SqlType("TIME", _X.XDBC_TIME, 15, "TIME '", scales=(6, 6), subcode=_SUB.XDBC_SUBCODE_TIME)
_TIMESTAMP = SqlType(
    "TIMESTAMP",
    _X.XDBC_TIMESTAMP,
    26,
    "TIMESTAMP '",
    scales=(6, 6),
    subcode=_SUB.XDBC_SUBCODE_TIMESTAMP,
)
_TIMESTAMP_NS = SqlType(
    "TIMESTAMP_NS",
    _X.XDBC_TIMESTAMP,
    29,
    "TIMESTAMP_NS '",
    scales=(9, 9),
    subcode=_SUB.XDBC_SUBCODE_TIMESTAMP,
)
# DuckDB has one type with a zone, and the nanoseconds of Iceberg's other stay what they are
_TIMESTAMPTZ = SqlType(
    "TIMESTAMP WITH TIME ZONE",
    _X.XDBC_TIMESTAMP,
    32,
    "TIMESTAMPTZ '",
    scales=(6, 9),
    subcode=_SUB.XDBC_SUBCODE_TIMESTAMP_WITH_TIMEZONE,
)
_VARCHAR = SqlType("VARCHAR", _X.XDBC_VARCHAR, None, "'", searchable=Searchable.SEARCHABLE_FULL)
_UUID = SqlType("UUID", _X.XDBC_BINARY, 36, "UUID '")
_BLOB = SqlType("BLOB", _X.XDBC_VARBINARY, None, "BLOB '")

_TYPES = sorted(
    (
        *(_BOOLEAN, _INTEGER, _BIGINT, _REAL, _DOUBLE, _DECIMAL, _DATE, _TIME, _TIMESTAMP),
        *(_TIMESTAMP_NS, _TIMESTAMPTZ, _VARCHAR, _UUID, _BLOB),
    ),
    # as JDBC has them, and the plainest of a number first
    key=lambda type_: (type_.xdbc, len(type_.name)),
)


def type_info(data_type: int | None) -> pa.Table:
    """Return the types of columns, or those with the number `data_type`."""
    rows = [t.row() for t in _TYPES if data_type in (None, t.xdbc)]
    return pa.Table.from_pylist(rows, schema=XDBC_TYPE_INFO)


def sql_type(type_: Type) -> SqlType | None:
    """Return the SQL type of a column, None for one that is nested or has no like in SQL."""
    match type_:
        case BooleanType():
            return _BOOLEAN
        case IntType():
            return _INTEGER
        case LongType():
            return _BIGINT
        case FloatType():
            return _REAL
        case DoubleType():
            return _DOUBLE
        case DecimalType():
            return _DECIMAL
        case DateType():
            return _DATE
        case TimeType():
            return _TIME
        case TimestampType(zoned, nanos):
            if zoned:
                return _TIMESTAMPTZ
            return _TIMESTAMP_NS if nanos else _TIMESTAMP
        case StringType():
            return _VARCHAR
        case UuidType():
            return _UUID
        case FixedType() | BinaryType() | GeometryType() | GeographyType():
            return _BLOB
        case UnknownType() | VariantType() | StructType() | ListType() | MapType():
            return None
        case _:
            assert_never(type_)


def sql_name(type_: Type, *, nested: bool = False) -> str:
    """Return the name of a column's type. A decimal's has its digits only within a nested type:
    of a column they are told beside it.

    >>> sql_name(ListType(1, DecimalType(9, 2)))
    'DECIMAL(9,2)[]'
    """
    match type_:
        case DecimalType(precision, scale) if nested:
            return f"DECIMAL({precision},{scale})"
        case StructType(fields):
            inside = ", ".join(
                f"{quoted_name(f.name)} {sql_name(f.type, nested=True)}" for f in fields
            )
            return f"STRUCT({inside})"
        case ListType():
            return f"{sql_name(type_.element, nested=True)}[]"
        case MapType():
            key, value = sql_name(type_.key, nested=True), sql_name(type_.value, nested=True)
            return f"MAP({key}, {value})"
        case UnknownType():
            return '"NULL"'
        case VariantType():
            return "VARIANT"
        case _:
            found = sql_type(type_)
            assert found is not None, "the others are named above"
            return found.name


def quoted_name(name: str) -> str:
    """Return a name as SQL has it, in quotes where it must be.

    >>> quoted_name("a"), quoted_name('a "b"')
    ('a', '"a ""b\"""')
    """
    plain = name.isascii() and name.isidentifier()
    return name if plain else '"' + name.replace('"', '""') + '"'
