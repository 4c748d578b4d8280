from __future__ import annotations

import json
import math
import struct
from decimal import Decimal

import pytest
from hypothesis import given

from floeberg.protocol import values
from floeberg.protocol.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
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
    Value,
    VariantType,
)
from tests.support.iceberg_values import nested_values, typed_values

UUID = bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7")

APPENDIX_D = [
    (BooleanType(), True, True),
    (IntType(), 34, 34),
    (LongType(), 34, 34),
    (FloatType(), 1.0, 1.0),
    (DoubleType(), 1.0, 1.0),
    (DecimalType(4, 2), Decimal("14.20"), "14.20"),
    (DecimalType(3, -20), Decimal("2E+20"), "2E+20"),
    (DateType(), 17486, "2017-11-16"),
    (TimeType(), 81068123456, "22:31:08.123456"),
    (TimestampType(), 1510871468123456, "2017-11-16T22:31:08.123456"),
    (TimestampType(zoned=True), 1510871468123456, "2017-11-16T22:31:08.123456+00:00"),
    (TimestampType(nanos=True), 1510871468123456789, "2017-11-16T22:31:08.123456789"),
    (
        TimestampType(zoned=True, nanos=True),
        1510871468123456789,
        "2017-11-16T22:31:08.123456789+00:00",
    ),
    (StringType(), "iceberg", "iceberg"),
    (UuidType(), UUID, "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    (FixedType(4), bytes.fromhex("000102ff"), "000102ff"),
    (BinaryType(), bytes.fromhex("000102ff"), "000102ff"),
    (
        StructType((NestedField(1, "a", IntType()), NestedField(2, "b", StringType()))),
        {1: 1, 2: "bar"},
        {"1": 1, "2": "bar"},
    ),
    (ListType(1, IntType()), [1, 2, 3], [1, 2, 3]),
    (
        MapType(1, StringType(), 2, IntType()),
        [("a", 1), ("b", 2)],
        {"keys": ["a", "b"], "values": [1, 2]},
    ),
]


def same(one: object, other: object) -> bool:
    """Equality that also tells zeros apart and takes NaN for itself, at any depth."""
    return repr(one) == repr(other)


@pytest.mark.parametrize(("type_", "value", "raw"), APPENDIX_D)
def test_the_examples_of_appendix_d_hold_both_ways(
    type_: Type, value: values.NestedValue, raw: object
):
    assert values.to_json(type_, value) == raw
    assert same(values.from_json(type_, raw), value)


@given(typed_values)
def test_every_primitive_value_round_trips_as_bytes(typed: tuple[Type, Value]):
    type_, value = typed

    assert same(values.from_bytes(type_, values.to_bytes(type_, value)), value)


@given(nested_values())
def test_every_value_round_trips_as_json_text(typed: tuple[Type, values.NestedValue]):
    type_, value = typed

    raw = json.loads(json.dumps(values.to_json(type_, value), allow_nan=False))

    assert same(values.from_json(type_, raw), value)


@pytest.mark.parametrize(
    ("type_", "value", "raw"),
    [
        (BooleanType(), False, "00"),
        (BooleanType(), True, "01"),
        (IntType(), -2, "feffffff"),
        (LongType(), 1, "0100000000000000"),
        (DateType(), -1, "ffffffff"),
        (FloatType(), 1.0, "0000803f"),
        (DoubleType(), -0.0, "0000000000000080"),
        (DecimalType(9, 2), Decimal("14.20"), "058c"),
        (DecimalType(9, 2), Decimal("-0.01"), "ff"),
        (DecimalType(9, 2), Decimal("1.28"), "0080"),
        (DecimalType(9, 2), Decimal("0.00"), "00"),
        (StringType(), "é", "c3a9"),
        (StringType(), "", ""),
        (UuidType(), UUID, UUID.hex()),
    ],
)
def test_bytes_are_laid_out_as_appendix_d_says(type_: Type, value: Value, raw: str):
    assert values.to_bytes(type_, value).hex() == raw
    assert same(values.from_bytes(type_, bytes.fromhex(raw)), value)


def test_any_byte_but_zero_is_true():
    assert values.from_bytes(BooleanType(), b"\x02") is True


@pytest.mark.parametrize(
    ("type_", "raw", "value"),
    [
        (LongType(), struct.pack("<i", -7), -7),
        (DoubleType(), struct.pack("<f", 1.5), 1.5),
        (DecimalType(30, 2), bytes.fromhex("058c"), Decimal("14.20")),
        (DecimalType(9, 2), bytes.fromhex("0000058c"), Decimal("14.20")),
        (TimestampType(), struct.pack("<i", -1), -86_400_000_000),
        (TimestampType(nanos=True), struct.pack("<i", 1), 86_400_000_000_000),
    ],
)
def test_bytes_from_before_a_promotion_are_read_by_their_length(
    type_: Type, raw: bytes, value: Value
):
    assert same(values.from_bytes(type_, raw), value)


@pytest.mark.parametrize(
    ("type_", "raw"),
    [
        (BooleanType(), b""),
        (IntType(), bytes(8)),
        (IntType(), bytes(3)),
        (LongType(), bytes(5)),
        (FloatType(), bytes(8)),
        (DoubleType(), b""),
        (DateType(), bytes(8)),
        (TimeType(), bytes(4)),
        (TimestampType(zoned=True), bytes(4)),
        (TimestampType(nanos=True), struct.pack("<i", 2**31 - 1)),
        (DecimalType(2, 0), b""),
        (DecimalType(2, 0), b"\x64"),
        (DecimalType(38, 0), bytes(100)),
        (StringType(), b"caf\xc3"),
        (UuidType(), bytes(15)),
        (FixedType(2), bytes(3)),
        (UnknownType(), b""),
        (VariantType(), b"\x00"),
        (ListType(1, IntType()), bytes(4)),
    ],
)
def test_bytes_that_are_no_value_are_refused(type_: Type, raw: bytes):
    with pytest.raises(ValueError, match=r"."):
        values.from_bytes(type_, raw)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (IntType(), 2**31),
        (IntType(), True),
        (LongType(), -(2**63) - 1),
        (BooleanType(), 1),
        (FloatType(), 1e39),
        (DoubleType(), 1),
        (DecimalType(3, 1), Decimal("100.0")),
        (DecimalType(3, 1), Decimal("1.05")),
        (DecimalType(3, 1), Decimal("NaN")),
        (DecimalType(3, 1), Decimal("1E+1000000")),
        (DecimalType(3, 1), Decimal("1E-1000000")),
        (StringType(), "\ud800"),
        (StringType(), b"x"),
        (UuidType(), bytes(15)),
        (FixedType(2), bytes(1)),
        (BinaryType(), "00"),
    ],
)
def test_values_that_the_type_does_not_hold_are_not_written(type_: Type, value: Value):
    with pytest.raises(ValueError, match=r"."):
        values.to_bytes(type_, value)
    with pytest.raises(ValueError, match=r"."):
        values.to_json(type_, value)


