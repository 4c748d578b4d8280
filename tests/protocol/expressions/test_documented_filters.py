"""The filters in docs/filters.md are read, and each JSON form means what its text does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from floeberg.protocol.expressions import as_expression
from floeberg.protocol.expressions.binding import bind
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import (
    DateType,
    DecimalType,
    DoubleType,
    IntType,
    NestedField,
    StringType,
    StructType,
)

PAGE = (Path(__file__).parents[3] / "docs" / "filters.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(?:sql|json)\n(.*?)\n```", PAGE, re.DOTALL)

SCHEMA = Schema(
    (
        NestedField(1, "amount", DoubleType()),
        NestedField(2, "region", StringType()),
        NestedField(3, "order id", IntType()),
        NestedField(4, "select", StringType()),
        NestedField(5, "price", DecimalType(9, 2)),
        NestedField(6, "shipped", DateType()),
        NestedField(7, "customer", StructType((NestedField(8, "country", StringType()),))),
        NestedField(9, "a", IntType()),
        NestedField(10, "n", IntType()),
    )
)
INLINE = [
    "customer.country = 'NL'",
    "n < 2.5",
    "n = 3000000000",
    "a BETWEEN 1 AND 2",
    "a NOT IN (1, 2)",
    "NOT (a > 1)",
]


@pytest.mark.parametrize("text", [*BLOCKS, *INLINE])
def test_a_documented_filter_is_read(text: str):
    assert text in PAGE

    bind(as_expression(text), SCHEMA)


def test_the_first_two_examples_are_one_filter():
    assert bind(as_expression(BLOCKS[0]), SCHEMA) == bind(as_expression(BLOCKS[1]), SCHEMA)
