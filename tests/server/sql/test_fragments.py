"""Queries in fragments have the rows, names and types of the whole, however rows are shared."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from floeberg.server.sql.unmergeable import AGGREGATES, UNSTABLE
from tests.support.sql_aggregates import divided_query
from tests.support.sql_floats import as_written
from tests.support.sql_shares import Engine, agree, agree_in_order, shares_of
from tests.support.sql_tables import read_whole, write_table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    return read_whole(write_table(tmp_path_factory.mktemp("t"), random.Random(1), files=8))


@pytest.fixture(scope="module")
def engine(table: pa.Table) -> Iterator[Engine]:
    made = Engine(table)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("text", "fragment", "merge"),
    [
        (
            "SELECT i, count(*) FROM t GROUP BY i",
            'SELECT "t"."i" AS c0, COUNT(*) AS c1 FROM i0 AS "t" GROUP BY "t"."i"',
            'SELECT c0 AS "i", CAST(COALESCE(SUM(c1), 0) AS BIGINT) AS "count_star()" FROM parts'
            " GROUP BY c0",
        ),
        (
            "SELECT sum(l) FROM t",
            'SELECT SUM("t"."l") AS c0 FROM i0 AS "t"',
            'SELECT SUM(c0) AS "sum(l)" FROM (SELECT CAST(c0 AS HUGEINT) AS c0 FROM parts)'
            " AS parts",
        ),
        (
            "SELECT s AS k, avg(p) FROM t GROUP BY k ORDER BY k LIMIT 3",
            'SELECT "t"."s" AS c0, SUM("t"."p") AS c1, COUNT("t"."p") AS c2 FROM i0 AS "t"'
            ' GROUP BY "t"."s"',
            'SELECT c0 AS "k", (ROUND(CAST(SUM(c1) AS DOUBLE) * 1e2) / (SUM(c2) * 1e2)) AS "avg(p)"'
            " FROM parts GROUP BY c0 ORDER BY 1 LIMIT 3",
        ),
        (
            "SELECT max(i), max(i) + 1 AS more FROM t WHERE s = 'a' HAVING count(*) > 1",
            'SELECT MAX("t"."i") AS c0, COUNT(*) AS c1 FROM i0 AS "t"',
            'SELECT MAX(c0) AS "max(i)", MAX(c0) + 1 AS "more" FROM parts'
            " HAVING CAST(COALESCE(SUM(c1), 0) AS BIGINT) > 1",
        ),
        (
            "SELECT count(DISTINCT s) FROM t",
            'SELECT "t"."s" AS c0 FROM i0 AS "t" GROUP BY "t"."s"',
            'SELECT COUNT(DISTINCT c0) AS "count(DISTINCT s)" FROM parts',
        ),
        (
            "SELECT s FROM t ORDER BY i DESC LIMIT 2 OFFSET 1",
            'SELECT * FROM (SELECT s, "t"."i" FROM i0 AS "t" ORDER BY 2 DESC LIMIT 3) AS q(c0, c1)',
            'SELECT c0 AS "s" FROM parts ORDER BY c1 DESC LIMIT 2 OFFSET 1',
        ),
        (
            "SELECT DISTINCT s FROM t LIMIT 9223372036854775807 OFFSET 1",
            'SELECT * FROM (SELECT DISTINCT s FROM i0 AS "t") AS q(c0)',
            'SELECT DISTINCT c0 AS "s" FROM parts LIMIT 9223372036854775807 OFFSET 1',
        ),
        (
            "WITH w AS (SELECT i + 1 AS j FROM t) SELECT j, count(*) FROM w AS x GROUP BY x.j",
            'SELECT "x"."j" AS c0, COUNT(*) AS c1 FROM (SELECT i + 1 AS j FROM i0 AS "t") AS x'
            ' GROUP BY "x"."j"',
            'SELECT c0 AS "j", CAST(COALESCE(SUM(c1), 0) AS BIGINT) AS "count_star()" FROM parts'
            " GROUP BY c0",
        ),
        (
            "SELECT n, rank() OVER (ORDER BY n) FROM (SELECT min(i) AS n FROM t GROUP BY s) q",
            'SELECT "t"."s" AS c0, MIN("t"."i") AS c1 FROM i0 AS "t" GROUP BY "t"."s"',
            'SELECT n, RANK() OVER (ORDER BY n) FROM (SELECT MIN(c1) AS "n" FROM parts GROUP BY c0)'
            " AS q",
        ),
        (
            "SELECT upper(s) FROM t WHERE i > 1 AND i + l > 1",
            'SELECT UPPER(s) FROM i0 AS "t" WHERE i + l > 1',
            None,
        ),
    ],
)
def test_a_fragment_computes_what_its_rows_allow(
    engine: Engine, text: str, fragment: str, merge: str | None
) -> None:
    fragments = engine.fragments(text)

    assert fragments is not None
    assert (fragments.fragment, fragments.merge) == (fragment, merge)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT median(i) FROM t",
        "SELECT string_agg(s, ',') FROM t",
        "SELECT list(i) FROM t",
        "SELECT i, mode(s) FROM t GROUP BY i",
        "SELECT approx_count_distinct(i) FROM t",
        "SELECT quantile_cont(i, 0.5) FROM t",
        "SELECT product(i) FROM t",
        "SELECT first(i) FROM t",
        "SELECT sum(i ORDER BY l) FROM t",
        "SELECT max(i, 2) FROM t",
        "SELECT avg(ts) FROM t",
        "SELECT count(DISTINCT i), count(DISTINCT s) FROM t",
        "SELECT any_value(DISTINCT i) FROM t",
        "SELECT id FROM t ORDER BY id",
        "SELECT id FROM t ORDER BY id LIMIT 9223372036854775807 OFFSET 1",
        "SELECT st.* FROM t ORDER BY a LIMIT 3",
        "SELECT unnest(st) FROM t ORDER BY a LIMIT 3",
        "SELECT DISTINCT ON (i) i, s FROM t",
        "SELECT i, count(*) FROM t GROUP BY ROLLUP (i)",
        "SELECT i, count(*) FROM t GROUP BY GROUPING SETS ((i), ())",
        "SELECT i, row_number() OVER () FROM t",
        "SELECT count(*) OVER () FROM t",
        "SELECT sum(i) OVER (), max(i) FROM t",
        "SELECT sum(count(*)) FILTER (WHERE true) OVER () FROM t GROUP BY i",
        "SELECT i, sum(count(*)) OVER () FROM t GROUP BY ALL",
        "SELECT i FROM t QUALIFY row_number() OVER (ORDER BY i) = 1",
        "SELECT random() FROM t",
        "SELECT count(*) FROM t WHERE ts > now()",
        "SELECT count(*) FROM t WHERE day = current_date",
        "SELECT count(*) FROM t WHERE i IN (SELECT 1)",
        "SELECT count(*) FROM t TABLESAMPLE 5 ROWS",
        "SELECT count(*) FROM t USING SAMPLE 5",
        "SELECT a.i FROM t a JOIN t b ON a.id = b.id",
        "SELECT t.i FROM t, range(3) r(n)",
        "SELECT min(s COLLATE NOCASE) FROM t",
        "SELECT id FROM t ORDER BY s COLLATE NOCASE LIMIT 3",
        "SELECT k, count(*) FROM (SELECT s COLLATE NOCASE AS k FROM t) GROUP BY k",
        "SELECT i FROM t LIMIT 10%",
        "SELECT id FROM t ORDER BY -id LIMIT (SELECT 3)",
        "SELECT count(*), now() FROM t",
        "SELECT min(e) FROM (SELECT s::ENUM('a', 'b') AS e FROM t)",
        "SELECT t.bit, count(*) FROM (SELECT i::BIT AS bit FROM t) t GROUP BY ALL",
        "SELECT i AS l, count(*) FROM t GROUP BY i HAVING l > 1 ORDER BY l + 1",
        "SELECT 1 FROM t GROUP BY 'a'",
        "SELECT i FROM t UNION ALL SELECT 1",
        "SELECT nonsense(i) FROM t LIMIT 1",
        "SELECT 1",
    ],
)
def test_what_needs_all_rows_at_once_has_no_fragments(engine: Engine, text: str) -> None:
    assert engine.fragments(text) is None


@pytest.mark.parametrize("shares", [0, 1, 4])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*), count(i), sum(i), avg(i), min(s), bool_or(b), any_value(i) FROM t"
        " WHERE id < 0",
        "SELECT s, count(*) FROM t WHERE id < 0 GROUP BY s",
        "SELECT count(DISTINCT i), sum(DISTINCT i), count(*), avg(DISTINCT i) FROM t WHERE id < 0",
        "SELECT count_if(b) FROM t WHERE id < 0",
        "SELECT 'all', coalesce(sum(p), 0) FROM t WHERE id < 0 HAVING count(*) = 0",
        "SELECT DISTINCT s FROM t WHERE id < 0",
        "SELECT s FROM t WHERE id < 0 ORDER BY i LIMIT 3",
        "SELECT s FROM t WHERE id < 0",
    ],
)
def test_no_rows_are_aggregated_as_by_the_whole_query(
    engine: Engine, table: pa.Table, text: str, shares: int
) -> None:
    fragments = engine.fragments(text)

    assert fragments is not None
    divided = engine.divided(text, fragments, shares_of(table, random.Random(0), shares))
    assert divided == engine.whole(text)


@pytest.mark.parametrize("seed", range(10))
def test_fragments_agree_with_the_whole_query(engine: Engine, table: pa.Table, seed: int) -> None:
    rng = random.Random(seed)
    compared = 0
    while compared < 12:
        text = as_written(divided_query(rng))
        try:
            shape, rows = engine.whole(text)
        except duckdb.Error:
            continue  # an overflow, or text that is no number
        fragments = engine.fragments(text)
        assert fragments is not None, text
        shares = shares_of(table, rng, rng.choice([1, 2, 5]))
        divided_shape, divided_rows = engine.divided(text, fragments, shares)
        assert divided_shape == shape, text
        same = agree_in_order if "LIMIT" in text else agree
        assert same(divided_rows, rows), text
        compared += 1


_JSON = """('{"a": 1, "A": ' || id || '}')"""


@pytest.mark.parametrize(
    "text",
    [
        # names that mean one thing in one place and another in another
        "SELECT -i AS i, count(*) FROM t WHERE i > -100 GROUP BY i",
        "SELECT upper(s) AS s, count(*) FROM t GROUP BY s",
        "SELECT i AS s, count(*) FROM t GROUP BY i",
        "SELECT s, count(*) AS c, 'x' AS c0, 1 AS parts FROM t GROUP BY s HAVING c > 2",
        "SELECT x.s, max(X.I) FROM (SELECT * FROM t) AS x GROUP BY x.s",
        "WITH a(x, y) AS (SELECT s, i FROM t) SELECT x, max(y) FROM a GROUP BY x",
        "WITH a AS (SELECT s, i FROM t) SELECT z.x, max(z.y) FROM a AS z(x, y) GROUP BY z.x",
        # a field is called as a column is, which ORDER BY means
        "SELECT q.w.i, l FROM (SELECT {'i': -id} AS w, * FROM t) AS q ORDER BY i, id LIMIT 5",
        "SELECT (q.w).i FROM (SELECT {'i': -id} AS w, * FROM t) AS q ORDER BY i, id LIMIT 5",
        "SELECT q.w.i AS i FROM (SELECT {'i': -id} AS w, * FROM t) AS q ORDER BY i, id LIMIT 5",
        "SELECT q.* FROM (SELECT {'i': -id} AS w, i, id FROM t) AS q ORDER BY i, id LIMIT 5",
        # texts that differ in case alone
        f"SELECT {_JSON}->>'$.A' AS x, {_JSON}->>'$.a' AS y, count(*) FROM t GROUP BY 1, 2",
        f"SELECT max({_JSON}->>'$.A'), max({_JSON}->>'$.a') FROM t",
        # one part for several
        "SELECT sum(i), avg(i), count(i), sum(I) / 3, sum(t.i) // 3, -sum(i) FROM t",
        "SELECT sum(DISTINCT p), count(DISTINCT p), avg(DISTINCT p), max(p) FROM t GROUP BY b",
        # the innermost query that needs all rows is not the outermost
        "SELECT count(*) FROM (SELECT DISTINCT s FROM t)",
        "SELECT x FROM range(500) r(x) WHERE x < (SELECT count(*) FROM t)",
        "WITH a AS (SELECT s, count(*) n FROM t GROUP BY s)"
        " SELECT * FROM a UNION ALL SELECT 'all', sum(n)::BIGINT FROM a",
        # rows that make several
        "SELECT unnest(tags) AS tag, id FROM t",
        "SELECT unnest(tags), count(*) FROM t GROUP BY 1",
        # a half, which is rounded
        "SELECT round(avg(p), 2) FROM t GROUP BY f",
    ],
)
def test_each_query_in_fragments_is_what_it_is_whole(
    engine: Engine, table: pa.Table, text: str
) -> None:
    fragments = engine.fragments(text)

    assert fragments is not None
    divided = engine.divided(text, fragments, shares_of(table, random.Random(5), 3))
    shape, rows = engine.whole(text)
    assert divided[0] == shape
    assert agree(divided[1], rows)


@pytest.mark.parametrize(
    ("text", "is_divided"),
    [
        ("SELECT id, count(*) FROM t GROUP BY id", False),
        ("SELECT s, id, max(i) FROM t GROUP BY ALL", False),
        ("SELECT count(DISTINCT id) FROM t", False),
        ("SELECT id % 10, count(*) FROM t GROUP BY 1", True),
        ("SELECT s, count(*), max(id) FROM t GROUP BY s", True),
    ],
)
def test_groups_of_single_rows_are_not_made_in_fragments(
    engine: Engine, text: str, is_divided: bool
) -> None:
    assert (engine.fragments(text, identifier="id") is not None) == is_divided


def test_every_limited_row_is_a_row(engine: Engine, table: pa.Table) -> None:
    text = "SELECT id, s FROM t LIMIT 9 OFFSET 2"
    fragments = engine.fragments(text)
    assert fragments is not None

    _, rows = engine.divided(text, fragments, shares_of(table, random.Random(3), 20))

    everything = set(engine.whole("SELECT id, s FROM t")[1])
    assert len(rows) == len(set(rows)) == 9
    assert set(rows) <= everything


def test_all_aggregates_and_unstable_functions_of_the_engine_are_known() -> None:
    with duckdb.connect() as connection:
        functions = connection.execute(
            "SELECT DISTINCT function_name, function_type, stability FROM duckdb_functions()"
        ).fetchall()

    assert {name for name, type_, _ in functions if type_ == "aggregate"} <= AGGREGATES
    assert {name for name, _, stability in functions if stability == "VOLATILE"} <= UNSTABLE
