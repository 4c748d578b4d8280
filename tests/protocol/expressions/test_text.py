from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.errors import BadFilter, FloebergError
from floeberg.protocol.expressions import as_expression
from floeberg.protocol.expressions.binding import bind
from floeberg.protocol.expressions.json_form import expression_from_json, expression_to_json
from floeberg.protocol.expressions.model import (
    FALSE,
    TRUE,
    And,
    Expression,
    Not,
    Op,
    Or,
    Predicate,
    RawLiteral,
)
from floeberg.protocol.expressions.text import format_filter, parse_filter
from floeberg.protocol.types import Json
from tests.support import filter_strategies as filters


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("a = 1", ["=", "a", 1]),
        ("a == 1", ["=", "a", 1]),
        ("a<>-1", ["!=", "a", -1]),
        ("a != 'it''s'", ["!=", "a", "it's"]),
        ("a<=1.5", ["<=", "a", 1.5]),
        ("5 < a", [">", "a", 5]),
        ("5 = a", ["=", "a", 5]),
        ("'x' >= a.b", ["<=", "a.b", "x"]),
        ("a IS NULL", ["is-null", "a"]),
        ("a is not null", ["not-null", "a"]),
        ("a IS NaN", ["is-nan", "a"]),
        ("a IS NOT NAN", ["not-nan", "a"]),
        ("a IN (1, 2,3)", ["in", "a", [1, 2, 3]]),
        ("a NOT IN ('x')", ["not-in", "a", ["x"]]),
        ("a IN ()", ["in", "a", []]),
        ("a LIKE 'x y%'", ["starts-with", "a", "x y"]),
        ("a NOT LIKE '%'", ["not-starts-with", "a", ""]),
        ("a STARTS WITH 'x%'", ["starts-with", "a", "x%"]),
        ("a NOT STARTS WITH 'x'", ["not-starts-with", "a", "x"]),
        ("starts_with(a.b, 'x')", ["starts-with", "a.b", "x"]),
        ("a BETWEEN 1 AND 2", ["and", [">=", "a", 1], ["<=", "a", 2]]),
        ("a NOT BETWEEN 1 AND 2", ["not", ["and", [">=", "a", 1], ["<=", "a", 2]]]),
        ("a = TRUE", ["=", "a", True]),
        ("true", ["true"]),
        ("FALSE OR a=1", ["or", ["false"], ["=", "a", 1]]),
        ("a = DATE '2024-01-02'", ["=", "a", "2024-01-02"]),
        ("a = timestamp '2024-01-02T00:00:00'", ["=", "a", "2024-01-02T00:00:00"]),
        ("date = '2024-01-02'", ["=", "date", "2024-01-02"]),
        ("starts_with = 1 and starts = 2", ["and", ["=", "starts_with", 1], ["=", "starts", 2]]),
        ('"with space" = 1', ["=", "with space", 1]),
        ("`a``b` = 1", ["=", "a`b", 1]),
        ('"say ""x""" = 1', ["=", 'say "x"', 1]),
        ('"a.b".`c d`.e = 1', ["=", "a.b.c d.e", 1]),
        ("a . b = 1", ["=", "a.b", 1]),
        ("a.in = 1", ["=", "a.in", 1]),
        ("ünïcode = 'ü'", ["=", "ünïcode", "ü"]),
        ('"emoji🧊" = 1', ["=", "emoji🧊", 1]),
        ("a=1 AND b=2 OR c=3", ["or", ["and", ["=", "a", 1], ["=", "b", 2]], ["=", "c", 3]]),
        ("a=1 AND (b=2 OR c=3)", ["and", ["=", "a", 1], ["or", ["=", "b", 2], ["=", "c", 3]]]),
        ("NOT a=1 AND b=2", ["and", ["not", ["=", "a", 1]], ["=", "b", 2]]),
        ("((a=1))", ["=", "a", 1]),
        ("\n a\t=\n1 ", ["=", "a", 1]),
    ],
)
def test_text_is_read_as_the_json_form_that_means_it(text: str, raw: Json):
    assert parse_filter(text) == expression_from_json(raw)


