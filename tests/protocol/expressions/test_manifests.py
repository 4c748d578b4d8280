from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol import values
from floeberg.protocol.expressions.binding import bind
from floeberg.protocol.expressions.evaluation import is_true
from floeberg.protocol.expressions.json_form import expression_from_json
from floeberg.protocol.expressions.manifests import manifest_may_match
from floeberg.protocol.expressions.model import FALSE, TRUE, Expression
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
    StringType,
    TimestampType,
    Type,
    UnknownType,
    Value,
)
from tests.support import filter_strategies as filters

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


def may_match(raw: Json, *summaries: FieldSummary) -> bool:
    bound = bind(expression_from_json(raw), SCHEMA)
    projected = project_inclusive(bound, SPEC, SCHEMA)
    return manifest_may_match(projected, SPEC, SPEC.partition_type(SCHEMA), summaries)


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
    assert manifest_may_match(projected, SPEC, types, SUMMARIES)
    assert manifest_may_match(TRUE, SPEC, types, SUMMARIES)
    assert not manifest_may_match(FALSE, SPEC, types, SUMMARIES)


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
        assert manifest_may_match(projected, FILTER_SPEC, types, summaries)


days = st.integers(-(10**8), 10**8)  # what 64 bits of microseconds reach


@given(days, st.lists(days))
def test_days_are_summarised_as_dates_or_integers(day: int, others: list[int]):
    """Both are four bytes, whatever the manifest calls them."""
    micros = day * 86_400_000_000
    found = summary(IntType(), apply(Day(), TimestampType(), micros), *others)

    raw = ["=", "ts", values.to_json(TimestampType(), micros)]

    assert may_match(raw, SUMMARIES[0], found, *SUMMARIES[2:])
