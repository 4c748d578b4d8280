"""Queries as scans and SQL over them: what is read, what is pushed, and the same answer."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from floeberg.embedded import Table, open_table
from floeberg.protocol.errors import UnsupportedSql
from floeberg.protocol.expressions.json_form import expression_to_json
from floeberg.protocol.schema import Schema
from floeberg.server.sql.instants import Zone
from floeberg.server.sql.names import Session, TableReference, Version
from floeberg.server.sql.splitting import Split, split
from floeberg.server.sql.statements import parse_statement
from tests.support.lake import required, struct
from tests.support.lake import schema as lake_schema
from tests.support.sql_floats import as_written, by_ieee
from tests.support.sql_queries import query
from tests.support.sql_tables import connection, write_table

SCHEMAS = {
    "t": {
        "id": required("long"),
        "a": "int",
        "s": "string",
        "st": struct({"x": "int"}),
        "Big": "int",
    },
    "u": {"id": required("long"), "c": "int", "d": "double", "flag": "boolean"},
    "twice": {"a": "int", "A": "int"},
    "files": {"file_path": "string", "record_count": "long"},
}


def schema_of(reference: TableReference) -> Schema:
    return Schema.from_json(lake_schema(SCHEMAS[reference.parts[-1]]))


def parted(text: str) -> Split:
    session = Session(["lake"], "lake", ("db",), zone=Zone("Europe/Amsterdam"))
    return split(parse_statement(text), session, schema_of)


def columns(text: str) -> list[list[str]]:
    return [[column.name for column in each.columns] for each in parted(text).inputs]


def filters(text: str) -> list[Any]:
    return [expression_to_json(each.filter) for each in parted(text).inputs]


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("SELECT a FROM t", 'SELECT a FROM i0 AS "t"'),
        ("SELECT x.a FROM db.t AS x", "SELECT x.a FROM i0 AS x"),
        ("SELECT db.t.a FROM db.t", 'SELECT "t".a FROM i0 AS "t"'),
        ("SELECT lake.db.t.st.x FROM t", 'SELECT "t".st.x FROM i0 AS "t"'),
        ("SELECT a FROM t VERSION AS OF 5", 'SELECT a FROM i0 AS "t"'),
        ("SELECT a FROM t AT (VERSION => 5) AS x", "SELECT a FROM i0 AS x"),
        (
            "SELECT x.t.a, y.t.a FROM x.t JOIN y.t ON x.t.id = y.t.id",
            'SELECT "t".a, "i1".a FROM i0 AS "t" JOIN i1 AS "i1" ON "t".id = "i1".id',
        ),
        ("SELECT i0.a FROM t AS i0", "SELECT i0.a FROM i1 AS i0"),
        (
            "WITH t AS (SELECT * FROM t) SELECT * FROM t",
            'WITH t AS (SELECT * FROM i0 AS "t") SELECT * FROM t',
        ),
        (
            "WITH a AS (SELECT * FROM u), b AS (SELECT 1) SELECT * FROM a, b",
            'WITH a AS (SELECT * FROM i0 AS "u"), b AS (SELECT 1) SELECT * FROM a, b',
        ),
        (
            "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT * FROM t, u",
            "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t)"
            ' SELECT * FROM t, i0 AS "u"',
        ),
        (
            "SELECT * FROM u WHERE id IN (WITH u AS (SELECT 1 AS id) SELECT id FROM u)",
            'SELECT * FROM i0 AS "u" WHERE id IN (WITH u AS (SELECT 1 AS id) SELECT id FROM u)',
        ),
        ("SELECT * FROM range(3)", "SELECT * FROM RANGE(0, 3)"),
        (
            "SELECT a FROM t TABLESAMPLE 5 ROWS",
            'SELECT a FROM i0 AS "t" TABLESAMPLE RESERVOIR (5 ROWS)',
        ),
        ("VALUES (1)", "VALUES (1)"),
    ],
)
def test_the_query_reads_inputs_in_the_place_of_tables(text: str, sql: str) -> None:
    assert parted(text).sql == sql


def test_a_table_that_stands_twice_is_two_inputs() -> None:
    first, second = parted("SELECT x.a, y.s FROM t x, t y WHERE x.a = 1 AND y.a = 2").inputs

    assert (first.name, second.name) == ("i0", "i1")
    assert expression_to_json(first.filter) == ["=", "a", 1]
    assert expression_to_json(second.filter) == ["=", "a", 2]


def test_an_input_is_a_scan_of_the_version_that_is_meant() -> None:
    (only,) = parted("SELECT s FROM t VERSION AS OF 5 WHERE a > 1").inputs
    (meaning,) = only.table.meanings[:1]

    request = only.request(meaning.version)

    assert (request.snapshot_id, request.select) == (5, ("s",))
    assert only.request(Version(ref="dev")).ref == "dev"


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("SELECT a FROM t", [["a"]]),
        ("SELECT A, BIG FROM t", [["a", "Big"]]),
        ("SELECT s FROM t WHERE a = 1 ORDER BY id", [["id", "s"]]),
        ("SELECT t.a, u.c FROM t, u WHERE t.id = u.id", [["id", "a"], ["id", "c"]]),
        ("SELECT t.a, c FROM t JOIN u USING (id)", [["id", "a"], ["id", "c"]]),
        ("SELECT st.x FROM t", [["st"]]),
        ("SELECT t.st.x FROM t", [["st"]]),
        ("SELECT (st).x FROM t", [["st"]]),
        ("SELECT upper(s) FROM t GROUP BY ALL HAVING max(a) > 1", [["a", "s"]]),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE c = t.id)", [["id", "a"], ["c"]]),
        ("SELECT sum(a) OVER w FROM t WINDOW w AS (PARTITION BY s)", [["a", "s"]]),
        ("SELECT count(*) FILTER (WHERE a > 1) FROM t", [["a"]]),
        ("SELECT a AS c FROM t, u", [["a"], []]),
        ("SELECT a + 1 AS c, c FROM t, u", [["a"], ["c"]]),
        ("SELECT list_transform([1], x -> x + a) FROM t", [["a"]]),
        ("SELECT x.a FROM t AS x, u y WHERE x.id = y.id", [["id", "a"], ["id"]]),
        ("WITH x AS (SELECT a FROM t) SELECT x.a FROM x", [["a"]]),
        ("SELECT a FROM t WHERE EXISTS (SELECT * FROM u WHERE c = t.id)", [["id", "a"], ["c"]]),
        ("SELECT a FROM t WHERE NOT EXISTS (FROM u SELECT *)", [["a"], []]),
        ("SELECT a FROM t WHERE EXISTS (SELECT u.* FROM u WHERE c = 1)", [["a"], []]),
        # nothing is needed but the rows
        ("SELECT count(*) FROM t", [[]]),
        ("SELECT 1 FROM u", [[]]),
        # but a name that stands for nothing must stay a mistake
        ("SELECT no_column FROM u", [["id"]]),
        # all is needed, or may be
        ("SELECT * FROM t, u", [list(SCHEMAS["t"]), list(SCHEMAS["u"])]),
        ("SELECT t.* FROM t, u", [list(SCHEMAS["t"]), []]),
        ("SELECT t FROM t", [list(SCHEMAS["t"])]),
        ("SELECT count(x) FROM t AS x", [list(SCHEMAS["t"])]),
        ("SELECT COLUMNS('a.*') FROM t", [list(SCHEMAS["t"])]),
        ("SELECT #2 FROM t WHERE s = 'x'", [list(SCHEMAS["t"])]),
        ("SELECT c, #1 FROM u, (SELECT a FROM t)", [list(SCHEMAS["u"]), ["a"]]),
        ("SELECT q FROM t AS x(p, q, r, s, v)", [list(SCHEMAS["t"])]),
        ("SELECT 1 FROM t NATURAL JOIN u", [list(SCHEMAS["t"]), list(SCHEMAS["u"])]),
        ("SELECT * FROM t PIVOT (sum(a) FOR s IN ('x'))", [list(SCHEMAS["t"])]),
        ("SELECT a FROM (SELECT * FROM t) x", [list(SCHEMAS["t"])]),
        ("SELECT 1 WHERE EXISTS (SELECT * FROM t UNION SELECT * FROM t)", [list(SCHEMAS["t"])] * 2),
        ("SELECT 1 WHERE EXISTS (SELECT DISTINCT * FROM t OFFSET 1)", [list(SCHEMAS["t"])]),
        ("SELECT 1 WHERE EXISTS (SELECT * FROM t GROUP BY ALL OFFSET 1)", [list(SCHEMAS["t"])]),
        ("SELECT x FROM t AS x", [list(SCHEMAS["t"])]),
        ("SELECT st.* FROM t", [["st"]]),
        ("SELECT t.s.upper() FROM t AS t", [list(SCHEMAS["t"])]),
    ],
)
def test_columns_that_a_query_needs(text: str, needed: list[list[str]]) -> None:
    assert columns(text) == needed


@pytest.mark.parametrize(
    ("text", "sql", "filters_"),
    [
        (
            "SELECT s FROM t WHERE a > 1 AND length(s) = 2 AND (id = 1 OR id = 2)",
            'SELECT s FROM i0 AS "t" WHERE LENGTH(s) = 2',
            [["and", [">", "a", 1], ["or", ["=", "id", 1], ["=", "id", 2]]]],
        ),
        ("SELECT s FROM t WHERE (a = 1)", 'SELECT s FROM i0 AS "t"', [["=", "a", 1]]),
        (
            "SELECT s FROM t WHERE (a = 1 OR length(s) = 2) AND id = 3 AND (s = 'x' OR a = id)",
            "SELECT s FROM i0 AS \"t\" WHERE (a = 1 OR LENGTH(s) = 2) AND (s = 'x' OR a = id)",
            [["=", "id", 3]],
        ),
        (
            "SELECT c FROM t x JOIN u y ON x.id = y.id AND x.a = 1 WHERE x.a > 0 AND y.c = 2",
            "SELECT c FROM i0 AS x JOIN i1 AS y ON x.id = y.id AND x.a = 1",
            [["and", [">", "a", 0], ["=", "a", 1]], ["=", "c", 2]],
        ),
        (
            "SELECT s FROM t WHERE a = 1 AND id IN (SELECT id FROM u WHERE c = 2)",
            'SELECT s FROM i0 AS "t" WHERE id IN (SELECT id FROM i1 AS "u")',
            [["=", "a", 1], ["=", "c", 2]],
        ),
        # a row that is not there makes one of nulls
        (
            "SELECT c FROM t x LEFT JOIN u y ON x.id = y.id WHERE x.a > 0 AND y.c = 2",
            "SELECT c FROM i0 AS x LEFT JOIN i1 AS y ON x.id = y.id WHERE x.a > 0 AND y.c = 2",
            [[">", "a", 0], ["=", "c", 2]],
        ),
        # the condition may mean a column of the query in brackets
        (
            "SELECT 1 FROM t, (SELECT 1 AS z) q WHERE t.a = 1",
            'SELECT 1 FROM i0 AS "t", (SELECT 1 AS z) AS q WHERE t.a = 1',
            [["=", "a", 1]],
        ),
        (
            "SELECT 1 FROM t USING SAMPLE 5 WHERE a = 1",
            'SELECT 1 FROM i0 AS "t" WHERE a = 1 USING SAMPLE RESERVOIR (5 ROWS)',
            [["true"]],
        ),
        # what a coordinator tells by itself is no scan
        (
            "SELECT file_path FROM db.t.files WHERE record_count = 1",
            'SELECT file_path FROM i0 AS "files" WHERE record_count = 1',
            [["=", "record_count", 1]],
        ),
    ],
)
def test_what_a_scan_decides_leaves_the_query(text: str, sql: str, filters_: list[Any]) -> None:
    assert (parted(text).sql, filters(text)) == (sql, filters_)


A1, C1 = ["=", "a", 1], ["=", "c", 1]
ALL = ["true"]


@pytest.mark.parametrize(
    ("text", "pushed"),
    [
        (
            "SELECT 1 FROM t WHERE a = 1 AND s LIKE 'x%y' AND abs(a) > 2",
            [["and", A1, ["starts-with", "s", "x"]]],
        ),
        ("SELECT 1 FROM t WHERE a = 1 OR abs(a) > 2", [ALL]),
        ("SELECT 1 FROM t WHERE a = 3 - 2", [A1]),
        (
            "SELECT 1 FROM t WHERE (a = 1 AND s = 'x') OR (s = 'y' AND a = 1)",
            [["and", A1, ["or", ["=", "s", "x"], ["=", "s", "y"]]]],
        ),
        ("SELECT 1 FROM t WHERE (a = 1 AND s = 'x') OR a = 1", [A1]),
        ("SELECT 1 FROM t WHERE a = 1 AND random() < 0.5", [A1]),
        ("SELECT count(*) FROM t WHERE a = 1 GROUP BY s LIMIT 5", [A1]),
        ("SELECT 1 FROM t HAVING max(a) = 1", [ALL]),
        ("SELECT 1 FROM t QUALIFY a = 1", [ALL]),
        ("SELECT a = 1 FROM t", [ALL]),
        # several tables
        ("SELECT 1 FROM t, u WHERE a = 1 AND c = 1 AND a = c", [A1, C1]),
        (
            "SELECT 1 FROM t, u WHERE (a = 1 AND c = 1) OR (a = 2 AND c = 2)",
            [["or", A1, ["=", "a", 2]], ["or", C1, ["=", "c", 2]]],
        ),
        ("SELECT 1 FROM t, u WHERE a = 1 OR c = 1", [ALL, ALL]),
        ("SELECT 1 FROM t, u WHERE id = 1", [ALL, ALL]),  # which of them
        ("SELECT 1 FROM t JOIN u ON a = 1 AND c = 1", [A1, C1]),
        ("SELECT 1 FROM t x JOIN t y ON x.a = 1", [A1, ALL]),
        # outer joins
        ("SELECT 1 FROM t LEFT JOIN u ON a = 1 AND c = 1", [ALL, C1]),
        ("SELECT 1 FROM t RIGHT JOIN u ON a = 1 AND c = 1", [A1, ALL]),
        ("SELECT 1 FROM t FULL JOIN u ON a = 1 AND c = 1", [ALL, ALL]),
        ("SELECT 1 FROM t LEFT JOIN u ON TRUE WHERE a = 1 AND c = 1", [A1, C1]),
        ("SELECT 1 FROM t LEFT JOIN u ON TRUE WHERE c IS NULL", [ALL, ALL]),
        ("SELECT 1 FROM t LEFT JOIN u ON TRUE WHERE a IS NULL", [["is-null", "a"], ALL]),
        ("SELECT 1 FROM t LEFT JOIN u ON TRUE WHERE c = 1 OR c IS NULL", [ALL, ALL]),
        ("SELECT 1 FROM t LEFT JOIN u ON TRUE WHERE c = 1 OR a = 1", [ALL, ALL]),
        ("SELECT 1 FROM t LEFT JOIN u ON TRUE WHERE flag IS NOT TRUE", [ALL, ALL]),
        ("SELECT 1 FROM t RIGHT JOIN u ON TRUE WHERE a IS NULL", [ALL, ALL]),
        ("SELECT 1 FROM t RIGHT JOIN u ON TRUE WHERE a = 1", [A1, ALL]),
        ("SELECT 1 FROM t FULL JOIN u ON TRUE WHERE c IS NULL AND a = 1", [A1, ALL]),
        (
            "SELECT 1 FROM t LEFT JOIN u ON TRUE JOIN u v ON u.c IS NULL",
            [ALL, ALL, ALL],
        ),
        ("SELECT 1 FROM t LEFT JOIN u ON TRUE JOIN u v ON u.c = 1", [ALL, C1, ALL]),
        ("SELECT 1 FROM t JOIN u ON TRUE LEFT JOIN u v ON u.c = 1", [ALL, ALL, ALL]),
        ("SELECT 1 FROM t, u RIGHT JOIN u v ON t.a = 1 AND u.c = 1", [ALL, ALL, ALL]),
        ("SELECT 1 FROM t, u LEFT JOIN u v ON t.a = 1 AND v.c = 1 WHERE u.c = 1", [ALL, C1, C1]),
        ("SELECT 1 FROM t SEMI JOIN u ON a = 1 AND c = 1", [A1, C1]),
        ("SELECT 1 FROM t ANTI JOIN u ON a = 1 AND c = 1", [ALL, C1]),
        ("SELECT 1 FROM t ASOF JOIN u ON t.id >= u.id WHERE a = 1 AND c = 1", [A1, ALL]),
        ("SELECT 1 FROM t POSITIONAL JOIN u WHERE a = 1", [ALL, ALL]),
        ("SELECT 1 FROM t FULL JOIN u USING (id) WHERE id = 1", [ALL, ALL]),
        ("SELECT 1 FROM t NATURAL JOIN u WHERE a = 1 AND u.c = 1", [ALL, C1]),
        # scopes
        ("SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM u WHERE c = 1 AND a = 1)", [ALL, C1]),
        ("SELECT 1 FROM t WHERE a = 1 AND id IN (SELECT id FROM u WHERE c = 1)", [A1, C1]),
        ("SELECT * FROM (SELECT * FROM t LIMIT 5) x WHERE a = 1", [ALL]),
        ("WITH x AS (SELECT * FROM t) SELECT * FROM x, x y WHERE x.a = 1", [ALL]),
        ("WITH x AS (SELECT * FROM t WHERE a = 1) SELECT * FROM x, x y WHERE x.a = 2", [A1]),
        ("SELECT a FROM t WHERE a = 1 UNION SELECT c FROM u WHERE c = 1", [A1, C1]),
        ("SELECT a + 1 AS c FROM t WHERE c = 1", [ALL]),
        ("SELECT c + 1 AS a FROM t, u WHERE a = 1", [A1, ALL]),  # a column comes before an alias
        # through queries whose rows are those of their table
        ("SELECT * FROM (SELECT * FROM t) WHERE a = 1", [A1]),
        ("SELECT * FROM (SELECT a AS z FROM t x) q WHERE q.z = 1", [A1]),
        ("SELECT * FROM (SELECT st AS z FROM t) q WHERE q.z.X = 1", [["=", "st.x", 1]]),
        ("WITH x AS (SELECT * FROM t) SELECT * FROM x y WHERE y.a = 1", [A1]),
        (
            "WITH x AS (SELECT * FROM t), y AS (SELECT a FROM x WHERE s = '') FROM y WHERE a = 1",
            [["and", ["=", "s", ""], A1]],
        ),
        ("SELECT * FROM u LEFT JOIN (SELECT * FROM t) q ON q.a = 1 AND c = 1", [ALL, A1]),
        ("SELECT * FROM u LEFT JOIN (SELECT * FROM t) q ON TRUE WHERE q.a IS NULL", [ALL, ALL]),
        (
            "SELECT * FROM (SELECT a, c FROM t LEFT JOIN u ON TRUE) WHERE c IS NULL AND a = 1",
            [A1, ALL],
        ),
        ("SELECT * FROM (SELECT a, c FROM t LEFT JOIN u ON TRUE) WHERE c = 1", [ALL, C1]),
        ("SELECT * FROM u, (SELECT a FROM t) q WHERE a = 1 AND q.a = 2", [ALL, [*A1[:2], 2]]),
        ("SELECT * FROM (SELECT a, a FROM t) WHERE a = 1", [ALL]),
        ("SELECT * FROM (SELECT a + 1 AS a FROM t) WHERE a = 1", [ALL]),
        ("SELECT * FROM (SELECT *, a + 1 AS a FROM t) q WHERE q.a = 1", [ALL]),
        ("SELECT * FROM (SELECT * REPLACE (2 AS a) FROM t) WHERE a = 1", [ALL]),
        # what has no alias is called by its text, but not always
        ("SELECT * FROM (SELECT a, a + 1 FROM t) WHERE a = 1", [A1]),
        ("SELECT * FROM (SELECT (a) FROM t) WHERE a = 1", [A1]),
        ("SELECT * FROM (SELECT (a), id AS a FROM t) WHERE a = 1", [ALL]),
        ("SELECT * FROM (SELECT (st).x, a AS x FROM t) WHERE x = 1", [ALL]),
        ("SELECT * FROM (SELECT unnest(st), a AS x FROM t) WHERE x = 1", [ALL]),
        ("SELECT * FROM (SELECT st.*, a AS x FROM t) WHERE x = 1", [ALL]),
        ("SELECT * FROM (SELECT st.* FROM t) WHERE a = 1", [ALL]),
        ("SELECT * FROM (SELECT t.* FROM t) WHERE a = 1", [A1]),
        ("SELECT * FROM (SELECT x.* FROM t x) WHERE a = 1", [A1]),
        ("SELECT * FROM (SELECT #1, a FROM t) WHERE a = 1", [ALL]),
        ("SELECT * FROM (SELECT localtime, a AS localtime FROM t) WHERE localtime = 1", [ALL]),
        ('SELECT * FROM (SELECT a + 1, a AS "(a + 1)" FROM t) WHERE "(a + 1)" = 1', [ALL]),
        ("SELECT * FROM (SELECT DISTINCT a FROM t) WHERE a = 1", [ALL]),
        ("SELECT * FROM (SELECT a, max(s) FROM t GROUP BY a) WHERE a = 1", [ALL]),
        ("SELECT * FROM (SELECT a, count(*) OVER () FROM t) WHERE a = 1", [ALL]),
        ("SELECT * FROM (SELECT a FROM t ORDER BY s LIMIT 5) WHERE a = 1", [ALL]),
        ("SELECT * FROM (SELECT s FROM t) AS q(a) WHERE a = 1", [ALL]),
        ("WITH RECURSIVE x AS (SELECT * FROM t) SELECT * FROM x WHERE a = 1", [ALL]),
        ("SELECT * FROM (SELECT a FROM t UNION SELECT a FROM t) WHERE a = 1", [ALL, ALL]),
        # not every row of the table is looked at
        ("SELECT 1 FROM t TABLESAMPLE 10% WHERE a = 1", [ALL]),
        ("SELECT 1 FROM t WHERE a = 1 USING SAMPLE 5", [ALL]),
        ("SELECT a FROM t AS x(s, a) WHERE a = 1", [ALL]),
        ("SELECT 1 FROM (t JOIN u ON TRUE) WHERE a = 1", [ALL, ALL]),
    ],
)
def test_filters_that_are_pushed(text: str, pushed: list[Any]) -> None:
    assert filters(text) == pushed


def chain(length: int) -> str:
    """Return a query through so many queries of a WITH, each of the one before."""
    made = [f"q{n} AS (SELECT * FROM {f'q{n - 1}' if n else 't'})" for n in range(length)]
    return f"WITH {', '.join(made)} SELECT a FROM q{length - 1} WHERE a > 7"


def test_a_filter_is_pushed_through_a_chain_of_queries_and_not_through_one_without_end() -> None:
    assert filters(chain(20)) == [[">", "a", 7]]
    assert filters(chain(200)) == [["true"]]


def test_more_inputs_than_a_worker_reads_are_refused() -> None:
    with pytest.raises(UnsupportedSql, match="reads tables in 300 places, and may in 256"):
        parted(" UNION ALL ".join(["SELECT a FROM t"] * 300))


def test_what_has_no_scan_has_a_filter_too_which_says_what_is_asked_for() -> None:
    schema = Schema.from_json(lake_schema({"table_name": "string"}))
    statement = parse_statement("SELECT * FROM information_schema.tables WHERE table_name = 'x'")

    (only,) = split(statement, Session(["lake"], "lake"), lambda reference: schema).inputs

    assert only.table.information_schema == "tables"
    assert expression_to_json(only.filter) == ["=", "table_name", "x"]


def test_columns_that_are_one_name_to_sql_are_refused() -> None:
    with pytest.raises(UnsupportedSql, match="'a' and 'A', which are one name"):
        parted("SELECT * FROM twice")


# --- against the engine ---------------------------------------------------------------------------


def _answer(engine: duckdb.DuckDBPyConnection, text: str) -> list[str] | None:
    """Return the rows in an order, or None where the engine can't compute them."""
    try:
        return sorted(map(repr, engine.execute(text).fetchall()))
    except duckdb.Error:
        return None


