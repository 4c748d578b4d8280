from __future__ import annotations

import duckdb
import pytest

from floeberg.protocol.errors import BadSql, FloebergError, ReadOnly, UnsupportedSql
from floeberg.server.sql.parsing import (
    MAX_CHARACTERS,
    MAX_OPEN,
    MAX_QUERIES,
    parse_sql,
    to_sql,
)


@pytest.mark.parametrize(
    ("text", "explained", "analyzed"),
    [
        ("SELECT 1", False, False),
        (" \n SELECT 1 ; ", False, False),
        ("explain SELECT 1", True, False),
        ("-- why\n/* so */ EXPLAIN ANALYZE SELECT 1;", True, True),
        ("(SELECT 1)", False, False),
    ],
)
def test_one_statement_is_read_whatever_stands_around_it(
    text: str, explained: bool, analyzed: bool
) -> None:
    parsed = parse_sql(text)

    assert to_sql(parsed.tree).strip("()") == "SELECT 1"
    assert (parsed.explained, parsed.analyzed) == (explained, analyzed)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no statement"),
        (" ; ;", "there is no statement"),
        ("-- only this", "there is no statement"),
        ("EXPLAIN", "there is no statement"),
        ("SELECT", "there is no statement"),
        ("SELECT 1; SELECT 2", "line 1, column 11: there is a second statement"),
        ("SELECT 1;\n\n DROP TABLE t", "line 3, column 2: there is a second statement"),
        ("selct 1", "line 1, column 1: a statement starts with SELECT, .* and not with 'selct'"),
        ("SELECT 1\n  a b", "line 2, column 5: syntax error at 'b'"),
        ("explain\nSELECT a b c", "line 2, column 12: syntax error at 'c'"),
        ("SELECT a FROM t WHERE a >", "line 1, column 25: something is missing at '>'"),
        ("SELECT a FROM WHERE x", "line 1, column 15: syntax error at 'WHERE'"),
        ("SELECT (1", r"line 1, column 9: expected '\)' at '1'"),
        ("SELECT 'abc", "line 1, column 8: ' is not closed"),
        ('SELECT "abc', 'line 1, column 8: " is not closed'),
        ("SELECT /* abc", "a quote or comment is not closed"),
        ("SELECT 'a\x00b'", "NUL"),
        ("SELECT ?, $1", "either"),
    ],
)
def test_what_is_no_statement_is_told_with_its_place(text: str, message: str) -> None:
    with pytest.raises(BadSql, match=message):
        parse_sql(text)


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET a = 1",
        "CREATE TABLE t AS SELECT 1",
        "DROP TABLE t",
        "COPY t TO 'x'",
        "CALL f()",
        "BEGIN",
        "EXECUTE x",
        "EXPLAIN ANALYZE DELETE FROM t",
    ],
)
def test_statements_that_change_something_are_refused(text: str) -> None:
    with pytest.raises(ReadOnly, match="tables can only be read"):
        parse_sql(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INSTALL httpfs", "INSTALL is not served.*built in"),
        ("FORCE INSTALL httpfs", "FORCE is not served.*built in"),
        ("LOAD httpfs", "LOAD is not served.*built in"),
        ("ATTACH 'x'", "ATTACH is not served.*SHOW DATABASES"),
        ("DETACH x", "DETACH is not served.*SHOW DATABASES"),
    ],
)
def test_what_would_reach_beyond_the_catalogs_is_refused(text: str, message: str) -> None:
    with pytest.raises(UnsupportedSql, match=message):
        parse_sql(text)


