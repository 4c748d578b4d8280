"""Hypothesis strategies for Iceberg's primitive types and their values."""

from __future__ import annotations

from hypothesis import strategies as st

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
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimeType,
    Type,
    UuidType,
    Value,
)

ints = st.integers(values.INT_MIN, values.INT_MAX) | st.integers(-40, 40)
longs = st.integers(values.LONG_MIN, values.LONG_MAX) | st.integers(-40, 40)
texts = st.text(max_size=8) | st.text("ab\u00e9\ud7ff\U0001f9ca", max_size=6)

decimal_types = st.integers(1, 38).flatmap(
    lambda precision: st.integers(0, precision).map(lambda scale: DecimalType(precision, scale))
)
timestamp_types = st.builds(TimestampType, st.booleans(), st.booleans())

primitive_types: st.SearchStrategy[PrimitiveType] = st.one_of(
    st.sampled_from(
        [
            BooleanType(),
            IntType(),
            LongType(),
            FloatType(),
            DoubleType(),
            DateType(),
            TimeType(),
            StringType(),
            UuidType(),
            BinaryType(),
        ]
    ),
    decimal_types,
    timestamp_types,
    st.integers(0, 20).map(FixedType),
)


def values_of(type_: Type) -> st.SearchStrategy[Value]:
    """Return a strategy of the values that a primitive type holds, small ones often."""
    match type_:
        case BooleanType():
            return st.booleans()
        case IntType() | DateType():
            return ints
        case LongType() | TimestampType():
            return longs
        case TimeType():
            return st.integers(0, values.MICROS_PER_DAY - 1)
        case FloatType():
            return st.floats(width=32)
        case DoubleType():
            return st.floats()
        case DecimalType(precision, scale):
            largest = 10**precision - 1
            near = min(largest, 300)
            units = st.integers(-largest, largest) | st.integers(-near, near)
            return units.map(lambda n: values.decimal_of(n, scale))
        case StringType():
            return texts
        case UuidType():
            return st.binary(min_size=16, max_size=16)
        case FixedType(length):
            return st.binary(min_size=length, max_size=length)
        case BinaryType():
            return st.binary(max_size=6)
        case _:
            raise AssertionError(type_)


typed_values = primitive_types.flatmap(lambda t: st.tuples(st.just(t), values_of(t)))


@st.composite
def nested_values(draw: st.DrawFn, depth: int = 2) -> tuple[Type, values.NestedValue]:
    """Draw a type, nested at most `depth` deep, and one of its values; nulls occur below the
    top."""
    kind = draw(st.sampled_from(["primitive", "struct", "list", "map"] if depth else ["primitive"]))
    if kind == "primitive":
        return draw(typed_values)
    inner = nested_values(depth - 1)
    if kind == "struct":
        members = draw(st.lists(inner, max_size=3))
        struct = StructType(
            tuple(NestedField(10 * depth + i, f"f{i}", t) for i, (t, _) in enumerate(members))
        )
        value: dict[int, values.NestedValue] = {
            f.field_id: draw(st.sampled_from([v, None]))
            for f, (_, v) in zip(struct.fields, members, strict=True)
        }
        return struct, value
    element, item = draw(inner)
    if kind == "list":
        return ListType(10 * depth, element), draw(st.lists(st.sampled_from([item, None])))
    key, key_value = draw(typed_values)
    entries: list[tuple[values.NestedValue, values.NestedValue]] = draw(
        st.lists(st.just((key_value, item)), max_size=2)
    )
    return MapType(10 * depth, key, 10 * depth + 1, element), entries
