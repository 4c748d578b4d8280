from __future__ import annotations

import pytest

from floeberg.protocol.flight_sql.codes import XdbcDataType
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
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimeType,
    Type,
    UnknownType,
    UuidType,
    VariantType,
)
from floeberg.server.sql.types_info import XDBC_TYPE_INFO, sql_name, sql_type, type_info

NAMES: dict[Type, str] = {
    BooleanType(): "BOOLEAN",
    IntType(): "INTEGER",
    LongType(): "BIGINT",
    FloatType(): "REAL",
    DoubleType(): "DOUBLE",
    DecimalType(9, 2): "DECIMAL",
    DateType(): "DATE",
    TimeType(): "TIME",
    TimestampType(): "TIMESTAMP",
    TimestampType(nanos=True): "TIMESTAMP_NS",
    TimestampType(zoned=True): "TIMESTAMP WITH TIME ZONE",
    TimestampType(zoned=True, nanos=True): "TIMESTAMP WITH TIME ZONE",
    StringType(): "VARCHAR",
    UuidType(): "UUID",
    FixedType(4): "BLOB",
    BinaryType(): "BLOB",
    GeometryType(): "BLOB",
    GeographyType(): "BLOB",
}


@pytest.mark.parametrize("type_", NAMES, ids=str)
def test_every_plain_type_is_told_among_the_types(type_: Type):
    told = type_info(None).to_pylist()

    assert sql_name(type_) == NAMES[type_]
    known = sql_type(type_)
    assert known is not None
    assert [row["data_type"] for row in told if row["type_name"] == NAMES[type_]] == [known.xdbc]


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        (ListType(1, DecimalType(9, 2)), "DECIMAL(9,2)[]"),
        (MapType(1, StringType(), 2, ListType(3, IntType())), "MAP(VARCHAR, INTEGER[])"),
        (
            StructType(
                (NestedField(1, "a", LongType()), NestedField(2, 'b "c"', ListType(3, DateType())))
            ),
            'STRUCT(a BIGINT, "b ""c""" DATE[])',
        ),
        (UnknownType(), '"NULL"'),
        (VariantType(), "VARIANT"),
    ],
)
def test_other_types_have_a_name(type_: Type, name: str):
    assert sql_name(type_) == name
    assert sql_type(type_) is None


def test_types_are_told_in_the_order_of_their_numbers_and_by_number():
    every = type_info(None)

    assert every.schema == XDBC_TYPE_INFO
    assert every["data_type"].to_pylist() == sorted(every["data_type"].to_pylist())
    timestamps = type_info(XdbcDataType.XDBC_TIMESTAMP)
    assert len(timestamps) == 3
    assert set(timestamps["data_type"].to_pylist()) == {93}
    assert set(timestamps["sql_data_type"].to_pylist()) == {XdbcDataType.XDBC_DATETIME}
    assert type_info(4711).num_rows == 0
    for name in ("data_type", "searchable", "nullable"):
        assert every[name].null_count == 0
