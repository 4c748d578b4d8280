from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from floeberg.protocol import values
from floeberg.protocol.expressions.binding import bind
from floeberg.protocol.expressions.evaluation import is_true
from floeberg.protocol.expressions.json_form import bound_to_named_json, expression_from_json
from floeberg.protocol.expressions.model import (
    FALSE,
    TRUE,
    UNARY,
    BoundExpression,
    Expression,
    Op,
    Predicate,
)
from floeberg.protocol.expressions.projection import project_inclusive, project_strict
from floeberg.protocol.partitioning import PartitionField, PartitionSpec
from floeberg.protocol.schema import Schema
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
)
from floeberg.protocol.types import (
    BinaryType,
    DateType,
    DoubleType,
    FixedType,
    FloatType,
    IntType,
    Json,
    ListType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    Value,
)
from tests.support import filter_strategies as filters
from tests.support.iceberg_values import primitive_types, values_of

DAY = 86_400_000_000

_transforms = st.one_of(
    st.sampled_from([Identity(), Year(), Month(), Day(), Hour(), Void()]),
    st.integers(1, 8).map(Bucket),
    st.sampled_from([1, 2, 3, 10, 100, 2**31 - 1]).map(Truncate),
)


def spec_of(transform: Transform, source_id: int = 1) -> PartitionSpec:
    return PartitionSpec(0, (PartitionField((source_id,), 1000, "p", transform),))


def schema_of(type_: PrimitiveType) -> Schema:
    return Schema((NestedField(1, "x", type_),))


def json_literal(type_: PrimitiveType, value: Value) -> Any:
    return values.to_json(type_, value)


@st.composite
def predicates_near(draw: st.DrawFn, type_: PrimitiveType, near: list[Value]) -> Predicate:
    """Draw a predicate on a column `x`, its literals among `near` or one step from them, often."""
    ops = [op for op in Op if op not in (Op.IS_NAN, Op.NOT_NAN, Op.STARTS_WITH, Op.NOT_STARTS_WITH)]
    if isinstance(type_, FloatType | DoubleType):
        ops += [Op.IS_NAN, Op.NOT_NAN]
    if isinstance(type_, StringType | BinaryType | FixedType):
        ops += [Op.STARTS_WITH, Op.NOT_STARTS_WITH]
    op = draw(st.sampled_from(ops))
    if op in UNARY:
        return Predicate(op, "x")
    literals = st.sampled_from(near) | values_of(type_)
    if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        whole = draw(literals)
        assert isinstance(whole, str | bytes)
        prefix = whole[: draw(st.integers(0, 4))]
        return Predicate(op, "x", (prefix,))
    count = draw(st.integers(1, 3)) if op in (Op.IN, Op.NOT_IN) else 1
    drawn = [draw(literals) for _ in range(count)]
    return Predicate(op, "x", tuple(json_literal(type_, v) for v in drawn))


def _neighbours(type_: PrimitiveType, value: Value) -> st.SearchStrategy[Value]:
    """Values that often share the partition of `value`."""
    match value:
        case str():
            return st.builds(
                lambda tail, n: value[:n] + tail, st.text("ab", max_size=3), st.integers(0, 4)
            )
        case bytes() if isinstance(type_, BinaryType):
            return st.builds(
                lambda tail, n: value[:n] + tail, st.binary(max_size=2), st.integers(0, 4)
            )
        case int() if isinstance(type_, IntType | LongType | DateType | TimestampType):
            low, high = (
                (values.INT_MIN, values.INT_MAX)
                if isinstance(type_, IntType | DateType)
                else (values.LONG_MIN, values.LONG_MAX)
            )
            steps = st.integers(-20, 20) | st.integers(-3, 3).map(lambda n: n * DAY)
            return steps.map(lambda n: min(high, max(low, value + n)))
        case _:
            return values_of(type_)


Scenario = tuple[PrimitiveType, Transform, Predicate, list[Value | None]]


@st.composite
def scenarios(
    draw: st.DrawFn,
    types: st.SearchStrategy[PrimitiveType] = primitive_types,
    transforms: st.SearchStrategy[Transform] = _transforms,
) -> Scenario:
    """Draw a column's type, a transform of it, a predicate, and values close to each other."""
    type_, transform = draw(types), draw(transforms)
    if not applies_to(transform, type_):
        transform = draw(st.sampled_from([Identity(), Void()]))
    first = draw(values_of(type_))
    near = [first, *draw(st.lists(_neighbours(type_, first), min_size=1, max_size=5))]
    return type_, transform, draw(predicates_near(type_, near)), [*near, None]


