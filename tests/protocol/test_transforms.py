from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.errors import Unsupported
from floeberg.protocol.transforms import (
    Bucket,
    Day,
    Hour,
    Identity,
    Month,
    Transform,
    Truncate,
    UnknownTransform,
    Void,
    Year,
    applies_to,
    apply,
    parse_transform,
    result_type,
)
from floeberg.protocol.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    GeometryType,
    IntType,
    ListType,
    LongType,
    StringType,
    TimestampType,
    TimeType,
    Type,
    UuidType,
    Value,
    VariantType,
)
from tests.support.iceberg_values import typed_values

MICROS = TimestampType()
NANOS = TimestampType(nanos=True)
HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("text", "transform"),
    [
        ("identity", Identity()),
        ("Bucket[16]", Bucket(16)),
        ("truncate[4]", Truncate(4)),
        ("year", Year()),
        ("month", Month()),
        ("day", Day()),
        ("hour", Hour()),
        ("void", Void()),
        ("bucket[0]", UnknownTransform("bucket[0]")),
        ("Zorder[a]", UnknownTransform("Zorder[a]")),
    ],
)
def test_transforms_are_read_by_name_and_unknown_ones_kept(text: str, transform: Transform):
    assert parse_transform(text) == transform
    assert parse_transform(str(transform)) == transform


@pytest.mark.parametrize(
    ("transform", "source", "value", "expected"),
    [
        (Identity(), StringType(), "x", "x"),
        (Truncate(10), IntType(), 1, 0),
        (Truncate(10), IntType(), -1, -10),
        (Truncate(10), LongType(), -10, -10),
        (Truncate(50), DecimalType(9, 2), Decimal("10.65"), Decimal("10.50")),
        (Truncate(50), DecimalType(9, 2), Decimal("-0.01"), Decimal("-0.50")),
        (Truncate(3), StringType(), "iceberg", "ice"),
        (Truncate(2), StringType(), "\U0001f9ca\U0001f9ca\U0001f9ca", "\U0001f9ca\U0001f9ca"),
        (Truncate(3), StringType(), "", ""),
        (Truncate(3), BinaryType(), b"\x01\x02\x03\x04\x05", b"\x01\x02\x03"),
        (Year(), DateType(), 0, 0),
        (Year(), DateType(), -1, -1),
        (Year(), MICROS, -1, -1),
        (Month(), DateType(), -1, -1),
        (Month(), DateType(), 31, 1),
        (Month(), NANOS, -1, -1),
        (Day(), DateType(), -5, -5),
        (Day(), MICROS, 24 * HOUR - 1, 0),
        (Day(), MICROS, -1, -1),
        (Day(), NANOS, -1, -1),
        (Day(), NANOS, 24 * HOUR * 1000, 1),
        (Hour(), MICROS, HOUR, 1),
        (Hour(), MICROS, -1, -1),
        (Hour(), NANOS, HOUR * 1000 - 1, 0),
        (Bucket(100), StringType(), "iceberg", 1210000089 % 100),
        (Bucket(100), DateType(), 17486, (-653330422 & 0x7FFFFFFF) % 100),
        (Void(), ListType(1, IntType()), 1, None),
    ],
)
def test_a_transform_gives_the_specs_value(
    transform: Transform, source: Type, value: Value, expected: Value | None
):
    assert repr(apply(transform, source, value)) == repr(expected)


@given(st.dates())
def test_dates_go_to_their_year_and_month(date: datetime.date):
    days = (date - datetime.date(1970, 1, 1)).days
    months = (date.year - 1970) * 12 + date.month - 1

    assert apply(Year(), DateType(), days) == date.year - 1970
    assert apply(Month(), DateType(), days) == months
    assert apply(Month(), MICROS, days * 24 * HOUR) == months
    assert apply(Month(), NANOS, days * 24 * HOUR * 1000 - 1) == (
        months - 1 if date.day == 1 else months
    )


@given(
    typed_values, st.integers(1, 20), st.sampled_from(["id", "bucket", "trunc", "y", "m", "d", "h"])
)
def test_nulls_stay_null_and_values_do_not_become_null(
    typed: tuple[Type, Value], size: int, kind: str
):
    source, value = typed
    transform = {
        "id": Identity(),
        "bucket": Bucket(size),
        "trunc": Truncate(size),
        "y": Year(),
        "m": Month(),
        "d": Day(),
        "h": Hour(),
    }[kind]
    if not applies_to(transform, source):
        with pytest.raises(ValueError, match="does not apply"):
            apply(transform, source, value)
        return

    assert apply(transform, source, None) is None
    assert apply(transform, source, value) is not None
    if isinstance(transform, Bucket):
        assert 0 <= apply(transform, source, value) < size  # type: ignore[operator]


@pytest.mark.parametrize(
    ("transform", "source"),
    [
        (Bucket(4), DoubleType()),
        (Bucket(4), BooleanType()),
        (Truncate(4), UuidType()),
        (Truncate(4), DateType()),
        (Year(), TimeType()),
        (Hour(), DateType()),
        (Identity(), VariantType()),
        (Identity(), GeometryType()),
    ],
)
def test_a_transform_that_the_type_does_not_have_is_refused(transform: Transform, source: Type):
    assert not applies_to(transform, source)
    with pytest.raises(ValueError, match="does not apply"):
        apply(transform, source, None)


def test_an_unknown_transform_is_named_in_the_error():
    with pytest.raises(Unsupported, match="zorder"):
        apply(UnknownTransform("zorder"), IntType(), 1)


def test_results_have_their_type():
    assert result_type(Day(), MICROS) == DateType()
    assert result_type(Hour(), MICROS) == IntType()
    assert result_type(Truncate(4), StringType()) == StringType()
