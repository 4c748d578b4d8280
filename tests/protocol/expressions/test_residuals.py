from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.expressions.binding import bind
from floeberg.protocol.expressions.evaluation import is_true
from floeberg.protocol.expressions.json_form import bound_to_named_json, expression_from_json
from floeberg.protocol.expressions.model import Expression
from floeberg.protocol.expressions.residuals import Residuals, residual
from floeberg.protocol.partitioning import PartitionField, PartitionSpec
from floeberg.protocol.schema import Schema
from floeberg.protocol.transforms import Bucket, Day, Identity, UnknownTransform, apply
from floeberg.protocol.types import IntType, Json, NestedField, StringType, TimestampType, Value
from tests.support import filter_strategies as filters

SCHEMA = Schema(
    (
        NestedField(1, "p", StringType()),
        NestedField(2, "ts", TimestampType()),
        NestedField(3, "i", IntType()),
        NestedField(4, "other", IntType()),
    )
)
SPEC = PartitionSpec(
    0,
    (
        PartitionField((1,), 1000, "p", Identity()),
        PartitionField((2,), 1001, "day", Day()),
        PartitionField((3,), 1002, "b", Bucket(4)),
        PartitionField((4,), 1003, "z", UnknownTransform("zorder")),
    ),
)
SEVEN = apply(Bucket(4), IntType(), 7)
PARTITION: dict[int, Value | None] = {1000: "a", 1001: 10, 1002: SEVEN, 1003: None}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (["=", "p", "a"], ["true"]),
        (["=", "p", "b"], ["false"]),
        (["!=", "p", "b"], ["true"]),
        (["is-null", "p"], ["false"]),
        (["<", "ts", "1970-01-12"], ["true"]),
        ([">=", "ts", "1970-01-12"], ["false"]),
        ([">=", "ts", "1970-01-11"], ["true"]),
        ([">", "ts", "1970-01-11"], [">", "ts", "1970-01-11T00:00:00.000000"]),
        (["=", "i", 7], ["=", "i", 7]),
        (["!=", "i", 7], ["!=", "i", 7]),
        (["=", "other", 7], ["=", "other", 7]),
        (["and", ["=", "p", "a"], ["=", "i", 7]], ["=", "i", 7]),
        (["and", ["=", "p", "b"], ["=", "i", 7]], ["false"]),
        (["or", ["=", "p", "b"], ["=", "i", 7]], ["=", "i", 7]),
        (["or", ["=", "p", "a"], ["=", "i", 7]], ["true"]),
        (
            [
                "or",
                ["and", ["=", "p", "a"], ["=", "i", 7]],
                ["and", ["=", "p", "b"], ["<", "i", 0]],
            ],
            ["=", "i", 7],
        ),
    ],
)
def test_what_the_partition_decides_is_dropped(raw: Json, expected: Json):
    found = residual(bind(expression_from_json(raw), SCHEMA), SPEC, SCHEMA, PARTITION)

    assert bound_to_named_json(found, SCHEMA) == expected


def test_a_null_partition_value_is_a_value():
    partition = {**PARTITION, 1000: None}
    filters_: list[tuple[Json, Json]] = [
        (["is-null", "p"], ["true"]),
        (["not-null", "p"], ["false"]),
        (["=", "p", "a"], ["false"]),
        (["!=", "p", "a"], ["false"]),
        (["or", ["<", "p", "a"], ["is-null", "p"]], ["true"]),
    ]
    for raw, expected in filters_:
        found = residual(bind(expression_from_json(raw), SCHEMA), SPEC, SCHEMA, partition)

        assert bound_to_named_json(found, SCHEMA) == expected


def test_empty_text_and_zero_are_not_null():
    partition: dict[int, Value | None] = {**PARTITION, 1000: "", 1002: 0}
    bound = bind(expression_from_json(["and", ["not-null", "p"], ["not-null", "i"]]), SCHEMA)

    assert bound_to_named_json(residual(bound, SPEC, SCHEMA, partition), SCHEMA) == ["true"]


def test_a_partition_value_that_is_not_known_decides_nothing():
    bound = bind(expression_from_json(["=", "p", "b"]), SCHEMA)

    assert residual(bound, SPEC, SCHEMA, {1001: 10}) == bound


@given(filters.expressions, filters.rows(), st.sampled_from(filters.SPECS))
def test_a_residual_is_true_of_the_same_rows(
    expression: Expression, row: filters.Row, spec: PartitionSpec
):
    bound = bind(expression, filters.SCHEMA)

    left = Residuals(bound, spec, filters.SCHEMA).in_partition(filters.partition_of(spec, row))

    assert is_true(left, row) is is_true(bound, row)