@dataclass(frozen=True)
class Lake:
    """Two tables, and engines: one with the whole tables, and one for inputs."""

    tables: Mapping[str, Table]
    whole: duckdb.DuckDBPyConnection
    over_inputs: duckdb.DuckDBPyConnection
    session: Session


@pytest.fixture(scope="module", params=[("UTC", 1), ("Europe/Amsterdam", 2)], ids=str)
def lake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    zone, seed = request.param
    rng = random.Random(seed)
    directory = tmp_path_factory.mktemp("lake")
    tables = {n: open_table(write_table(directory / n, rng, 2).location) for n in ("t", "u")}
    whole = connection(zone)
    for name, table in tables.items():
        whole.register(name, table.scan().to_table())
    session = Session(["lake"], "lake", ("db",), zone=Zone(zone))
    return Lake(tables, whole, connection(zone), session)


# a seed shrinks to nothing that is smaller
@settings(max_examples=20, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_the_answer_is_that_over_whole_tables(lake: Lake, seed: int) -> None:
    marked = query(random.Random(seed))
    text = as_written(marked)
    expected = _answer(lake.whole, by_ieee(marked))
    assume(expected is not None)

    parts = split(
        parse_statement(text),
        lake.session,
        lambda reference: lake.tables[reference.parts[-1]].metadata.schema(),
    )

    for each in parts.inputs:
        names = [column.name for column in each.columns]
        scan = lake.tables[each.table.parts[-1]].scan(filter=each.filter, select=names)
        lake.over_inputs.register(each.name, scan.to_table())
    assert _answer(lake.over_inputs, parts.sql) == expected, (text, parts)
