from __future__ import annotations

import datetime
import decimal
import json
import uuid
from typing import Any

import pytest
from hypothesis import given
from pyiceberg import expressions as theirs
from pyiceberg.catalog.rest.scan_planning import PlanTableScanRequest as TheirRequest

from floeberg.protocol.errors import BadFilter, BadLiteral, UnknownColumn, Unsupported
from floeberg.protocol.expressions.binding import bind
from floeberg.protocol.expressions.json_form import expression_from_json
from floeberg.protocol.expressions.model import FALSE, TRUE, BoundExpression
from floeberg.protocol.schema import Schema
from floeberg.server.planning.rest_filter import rest_filter
from floeberg.server.rest.filters import expression_from_rest, suited_to_columns
from tests.support.filter_strategies import SCHEMA as SCHEMA_OF_FILTERS
from tests.support.filter_strategies import expressions
from tests.support.lake import schema, struct

SCHEMA = Schema.from_json(
    schema(
        {
            "a": "int",
            "n": "long",
            "s": "string",
            "d": "double",
            "ok": "boolean",
            "day": "date",
            "at": "time",
            "ts": "timestamp",
            "tz": "timestamptz",
            "ns": "timestamp_ns",
            "m": "decimal(9, 2)",
            "u": "uuid",
            "b": "binary",
            "st": struct({"x": "int"}),
        }
    )
)


def bound(raw: Any) -> BoundExpression:
    return bind(suited_to_columns(expression_from_rest(raw), SCHEMA, True), SCHEMA)


def ours(raw: Any) -> BoundExpression:
    return bind(expression_from_json(raw), SCHEMA)


@pytest.mark.parametrize(
    ("rest", "same"),
    [
        (True, ["true"]),
        ({"type": "false"}, ["false"]),
        ({"type": "literal", "value": True}, ["true"]),
        ({"type": "eq", "term": "a", "value": 1}, ["=", "a", 1]),
        ({"type": "NOT_EQ", "term": "a", "value": 1}, ["!=", "a", 1]),
        ({"type": "lt", "term": "st.x", "value": 1.5}, ["<", "st.x", 1.5]),
        ({"type": "is-null", "term": "st"}, ["is-null", "st"]),
        ({"type": "not-nan", "child": {"type": "reference", "name": "d"}}, ["not-nan", "d"]),
        ({"type": "in", "term": "s", "values": ["x", "y"]}, ["in", "s", ["x", "y"]]),
        (
            {
                "type": "not-in",
                "child": {"type": "reference", "name": "a"},
                "values": {"type": "literals", "values": [1, 2], "data-type": "int"},
            },
            ["not-in", "a", [1, 2]],
        ),
        (
            {
                "type": "gt",
                "left": {"type": "literal", "value": 3, "data-type": "int"},
                "right": {"type": "reference", "name": "a"},
            },
            ["<", "a", 3],
        ),
        (
            {
                "type": "starts-with",
                "left": {"type": "reference", "term": "s"},
                "right": "pre",
            },
            ["starts-with", "s", "pre"],
        ),
        (
            {
                "type": "not",
                "child": {
                    "type": "or",
                    "left": {"type": "eq", "term": "a", "value": 1},
                    "right": {"type": "is-null", "term": "s"},
                },
            },
            ["not", ["or", ["=", "a", 1], ["is-null", "s"]]],
        ),
    ],
)
def test_both_spellings_mean_what_floebergs_own_form_means(rest, same):
    assert bound(rest) == ours(same)


@pytest.mark.parametrize(
    ("rest", "same"),
    [
        ({"type": "eq", "term": "day", "value": 18262}, ["=", "day", "2020-01-01"]),
        ({"type": "eq", "term": "at", "value": 3723000000}, ["=", "at", "01:02:03"]),
        ({"type": "eq", "term": "ts", "value": 1_000_000}, ["=", "ts", "1970-01-01T00:00:01"]),
        (
            {"type": "eq", "term": "ns", "value": 1_000_001},
            ["=", "ns", "1970-01-01T00:00:01.000001"],
        ),
        (
            {"type": "eq", "term": "tz", "value": "2020-01-01T00:00:00"},
            ["=", "tz", "2020-01-01T00:00:00+00:00"],
        ),
        ({"type": "lt", "term": "tz", "value": "2020-01-01"}, ["<", "tz", "2020-01-01T00:00:00Z"]),
        (
            {"type": "eq", "term": "tz", "value": "2020-01-01T01:00:00+01:00"},
            ["=", "tz", "2020-01-01T00:00:00+00:00"],
        ),
        ({"type": "eq", "term": "n", "value": "12"}, ["=", "n", 12]),
        ({"type": "gt", "term": "a", "value": "1.5"}, [">", "a", 1.5]),
        ({"type": "eq", "term": "ok", "value": "TRUE"}, ["=", "ok", True]),
        ({"type": "eq", "term": "m", "value": "1.50"}, ["=", "m", "1.5"]),
        ({"type": "eq", "term": "b", "value": "01FF"}, ["=", "b", "01ff"]),
        ({"type": "is-nan", "term": "a"}, ["false"]),
        ({"type": "not-nan", "term": "s"}, ["true"]),
    ],
)
def test_literals_are_taken_as_other_engines_write_them(rest, same):
    assert bound(rest) == ours(same)


