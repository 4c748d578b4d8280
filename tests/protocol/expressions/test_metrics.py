from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol import values
from floeberg.protocol.expressions.binding import bind
from floeberg.protocol.expressions.evaluation import is_true
from floeberg.protocol.expressions.json_form import expression_from_json
from floeberg.protocol.expressions.metrics import file_may_match
from floeberg.protocol.expressions.model import TRUE, BoundPredicate, Expression, Op
from floeberg.protocol.files import NO_METRICS, Metrics
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import (
    DoubleType,
    FloatType,
    IntType,
    Json,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    Value,
)
from tests.support import filter_strategies as filters

SCHEMA = Schema(
    (
        NestedField(1, "i", IntType()),
        NestedField(2, "d", DoubleType()),
        NestedField(3, "s", StringType()),
        NestedField(4, "st", StructType((NestedField(5, "x", IntType()),))),
        NestedField(6, "l", ListType(7, LongType())),
    )
)


def may_match(raw: Json, metrics: Metrics, record_count: int = 10) -> bool:
    return file_may_match(bind(expression_from_json(raw), SCHEMA), SCHEMA, metrics, record_count)


def counts(
    field_id: int,
    count: int | None = 10,
    nulls: int | None = None,
    nans: int | None = None,
    lower: bytes | None = None,
    upper: bytes | None = None,
) -> Metrics:
    def only(value: Any) -> dict[int, Any]:
        return {} if value is None else {field_id: value}

    return Metrics({}, only(count), only(nulls), only(nans), only(lower), only(upper))


EVERY_FILTER: list[Json] = [
    ["=", "i", 1],
    ["!=", "i", 1],
    ["<", "i", 1],
    ["is-null", "i"],
    ["not-null", "i"],
    ["is-nan", "d"],
    ["not-nan", "d"],
    ["=", "d", 1],
    ["starts-with", "s", "a"],
    ["is-null", "st"],
    ["is-null", "st.x"],
    ["not-null", "l"],
]


@pytest.mark.parametrize("raw", EVERY_FILTER)
def test_a_column_without_metrics_keeps_the_file(raw: Json):
    assert may_match(raw, NO_METRICS)


@pytest.mark.parametrize("raw", EVERY_FILTER)
def test_a_file_without_rows_is_skipped(raw: Json):
    assert not may_match(raw, NO_METRICS, record_count=0)
    assert may_match(raw, NO_METRICS, record_count=-1)


@pytest.mark.parametrize(
    ("raw", "metrics", "expected"),
    [
        (["is-null", "i"], counts(1, nulls=0), False),
        (["is-null", "i"], counts(1, count=None, nulls=0), False),
        (["is-null", "i"], counts(1, nulls=1), True),
        (["is-null", "i"], counts(1, count=9, nulls=0), True),
        (["is-null", "i"], counts(1, count=11, nulls=0), True),
        (["is-null", "st.x"], counts(5, nulls=0), False),
        (["is-null", "st.x"], counts(5, count=8, nulls=0), True),
        (["is-null", "st.x"], counts(5, count=None, nulls=0), True),
        (["not-null", "i"], counts(1, nulls=10), False),
        (["not-null", "i"], counts(1, count=None, nulls=10), True),
        (["not-null", "i"], counts(1, nulls=11), True),
        (["not-null", "i"], counts(1, nulls=9), True),
        (["!=", "i", 1], counts(1, nulls=10), False),
        (["not-in", "i", [1, 2]], counts(1, nulls=10), False),
        (["not-starts-with", "s", "a"], counts(3, nulls=10), False),
        (["not-nan", "d"], counts(2, nulls=10), False),
        (["is-nan", "d"], counts(2, nans=0), False),
        (["is-nan", "d"], counts(2, nans=1), True),
        (["is-nan", "d"], counts(2, nans=11), True),
        (["is-nan", "d"], counts(2, nulls=10), False),
        (["not-nan", "d"], counts(2, nulls=4, nans=6), False),
        (["not-nan", "d"], counts(2, nans=10), True),
        ([">", "d", 1], counts(2, nulls=0, nans=10), False),
        ([">", "d", 1], counts(2, nulls=0, nans=9), True),
        (["!=", "d", 1], counts(2, nulls=0, nans=10), True),
    ],
)
def test_counts_prune_only_when_they_are_known_and_possible(
    raw: Json, metrics: Metrics, expected: bool
):
    assert may_match(raw, metrics) is expected


ONE, FIVE = struct.pack("<i", 1), struct.pack("<i", 5)