def test_a_double_not_says_nothing():
    assert parse_filter("NOT NOT a = 1") == parse_filter("a = 1")


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("7", 7),
        ("-7", -7),
        ("+7", 7),
        ("9223372036854775808", 2**63),
        ("0.1", 0.1),
        ("-0.0", -0.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("1.5E-3", 0.0015),
        ("1800000000000000000000.0000000001", Decimal("1800000000000000000000.0000000001")),
        ("1e400", Decimal("1e400")),
        ("X'00fF'", b"\x00\xff"),
        ("x''", b""),
        ("''", ""),
        ("''''", "'"),
        ("'a\nb'", "a\nb"),
    ],
)
def test_literals_keep_their_digits(text: str, literal: RawLiteral):
    parsed = parse_filter(f"x = {text}")

    assert isinstance(parsed, Predicate)
    assert repr(parsed.literals) == repr((literal,))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("a", "comparison of 'a' with a literal .* at character 2"),
        ("a =", "a literal at character 4 of the filter, found the end"),
        ("a = b", "columns are not compared"),
        ('a = "x"', "text goes in single quotes"),
        ("a = NULL", "write a IS NULL"),
        ("a IN (1, NULL)", "write a IS NULL"),
        ("a IN 1", r"'\(' at character 6"),
        ("a IN (1 2)", r"'\)' at character 9"),
        ("a IN (1,)", "a literal at character 9"),
        ("a IS 1", "NULL, NOT NULL, NAN"),
        ("a NOT = 1", "IN, BETWEEN, LIKE or STARTS WITH"),
        ("a = 1 b = 2", "AND, OR or the end at character 7"),
        ("a = 1 AND", "a column at character 10"),
        ("(a = 1", "closing parenthesis"),
        ("a = 1)", "AND, OR or the end"),
        ("()", "a column at character 2"),
        ("NOT", "a column"),
        ("a LIKE '%x'", "only 'prefix%'"),
        ("a LIKE 'x'", "only 'prefix%'"),
        ("a LIKE 'x_y%'", "only 'prefix%'"),
        (r"a LIKE 'x\%%'", "only 'prefix%'"),
        ("a LIKE 7", "a pattern in quotes"),
        ("a STARTS 'x'", "expected WITH"),
        ("a STARTS WITH 7", "a prefix in quotes"),
        ("a BETWEEN 1, 2", "expected AND"),
        ("1 = 2", "two literals"),
        ("in = 1", 'write "in" in double quotes'),
        ("1digit = 1", "cannot be read"),
        ("dash-ed = 1", "cannot be read"),
        ("a = 'x", "cannot be read"),
        ("a = X'0'", "hexadecimal"),
        ("a = X'zz'", "hexadecimal"),
        ("a = 1e9999999", "sensible size"),
        ("a = " + "1" * 5000, "sensible size"),
        ("a; drop", "cannot be read"),
        ("a. = 1", "after the dot"),
    ],
)
def test_a_mistake_is_shown_with_its_place(text: str, message: str):
    with pytest.raises(BadFilter, match=message):
        parse_filter(text)


@given(filters.expressions)
def test_a_filter_means_the_same_after_its_text(expression: Expression):
    text = format_filter(expression)

    assert bind(parse_filter(text), filters.SCHEMA) == bind(expression, filters.SCHEMA)


@given(st.text(max_size=12), st.text(max_size=12))
def test_any_name_and_any_text_can_be_written(name: str, literal: str):
    expression = Predicate(Op.EQ, name, (literal,))

    assert parse_filter(format_filter(expression)) == expression


@given(
    st.lists(
        st.sampled_from(
            [
                "a",
                "1",
                "(",
                ")",
                "AND",
                "OR",
                "NOT",
                "IN",
                "IS",
                "NULL",
                "=",
                "'x'",
                ",",
                "LIKE",
                ".",
            ]
        ),
        max_size=12,
    ).map(" ".join)
    | st.text(max_size=20)
)
def test_any_text_is_a_filter_or_a_named_error(text: str):
    try:
        parsed = as_expression(text)
    except FloebergError:
        return
    format_filter(parsed)
    expression_to_json(parsed)


def test_no_nesting_overflows_the_stack():
    many = 50_000

    assert parse_filter("NOT " * many + "a = 1") == Predicate(Op.EQ, "a", (1,))
    with pytest.raises(BadFilter, match="nested groups"):
        parse_filter("(" * many + "a = 1" + ")" * many)
    with pytest.raises(BadFilter, match="nested groups"):
        parse_filter("NOT (" * 500 + "a = 1" + ")" * 500)
    deep: Expression = TRUE
    for _ in range(many):
        deep = Not(And((deep, TRUE)))
    with pytest.raises(BadFilter, match="deep"):
        format_filter(deep)
    with pytest.raises(BadFilter, match="deep"):
        expression_to_json(deep)


def test_a_long_chain_is_one_wide_node():
    parsed = parse_filter(" OR ".join(f"a = {n}" for n in range(20_000)))

    assert isinstance(parsed, Or)
    assert len(parsed.operands) == 20_000


def test_a_filter_is_given_as_text_json_or_expression():
    expected = Predicate(Op.EQ, "id", (7,))

    assert as_expression("id = 7") == expected
    assert as_expression(["=", "id", 7]) == expected
    assert as_expression(("=", "id", 7)) == expected
    assert as_expression(' ["=", "id", 7]') == expected
    assert as_expression(expected) is expected
    assert as_expression(None) == TRUE
    assert as_expression(FALSE) == FALSE
    with pytest.raises(BadFilter, match="not dict"):
        as_expression({"id": 7})  # type: ignore[arg-type]