@pytest.mark.parametrize(
    ("type_", "raw"),
    [
        (BooleanType(), 1),
        (IntType(), "1"),
        (IntType(), True),
        (IntType(), 1.0),
        (IntType(), 2**31),
        (LongType(), 2**63),
        (FloatType(), "1.0"),
        (FloatType(), 1e39),
        (FloatType(), True),
        (DoubleType(), 10**400),
        (DecimalType(4, 2), 14.2),
        (DecimalType(4, 2), "14.201"),
        (DecimalType(4, 2), "100"),
        (DecimalType(4, 2), "fourteen"),
        (DateType(), 17486),
        (DateType(), "2017-11-31"),
        (TimeType(), "22:31:08.1234567"),
        (TimestampType(), "2017-11-16T22:31:08+00:00"),
        (TimestampType(), "2017-11-16T22:31:08.1234567"),
        (TimestampType(zoned=True), "2017-11-16T22:31:08"),
        (TimestampType(nanos=True), "2300-01-01T00:00:00"),
        (StringType(), 1),
        (StringType(), "\ud800"),
        (UuidType(), "f79c3e09677c4bbda4793f349cb785e7"),
        (UuidType(), "{f79c3e09-677c-4bbd-a479-3f349cb785e7}"),
        (FixedType(4), "0001"),
        (BinaryType(), "0 1"),
        (BinaryType(), "012"),
        (StructType((NestedField(1, "a", IntType()),)), {"2": 1}),
        (StructType((NestedField(1, "a", IntType()),)), [1]),
        (ListType(1, IntType()), {"0": 1}),
        (ListType(1, IntType()), ["1"]),
        (MapType(1, StringType(), 2, IntType()), {"a": 1}),
        (MapType(1, StringType(), 2, IntType()), {"keys": ["a"], "values": []}),
        (UnknownType(), 1),
        (VariantType(), "x"),
    ],
)
def test_json_that_is_no_value_is_refused(type_: Type, raw: object):
    with pytest.raises(ValueError, match=r"."):
        values.from_json(type_, raw)


def test_null_is_a_value_of_every_type():
    assert values.from_json(UnknownType(), None) is None
    assert values.to_json(VariantType(), None) is None


def test_an_offset_is_counted_in():
    raw = "2017-11-16T14:31:08-08:00"

    assert values.from_json(TimestampType(zoned=True), raw) == 1510871468000000


def test_json_has_no_number_for_special_floats():
    assert values.to_json(DoubleType(), math.nan) == "NaN"
    assert values.to_json(FloatType(), -math.inf) == "-Infinity"
    assert same(values.to_json(DoubleType(), -0.0), -0.0)


def test_decimals_keep_more_digits_than_the_default_context():
    number = Decimal("-12345678901234567890123456789.123456789")

    assert values.unscaled_of(number, 9) == -12345678901234567890123456789123456789
    assert same(values.decimal_of(-12345678901234567890123456789123456789, 9), number)