@pytest.mark.parametrize("text", ["SET memory_limit = '1TB'", "PRAGMA database_list", "USE other"])
def test_settings_are_refused_and_options_named(text: str) -> None:
    with pytest.raises(UnsupportedSql, match="ref and timezone are options of the session"):
        parse_sql(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT '" + "x" * MAX_CHARACTERS + "'", "characters"),
        ("SELECT 1" + ", 1" * 30_000, "has more than 50,000 words and signs"),
        ("SELECT 1" + ", a.b" * 15_000, "has 60,002 words and signs"),
        ("SELECT " + "(" * (MAX_OPEN + 1) + "1" + ")" * (MAX_OPEN + 1), "brackets"),
        ("SELECT " + "CASE WHEN a THEN " * 60 + "1" + " END" * 60, "brackets or CASEs"),
        ("SELECT " + "(" * 60_000, "words and signs"),
        ("SELECT " + "(" * 10_000, "brackets"),
        ("SELECT " + "NOT " * 5_000 + "a", "nested too deeply"),
        ("SELECT " + "- " * 20_000 + "1", "nested too deeply"),
        ("SELECT 1" + "::int" * 2_000, "nested too deeply"),
        ("SELECT a" + ".b" * 2_000, "nested too deeply"),
        ("SELECT * FROM a" + " JOIN b" * 3_000 + " ON true", "nested too deeply"),
        ("SELECT 1" + " UNION ALL SELECT 1" * MAX_QUERIES, "is made of"),
        ("PIVOT t ON a USING sum(b)", "behind FROM"),
        ("SUMMARIZE t", "aggregates"),
        ("SHOW FUNCTIONS", "SHOW TABLES"),
        ("SHOW t", "DESCRIBE"),
    ],
)
def test_bombs_and_what_is_not_served_are_refused_with_a_way_out(text: str, message: str) -> None:
    with pytest.raises(UnsupportedSql, match=message):
        parse_sql(text)


@pytest.mark.parametrize("open_", ["(", "abs(", "(SELECT ", "[", "{'a': ", "a IN (", "f(x -> "])
def test_as_many_brackets_as_are_allowed_can_be_read_and_written(open_: str) -> None:
    count = MAX_OPEN // max(1, sum(open_.count(c) for c in "([{"))
    closing = {"(": ")", "[": "]", "{": "}"}[next(c for c in reversed(open_) if c in "([{")]

    to_sql(parse_sql(f"SELECT {open_ * count}1{closing * count}").tree)


@pytest.mark.parametrize("joint", [" AND a", " + 1", " || 'x'", " UNION ALL SELECT 1"])
def test_chains_are_not_deep(joint: str) -> None:
    count = MAX_QUERIES - 1 if "SELECT" in joint else 2_000

    to_sql(parse_sql("SELECT a" + joint * count).tree)


def test_a_comment_cannot_end_in_what_is_sent_on() -> None:
    tree = parse_sql("SELECT 1 -- */ ; DROP TABLE t\n").tree

    assert to_sql(tree) == "SELECT 1"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'it''s', \"a\"\"b\".c, $$x'y$$, 1_000, .5, 5., 1e5",
        "SELECT a FROM t WHERE s LIKE 'x!%' ESCAPE '!' AND NOT b IS TRUE",
        "SELECT list_transform(l, lambda x: x + 1), {'a': 1}, [1, 2][1], MAP {'k': 1} FROM t",
        "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x WHERE n < 5) FROM x",
        "SELECT * EXCLUDE (a) REPLACE (b + 1 AS b) FROM t QUALIFY row_number() OVER () = 1",
        "SELECT count(*) FILTER (WHERE a > 1), sum(DISTINCT b) FROM t GROUP BY ALL ORDER BY ALL",
        "SELECT * FROM a ASOF JOIN b ON a.x >= b.x SEMI JOIN c USING (y)",
    ],
)
def test_what_is_written_is_sql_to_the_engine(text: str) -> None:
    written = to_sql(parse_sql(text).tree)

    (statement,) = duckdb.extract_statements(written)
    assert statement.type == duckdb.StatementType.SELECT


@pytest.mark.parametrize("text", ["SELECT )", "SELECT a[", "FROM", "WITH", "SELECT * ("])
def test_odd_texts_are_errors_of_ours(text: str) -> None:
    with pytest.raises(FloebergError):
        parse_sql(text)