@pytest.mark.parametrize(
    ("raw", "metrics", "expected"),
    [
        (["=", "i", 6], counts(1, lower=ONE, upper=FIVE), False),
        (["=", "i", 5], counts(1, lower=ONE, upper=FIVE), True),
        (["=", "i", 6], counts(1, lower=FIVE, upper=ONE), True),
        (["=", "i", 6], counts(1, lower=ONE, upper=b"\x05"), True),
        (["=", "st.x", 6], counts(5, lower=ONE, upper=FIVE), False),
        (["!=", "i", 1], counts(1, lower=ONE, upper=ONE), False),
        (["!=", "d", 0], counts(2, lower=bytes(8), upper=bytes(8)), True),
        (
            ["=", "d", 0],
            counts(2, lower=struct.pack("<d", -0.0), upper=struct.pack("<d", -0.0)),
            True,
        ),
        ([">", "d", 0], counts(2, lower=struct.pack("<d", float("nan")), upper=None), True),
        (["not", ["<", "d", 5]], counts(2, nans=0, lower=bytes(8), upper=bytes(8)), False),
        (["not", ["<", "d", 5]], counts(2, nans=1, lower=bytes(8), upper=bytes(8)), True),
        (["not", ["<", "d", 5]], counts(2, lower=bytes(8), upper=bytes(8)), True),
        (["=", "s", "aaab"], counts(3, lower=b"aaa", upper=b"aab"), True),
        (["=", "s", ""], counts(3, lower=b"", upper=b""), True),
        (["=", "s", "x"], counts(3, lower=b"", upper=b""), False),
    ],
)
def test_bounds_prune(raw: Json, metrics: Metrics, expected: bool):
    assert may_match(raw, metrics) is expected


def test_a_field_below_a_list_never_prunes():
    predicate = BoundPredicate(Op.EQ, 7, "l.element", LongType(), (9,))
    metrics = counts(7, nulls=0, lower=struct.pack("<q", 1), upper=struct.pack("<q", 5))

    assert file_may_match(predicate, SCHEMA, metrics, 10)


def test_joins_are_judged_operand_by_operand():
    metrics = counts(1, lower=ONE, upper=FIVE)

    assert not may_match(["and", ["=", "i", 2], ["=", "i", 6]], metrics)
    assert may_match(["or", ["=", "i", 9], ["is-null", "i"]], metrics)
    assert not may_match(["or", ["=", "i", 9], ["<", "i", 1]], metrics)
    assert file_may_match(TRUE, SCHEMA, metrics, 10)
    assert not may_match(["false"], metrics)


def metrics_of(rows: list[filters.Row], which: set[str], cut: int) -> Metrics:
    """Collect metrics as a writer does: only the kinds in `which`, text cut and rounded
    outwards."""
    metrics: dict[str, dict[int, Any]] = {k: {} for k in ("count", "null", "nan", "lower", "upper")}
    for field_id in (1, 2, 3, 4, 5, 6, 7, 8, 10):
        field = filters.SCHEMA.find(field_id)
        assert field is not None
        column: list[Value | None] = [row.get(field_id) for row in rows]
        present: list[Any] = [v for v in column if v is not None and v == v]
        metrics["count"][field_id] = len(column)
        metrics["null"][field_id] = column.count(None)
        if isinstance(field.type, FloatType | DoubleType):
            metrics["nan"][field_id] = sum(v != v for v in column)
        if present:
            lower, upper = min(present), max(present)
            if isinstance(lower, str | bytes):
                lower = lower[:cut]
            metrics["lower"][field_id] = values.to_bytes(field.type, lower)
            if not isinstance(upper, str | bytes) or len(upper) <= cut:
                metrics["upper"][field_id] = values.to_bytes(field.type, upper)
    kept = {kind: found if kind in which else {} for kind, found in metrics.items()}
    return Metrics({}, kept["count"], kept["null"], kept["nan"], kept["lower"], kept["upper"])


@given(
    filters.expressions,
    st.lists(filters.rows(), min_size=1, max_size=3),
    st.sets(st.sampled_from(["count", "null", "nan", "lower", "upper"])),
    st.integers(1, 3),
)
def test_a_file_with_a_matching_row_is_kept(
    expression: Expression, rows: list[filters.Row], which: set[str], cut: int
):
    bound = bind(expression, filters.SCHEMA)

    if any(is_true(bound, row) for row in rows):
        assert file_may_match(bound, filters.SCHEMA, metrics_of(rows, which, cut), len(rows))