@given(scenarios())
@example((IntType(), Truncate(10), Predicate(Op.LT, "x", (5,)), [-(2**31), 3, None]))
@example((IntType(), Truncate(10), Predicate(Op.GT, "x", (-(2**31) + 4,)), [-(2**31), 3, None]))
@example((IntType(), Truncate(10), Predicate(Op.EQ, "x", (-(2**31),)), [-(2**31), 3, None]))
@example((IntType(), Truncate(10), Predicate(Op.LT, "x", (-(2**31) + 1,)), [-(2**31), 3, None]))
@example((LongType(), Truncate(10), Predicate(Op.GE, "x", (0,)), [-(2**63), -(2**63) + 1, None]))
def test_projections_agree_with_the_rows(scenario: Scenario):
    type_, transform, predicate, rows = scenario
    schema, spec = schema_of(type_), spec_of(transform)
    bound = bind(predicate, schema)
    inclusive = project_inclusive(bound, spec, schema)
    strict = project_strict(bound, spec, schema)

    for value in rows:
        partition = {1000: apply(transform, type_, value)}
        if is_true(bound, {1: value}):
            assert is_true(inclusive, partition)
        if is_true(strict, partition):
            assert is_true(bound, {1: value})


_rounded_up = st.sampled_from([DateType(), TimestampType(), TimestampType(zoned=True)])


@given(scenarios(_rounded_up, st.sampled_from([Year(), Month(), Day(), Hour()])))
def test_projections_allow_for_times_rounded_up_before_1970(scenario: Scenario):
    type_, transform, predicate, rows = scenario
    if isinstance(transform, Identity | Void) or (type_, transform) == (DateType(), Day()):
        return  # nothing was rounded
    schema, spec = schema_of(type_), spec_of(transform)
    bound = bind(predicate, schema)
    inclusive = project_inclusive(bound, spec, schema)
    strict = project_strict(bound, spec, schema)

    for value in rows:
        floored = apply(transform, type_, value)
        if isinstance(floored, int) and floored < 0:
            partition = {1000: floored + 1}
            if is_true(bound, {1: value}):
                assert is_true(inclusive, partition)
            if is_true(strict, partition):
                assert is_true(bound, {1: value})


@given(filters.expressions, filters.rows(), st.sampled_from(filters.SPECS))
def test_whole_filters_project_over_every_spec(
    expression: Expression, row: filters.Row, spec: PartitionSpec
):
    bound = bind(expression, filters.SCHEMA)
    partition = filters.partition_of(spec, row)

    if is_true(bound, row):
        assert is_true(project_inclusive(bound, spec, filters.SCHEMA), partition)
    if is_true(project_strict(bound, spec, filters.SCHEMA), partition):
        assert is_true(bound, row)


# --- what they look like -------------------------------------------------------------------------


def projected(
    project: Callable[[BoundExpression, PartitionSpec, Schema], BoundExpression],
    type_: PrimitiveType,
    transform: Transform,
    raw: Json,
) -> Json:
    schema, spec = schema_of(type_), spec_of(transform)
    found = project(bind(expression_from_json(raw), schema), spec, schema)
    return bound_to_named_json(found, Schema(spec.partition_type(schema).fields))


TS = TimestampType()