@pytest.mark.parametrize(
    ("expression", "same"),
    [
        (theirs.EqualTo("day", datetime.date(2020, 1, 1)), ["=", "day", "2020-01-01"]),
        (theirs.EqualTo("at", datetime.time(1, 2, 3)), ["=", "at", "01:02:03"]),
        (
            theirs.LessThan("tz", datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)),
            ["<", "tz", "2020-01-01T00:00:00Z"],
        ),
        (theirs.EqualTo("m", decimal.Decimal("1.50")), ["=", "m", 1.5]),
        (theirs.EqualTo("u", uuid.UUID(int=7)), ["=", "u", str(uuid.UUID(int=7))]),
        (theirs.NotEqualTo("b", b"\x01\xff"), ["!=", "b", "01ff"]),
        (theirs.NotIn("a", [1, 2]), ["not-in", "a", [1, 2]]),
        (theirs.Not(theirs.StartsWith("s", "x")), ["not-starts-with", "s", "x"]),
        (theirs.IsNaN("d"), ["is-nan", "d"]),
        (theirs.AlwaysFalse(), ["false"]),
    ],
)
def test_what_pyiceberg_sends_is_understood(expression, same):
    sent = TheirRequest(filter=expression).model_dump_json(by_alias=True, exclude_none=True)

    assert bound(json.loads(sent)["filter"]) == ours(same)


@given(expressions)
def test_what_is_sent_as_a_residual_can_be_sent_back_as_a_filter(expression):
    residual = bind(expression, SCHEMA_OF_FILTERS)

    raw = json.loads(json.dumps(rest_filter(residual, SCHEMA_OF_FILTERS)))

    sent_back = suited_to_columns(expression_from_rest(raw), SCHEMA_OF_FILTERS, True)
    assert bind(sent_back, SCHEMA_OF_FILTERS) == residual


def test_a_long_chain_is_no_depth_and_a_deep_filter_is_refused():
    one = {"type": "eq", "term": "a", "value": 1}
    chain: Any = one
    for _ in range(400):
        chain = {"type": "or", "left": chain, "right": one}
    assert bound(chain) != FALSE

    deep: Any = one
    for level in range(300):
        deep = {"type": "and" if level % 2 else "or", "left": deep, "right": one}
    with pytest.raises(BadFilter, match="nested more than"):
        expression_from_rest(deep)


def test_many_nots_cancel_out():
    raw: Any = True
    for _ in range(500):
        raw = {"type": "not", "child": raw}

    assert expression_from_rest(raw) == TRUE


@pytest.mark.parametrize(
    ("raw", "error", "said"),
    [
        ("a = 1", BadFilter, "not a predicate"),
        ({"term": "a"}, BadFilter, "not a predicate"),
        ({"type": "like", "term": "a", "value": "x"}, BadFilter, "no predicate is of type 'like'"),
        ({"type": "eq", "term": "a"}, BadFilter, "other members than type, term, value"),
        ({"type": "eq", "term": "a", "value": 1, "x": 2}, BadFilter, "other members"),
        ({"type": "and", "left": True}, BadFilter, "other members"),
        ({"type": "eq", "term": "d", "value": None}, BadFilter, "null is not a literal"),
        ({"type": "eq", "term": 1, "value": 1}, BadFilter, "not a column's name"),
        ({"type": "in", "term": "a", "values": 1}, BadFilter, "not a list of literals"),
        ({"type": "eq", "term": "a", "value": [1]}, Unsupported, "compares a column with a list"),
        ({"type": "eq", "term": "zz", "value": 1}, UnknownColumn, "zz"),
        ({"type": "eq", "term": "day", "value": 1 << 40}, BadLiteral, "day"),
        ({"type": "eq", "term": "at", "value": 1 << 40}, BadLiteral, "at"),
        (
            {
                "type": "eq",
                "term": {"type": "transform", "transform": "day", "term": "ts"},
                "value": 1,
            },
            Unsupported,
            "function of a column",
        ),
        ({"type": "is-null", "child": {"type": "reference", "id": 1}}, Unsupported, "field id"),
        (
            {
                "type": "eq",
                "left": {"type": "reference", "name": "a"},
                "right": {"type": "reference", "name": "n"},
            },
            Unsupported,
            "compares a column with an object of type 'reference'",
        ),
    ],
)
def test_what_is_not_understood_is_refused_by_name(raw, error, said):
    with pytest.raises(error, match=said):
        bound(raw)
