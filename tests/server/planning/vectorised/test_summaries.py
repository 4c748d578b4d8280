"""What columns of summaries say of manifests is what each one's summaries say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.protocol import values
from floeberg.protocol.expressions.binding import bind
from floeberg.protocol.expressions.evaluation import is_true
from floeberg.protocol.expressions.json_form import expression_from_json
from floeberg.protocol.expressions.model import FALSE, TRUE, BoundExpression, Expression
from floeberg.protocol.expressions.projection import project_inclusive
from floeberg.protocol.files import FieldSummary
from floeberg.protocol.partitioning import PartitionField, PartitionSpec
from floeberg.protocol.schema import Schema
from floeberg.protocol.transforms import Day, Identity, apply
from floeberg.protocol.types import (
    DoubleType,
    IntType,
    Json,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    Type,
    UnknownType,
    Value,
)
from floeberg.server.planning.vectorised import PartitionSummaries
from tests.server.planning.vectorised.test_metrics import raw_bounds, typed_predicates
from tests.support import filter_strategies as filters
from tests.support.iceberg_values import primitive_types
from tests.support.plain_planner.summaries import manifest_may_match

SCHEMA = Schema(
    (
        NestedField(1, "i", IntType()),
        NestedField(2, "ts", TimestampType()),
        NestedField(3, "d", DoubleType()),
        NestedField(4, "s", StringType()),
    )
)
SPEC = PartitionSpec(
    0,
    (
        PartitionField((1,), 1000, "i", Identity()),
        PartitionField((2,), 1001, "day", Day()),
        PartitionField((3,), 1002, "d", Identity()),
        PartitionField((4,), 1003, "s", Identity()),
    ),
)


def summary(type_: Type, *column: Value | None, nan: bool | None = None) -> FieldSummary:
    """Summarise a column as a writer does: NaN is no bound."""
    present: list[Any] = [v for v in column if v is not None and v == v]
    return FieldSummary(
        None in column,
        any(v != v for v in column) if nan is None and isinstance(type_, DoubleType) else nan,
        values.to_bytes(type_, min(present)) if present else None,
        values.to_bytes(type_, max(present)) if present else None,
    )


def answers(
    projected: BoundExpression,
    spec: PartitionSpec,
    types: StructType,
    of_manifests: Sequence[Sequence[FieldSummary]],
) -> list[bool]:
    """Return what columns say of manifests, which is what is said of each by itself."""
    found = PartitionSummaries(of_manifests).may_match(projected, spec, types).tolist()
    assert found == [manifest_may_match(projected, spec, types, s) for s in of_manifests]
    return found


def may_match(raw: Json, *summaries: FieldSummary) -> bool:
    bound = bind(expression_from_json(raw), SCHEMA)
    projected = project_inclusive(bound, SPEC, SCHEMA)
    (found,) = answers(projected, SPEC, SPEC.partition_type(SCHEMA), [summaries])
    return found


@st.composite
def field_summaries(draw: st.DrawFn, type_: PrimitiveType) -> FieldSummary:
    """Draw a summary as writers leave them, or damaged."""
    return FieldSummary(
        draw(st.booleans()),
        draw(st.sampled_from([None, False, True])),
        draw(raw_bounds(type_)),
        draw(raw_bounds(type_)),
    )


SUMMARIES = (
    summary(IntType(), 1, 5, None),
    summary(IntType(), 10, 20),
    summary(DoubleType(), 1.0, 2.0),
    summary(StringType(), "b", "d"),
)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (["=", "i", 3], True),
        (["=", "i", 6], False),
        (["is-null", "i"], True),
        (["is-null", "ts"], False),
        (["not-null", "i"], True),
        (["<", "ts", "1970-01-11"], False),
        (["<=", "ts", "1970-01-11"], True),
        (["in", "ts", ["1969-01-01", "1971-01-01"]], False),
        (["is-nan", "d"], False),
        (["not-nan", "d"], True),
        (["!=", "d", 1.5], True),
        (["starts-with", "s", "c"], True),
        (["starts-with", "s", "e"], False),
        (["and", ["=", "i", 3], ["=", "s", "x"]], False),
        (["or", ["=", "i", 3], ["=", "s", "x"]], True),
        (["true"], True),
        (["false"], False),
    ],
)
def test_a_manifest_is_judged_by_its_summaries(raw: Json, expected: bool):
    assert may_match(raw, *SUMMARIES) is expected


def test_what_is_not_known_keeps_a_manifest():
    unknown = FieldSummary(contains_null=True)
    filters_ = [["=", "i", 3], ["not-null", "i"], ["is-nan", "d"], ["starts-with", "s", "x"]]

    assert all(may_match(raw, unknown, unknown, unknown, unknown) for raw in filters_)
    assert all(may_match(raw) for raw in filters_)
    assert all(may_match(raw, SUMMARIES[0]) for raw in filters_)
    assert not may_match(["false"])


def test_a_field_of_unknown_type_says_nothing():
    projected = project_inclusive(bind(expression_from_json(["=", "i", 3]), SCHEMA), SPEC, SCHEMA)
    types = SPEC.partition_type(Schema(()))

    assert {f.type for f in types.fields} == {UnknownType()}
    for filter_, expected in ((projected, True), (TRUE, True), (FALSE, False)):
        assert answers(filter_, SPEC, types, [SUMMARIES]) == [expected]


@given(data=st.data(), type_=primitive_types)
@settings(max_examples=100)
def test_every_operator_and_type_answers_as_for_one_manifest(data: st.DataObject, type_: Any):
    spec = PartitionSpec(0, (PartitionField((1,), 1000, "c", Identity()),))
    types = spec.partition_type(Schema((NestedField(1, "c", type_),)))
    found = data.draw(st.lists(field_summaries(type_), min_size=1, max_size=8))

    for _ in range(4):
        predicate = data.draw(typed_predicates(type_, field_id=1000))
        answers(predicate, spec, types, [[summary] for summary in found])


FILTER_SPEC = PartitionSpec(
    1,
    tuple(PartitionField((i,), 1000 + i, f"p{i}", Identity()) for i in (1, 2, 3, 4, 5, 6, 7, 8)),
)


@given(filters.expressions, st.lists(filters.rows(), min_size=1, max_size=3))
def test_a_manifest_with_a_matching_row_is_kept(expression: Expression, rows: list[filters.Row]):
    bound = bind(expression, filters.SCHEMA)
    projected = project_inclusive(bound, FILTER_SPEC, filters.SCHEMA)
    types = FILTER_SPEC.partition_type(filters.SCHEMA)
    summaries = [summary(f.type, *(row[f.field_id - 1000] for row in rows)) for f in types.fields]

    if any(is_true(bound, row) for row in rows):
        assert answers(projected, FILTER_SPEC, types, [summaries]) == [True]


days = st.integers(-(10**8), 10**8)  # what 64 bits of microseconds reach


@given(days, st.lists(days))
def test_days_are_summarised_as_dates_or_integers(day: int, others: list[int]):
    """Both are four bytes, whatever the manifest calls them."""
    micros = day * 86_400_000_000
    found = summary(IntType(), apply(Day(), TimestampType(), micros), *others)

    raw = ["=", "ts", values.to_json(TimestampType(), micros)]

    assert may_match(raw, SUMMARIES[0], found, *SUMMARIES[2:])