@pytest.mark.parametrize(
    ("type_", "transform", "raw", "inclusive", "strict"),
    [
        (IntType(), Identity(), ["<", "x", 5], ["<", "p", 5], ["<", "p", 5]),
        (IntType(), Identity(), ["is-null", "x"], ["is-null", "p"], ["is-null", "p"]),
        (DoubleType(), Identity(), ["!=", "x", 5], ["!=", "p", 5.0], ["!=", "p", 5.0]),
        (StringType(), Bucket(16), ["=", "x", "iceberg"], ["=", "p", 9], ["false"]),
        (StringType(), Bucket(16), ["!=", "x", "iceberg"], ["not-null", "p"], ["!=", "p", 9]),
        (StringType(), Bucket(16), ["<", "x", "iceberg"], ["not-null", "p"], ["false"]),
        (IntType(), Truncate(10), ["<", "x", 20], ["<=", "p", 10], ["<", "p", 20]),
        (IntType(), Truncate(10), [">=", "x", 20], [">=", "p", 20], [">", "p", 10]),
        (StringType(), Truncate(3), ["=", "x", "ab"], ["=", "p", "ab"], ["=", "p", "ab"]),
        (StringType(), Truncate(3), ["=", "x", "abcd"], ["=", "p", "abc"], ["false"]),
        (StringType(), Truncate(3), ["starts-with", "x", "abcd"], ["=", "p", "abc"], ["false"]),
        (
            StringType(),
            Truncate(3),
            ["not-starts-with", "x", "abcd"],
            ["not-null", "p"],
            ["!=", "p", "abc"],
        ),
        (
            StringType(),
            Truncate(3),
            ["not-starts-with", "x", "ab"],
            ["not-starts-with", "p", "ab"],
            ["not-starts-with", "p", "ab"],
        ),
        (
            TS,
            Day(),
            [">=", "x", "2024-01-03"],
            [">=", "p", "2024-01-03"],
            [">", "p", "2024-01-02"],
        ),
        (TS, Day(), ["<", "x", "2024-01-03"], ["<=", "p", "2024-01-02"], ["<", "p", "2024-01-03"]),
        (TS, Month(), ["=", "x", "1970-03-05"], ["=", "p", 2], ["false"]),
        (TS, Month(), ["=", "x", "1969-03-05"], ["in", "p", [-10, -9]], ["false"]),
        (TS, Year(), ["!=", "x", "1969-03-05"], ["not-null", "p"], ["not-in", "p", [-1, 0]]),
        (TS, Hour(), ["<", "x", "1970-01-01"], ["<=", "p", 0], ["<", "p", 0]),
        (
            DateType(),
            Day(),
            ["=", "x", "1969-03-05"],
            ["=", "p", "1969-03-05"],
            ["=", "p", "1969-03-05"],
        ),
        (IntType(), Void(), ["=", "x", 5], ["true"], ["false"]),
        (IntType(), UnknownTransform("new"), ["=", "x", 5], ["true"], ["false"]),
    ],
)
def test_a_predicate_projects_to(
    type_: PrimitiveType, transform: Transform, raw: Json, inclusive: Json, strict: Json
):
    found = projected(project_inclusive, type_, transform, raw)
    if isinstance(transform, Truncate) and raw[0] == "<" and type_ == IntType():
        found = found[1]  # beside the value that the smallest integers wrap around to

    assert found == inclusive
    if isinstance(transform, Truncate) and raw[0] == ">=":
        assert projected(project_strict, type_, transform, raw)[1] == strict
    else:
        assert projected(project_strict, type_, transform, raw) == strict


def test_fields_over_one_column_restrict_each_other():
    schema = schema_of(IntType())
    spec = PartitionSpec(
        0,
        (
            PartitionField((1,), 1000, "b", Bucket(4)),
            PartitionField((1,), 1001, "t", Truncate(16)),
        ),
    )
    bound = bind(Predicate(Op.EQ, "x", (20,)), schema)
    named = Schema(spec.partition_type(schema).fields)

    found = bound_to_named_json(project_inclusive(bound, spec, schema), named)

    assert found == ["and", ["=", "b", apply(Bucket(4), IntType(), 20)], ["=", "t", 16]]


def test_a_struct_or_list_is_no_source():
    schema = Schema(
        (NestedField(1, "x", StructType((NestedField(2, "y", ListType(3, IntType())),))),)
    )
    bound = bind(Predicate(Op.IS_NULL, "x"), schema)

    assert project_inclusive(bound, spec_of(Identity()), schema) == TRUE
    assert project_strict(bound, spec_of(Identity()), schema) == FALSE


def test_a_large_set_is_projected_by_bucket():
    schema = schema_of(LongType())
    bound = bind(Predicate(Op.IN, "x", tuple(range(100_000))), schema)

    found = project_inclusive(bound, spec_of(Bucket(8)), schema)

    assert is_true(found, {1000: 3})
    assert not is_true(found, {1000: None})
