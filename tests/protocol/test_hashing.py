from __future__ import annotations

import math
import struct
import uuid
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.hashing import bucket_hash
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
    StringType,
    TimestampType,
    TimeType,
    Type,
    UnknownType,
    UuidType,
    Value,
    VariantType,
)
from floeberg.protocol.values import from_json
from tests.support.iceberg_values import ints, typed_values

APPENDIX_B = [
    (IntType(), 34, 2017239379),
    (LongType(), 34, 2017239379),
    (DecimalType(4, 2), "14.20", -500754589),
    (DateType(), "2017-11-16", -653330422),
    (TimeType(), "22:31:08", -662762989),
    (TimestampType(), "2017-11-16T22:31:08", -2047944441),
    (TimestampType(), "2017-11-16T22:31:08.000001", -1207196810),
    (TimestampType(zoned=True), "2017-11-16T14:31:08-08:00", -2047944441),
    (TimestampType(zoned=True), "2017-11-16T14:31:08.000001-08:00", -1207196810),
    (TimestampType(nanos=True), "2017-11-16T22:31:08", -2047944441),
    (TimestampType(nanos=True), "2017-11-16T22:31:08.000001001", -1207196810),
    (TimestampType(True, nanos=True), "2017-11-16T14:31:08-08:00", -2047944441),
    (TimestampType(True, nanos=True), "2017-11-16T14:31:08.000001001-08:00", -1207196810),
    (StringType(), "iceberg", 1210000089),
    (UuidType(), "f79c3e09-677c-4bbd-a479-3f349cb785e7", 1488055340),
    (FixedType(4), "00010203", -188683207),
    (BinaryType(), "00010203", -188683207),
    (BooleanType(), True, 1392991556),
    (FloatType(), 1.0, -142385009),
    (FloatType(), 0.0, 1669671676),
    (FloatType(), -0.0, 1669671676),
    (DoubleType(), 1.0, -142385009),
    (DoubleType(), 0.0, 1669671676),
    (DoubleType(), -0.0, 1669671676),
]


@pytest.mark.parametrize(("type_", "raw", "expected"), APPENDIX_B)
def test_the_examples_of_appendix_b_hold(type_: Type, raw: object, expected: int):
    value = from_json(type_, raw)
    assert value is not None
    assert not isinstance(value, list | dict)

    assert bucket_hash(type_, value) == expected


@given(typed_values)
def test_a_hash_is_a_signed_32_bit_integer(typed: tuple[Type, Value]):
    assert -(2**31) <= bucket_hash(*typed) < 2**31


@given(ints, st.integers(0, 9))
def test_promotion_keeps_the_hash(number: int, scale: int):
    one = Decimal(number).scaleb(-scale)

    assert bucket_hash(IntType(), number) == bucket_hash(LongType(), number)
    assert bucket_hash(DecimalType(10, scale), one) == bucket_hash(DecimalType(38, scale), one)


@given(st.floats(width=32))
def test_a_float_hashes_as_the_double_it_widens_to(value: float):
    assert bucket_hash(FloatType(), value) == bucket_hash(DoubleType(), value)


@given(st.integers(-(2**63), 2**63 - 1))
def test_nanoseconds_floor_to_the_microsecond(nanos: int):
    assert bucket_hash(TimestampType(nanos=True), nanos) == bucket_hash(
        TimestampType(), nanos // 1000
    )


def test_every_nan_hashes_alike():
    (other,) = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))

    assert bucket_hash(DoubleType(), other) == bucket_hash(DoubleType(), math.nan)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (UnknownType(), 1),
        (VariantType(), b""),
        (ListType(1, IntType()), 1),
        (IntType(), "34"),
        (StringType(), 34),
        (DecimalType(4, 2), 14.2),
        (UuidType(), str(uuid.UUID(int=1))),
    ],
)
def test_what_has_no_hash_is_refused(type_: Type, value: Value):
    with pytest.raises(ValueError, match="has no hash"):
        bucket_hash(type_, value)
