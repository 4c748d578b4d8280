"""Road 1 against DuckDB: the scan gives the rows that the engine gives over the whole table."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from floeberg.embedded import Table, open_table
from floeberg.protocol.expressions.json_form import expression_to_json
from floeberg.protocol.schema import Schema
from floeberg.server.sql.instants import Zone
from floeberg.server.sql.names import Session
from floeberg.server.sql.plain_scan import PlainScan, plain_scan
from floeberg.server.sql.statements import parse_statement
from tests.support.lake import schema as lake_schema
from tests.support.sql_floats import as_written, by_ieee
from tests.support.sql_tables import COLUMNS, condition, connection, read_whole, write_table

SCHEMA = Schema.from_json(lake_schema(COLUMNS))
ZONES = ["UTC", "Europe/Amsterdam", "Asia/Kolkata"]


def session(zone: str = "Europe/Amsterdam") -> Session:
    return Session(["lake"], "lake", ("db",), zone=Zone(zone))


def plain(text: str, zone: str = "Europe/Amsterdam", schema: Schema = SCHEMA) -> PlainScan | None:
    return plain_scan(parse_statement(text), session(zone), lambda reference: schema)


def filter_of(condition_: str) -> Any:
    found = plain(f"SELECT id FROM t WHERE {condition_}")
    return None if found is None else expression_to_json(found.filter)


@pytest.mark.parametrize(
    ("items", "names", "select"),
    [
        ("id, i", ["id", "i"], ("id", "i")),
        ("I AS x, t.i y, db.t.ID, lake.db.t.i", ["x", "y", "id", "i"], ("i", "id")),
        ("st.a, st.DEEP.s z, (st).r", ["a", "z", "r"], ("st.a", "st.Deep.s", "st.r")),
        ('mixed, "MIXED", "a b"', ["Mixed", "Mixed", "a b"], ("Mixed", "a b")),
        ("st.DEEP", ["DEEP"], ("st.Deep",)),
        ("id::BIGINT AS id, CAST(p AS DECIMAL(9, 2)) AS p", ["id", "p"], ("id", "p")),
        ("*", list(COLUMNS), tuple(COLUMNS)),
        ("t.*", list(COLUMNS), tuple(COLUMNS)),
        ("* EXCLUDE (I, tags)", [c for c in COLUMNS if c not in ("i", "tags")], None),
        ("id, * EXCLUDE id", ["id", *list(COLUMNS)[1:]], None),
    ],
)
def test_columns_come_in_order_and_under_their_names(
    items: str, names: list[str], select: tuple[str, ...] | None
) -> None:
    found = plain(f"SELECT {items} FROM t")

    assert found is not None
    assert [column.name for column in found.columns] == names
    assert found.schema.names == names
    assert select is None or found.select == select


def test_the_schema_has_the_nullability_of_the_way_down() -> None:
    found = plain("SELECT id, st.r, st.a AS x, u FROM t")

    assert found is not None
    assert [(f.name, f.nullable) for f in found.schema] == [
        ("id", False),
        ("r", True),  # required, in a struct that may be null
        ("x", True),
        ("u", True),
    ]
    assert found.schema.types == [pa.int64(), pa.float64(), pa.int32(), pa.uuid()]


@pytest.mark.parametrize(
    ("items", "is_direct"),
    [("*", True), ("i, id", True), ("i AS I", False), ("i, i", False), ("st.a", False)],
)
def test_it_is_told_whether_the_scan_is_the_answer(items: str, is_direct: bool) -> None:
    found = plain(f"SELECT {items} FROM t")

    assert found is not None
    assert found.is_direct is is_direct


@pytest.mark.parametrize(
    ("tail", "limit"),
    [("", None), ("LIMIT 0", 0), ("LIMIT 5", 5), ("LIMIT NULL", None), ("LIMIT (7)", 7)],
)
def test_a_limit_is_part_of_the_scan(tail: str, limit: int | None) -> None:
    found = plain(f"SELECT id FROM t {tail}")

    assert found is not None
    assert found.limit == limit


def test_a_bound_limit_and_value_are_as_if_they_were_written() -> None:
    statement = parse_statement("SELECT id FROM t WHERE day < ? AND l = ? LIMIT ?")

    found = plain_scan(statement.bind(["2024-07-01", 7, 3]), session(), lambda reference: SCHEMA)

    assert found is not None
    assert found.limit == 3
    assert expression_to_json(found.filter) == ["and", ["<", "day", "2024-07-01"], ["=", "l", 7]]


@pytest.mark.parametrize(
    ("text", "names", "select", "filter_", "limit"),
    [
        ("SELECT * FROM (SELECT id, i FROM t) x LIMIT 5", ["id", "i"], ("id", "i"), ["true"], 5),
        ("SELECT x.B FROM (SELECT id AS b FROM t) AS x", ["b"], ("id",), ["true"], None),
        (
            "SELECT b FROM (SELECT id AS b FROM t WHERE i = 1) WHERE b > 2",
            ["b"],
            ("id",),
            ["and", ["=", "i", 1], [">", "id", 2]],
            None,
        ),
        (
            "SELECT y.c.deep.s FROM (SELECT st AS c FROM t) y WHERE c.a = 7",
            ["s"],
            ("st.Deep.s",),
            ["=", "st.a", 7],
            None,
        ),
        ("SELECT * FROM (SELECT id FROM t LIMIT 5) LIMIT 7", ["id"], ("id",), ["true"], 5),
        (
            "SELECT * FROM (SELECT * FROM (SELECT id FROM t)) WHERE 1 = 0",
            ["id"],
            ("id",),
            ["false"],
            None,
        ),
    ],
)
def test_a_scan_in_brackets_is_looked_through(
    text: str, names: list[str], select: tuple[str, ...], filter_: Any, limit: int | None
) -> None:
    found = plain(text)

    assert found is not None
    assert ([c.name for c in found.columns], found.select) == (names, select)
    assert (expression_to_json(found.filter), found.limit) == (filter_, limit)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id + 1 FROM t",
        "SELECT id::INT FROM t",
        "SELECT id::BIGINT FROM t",  # which is called CAST(id AS BIGINT)
        "SELECT st['a'] FROM t",
        "SELECT count(*) FROM t",
        "SELECT DISTINCT id FROM t",
        "SELECT id FROM t ORDER BY id",
        "SELECT id FROM t LIMIT 5 OFFSET 1",
        "SELECT id FROM t OFFSET 1",
        "SELECT id FROM t LIMIT 10%",
        "SELECT id FROM t LIMIT 1 * 2",
        "SELECT id FROM t LIMIT -1",
        "SELECT id FROM t FETCH FIRST 5 ROWS ONLY",
        "SELECT id FROM t GROUP BY id",
        "SELECT id FROM t, t AS o",
        "SELECT id FROM t UNION ALL SELECT id FROM t",
        "SELECT id FROM t TABLESAMPLE 10%",
        "SELECT id FROM t USING SAMPLE 5",
        "SELECT a FROM t AS x(a)",
        "SELECT id FROM (SELECT DISTINCT * FROM t)",
        "SELECT a FROM (SELECT id FROM t) AS x(a)",
        "SELECT id FROM (SELECT id FROM t LIMIT 5) WHERE id = 1",
        "SELECT * FROM (SELECT id, id FROM t)",
        "SELECT id FROM (SELECT id FROM t) x, t",
        "SELECT nothing FROM t",
        "SELECT x.id FROM t",
        "SELECT tags.element FROM t",
        "SELECT t FROM t",
        "SELECT 1 FROM t",
        "SELECT 1",
        "SELECT * REPLACE (1 AS i) FROM t",
        "SELECT * EXCLUDE (nothing) FROM t",
        "SELECT * FROM range(5)",
        "SELECT * FROM information_schema.tables",
        "WITH t AS (SELECT 1 AS id) SELECT id FROM t",
        "VALUES (1)",
        "SELECT id FROM t QUALIFY row_number() OVER () = 1",
        "DESCRIBE t",
    ],
)
def test_what_is_more_than_a_scan_is_not_plain(text: str) -> None:
    assert plain(text) is None


@pytest.mark.parametrize(
    ("condition_", "filter_"),
    [
        ("i = 7", ["=", "i", 7]),
        ("7 < i", [">", "i", 7]),
        ("i = '7'", ["=", "i", 7]),
        ("i <> 2.5", ["not-null", "i"]),
        ("i >= 2.5e0", [">", "i", 2]),
        ("l < 99999999999999999999.5", ["<=", "l", 1 << 64]),
        ("NOT i > 7", ["<=", "i", 7]),
        ("i = NULL OR i IS NULL", ["or", ["false"], ["is-null", "i"]]),
        ("i IN (1, 2, NULL)", ["in", "i", [1, 2]]),
        ("i NOT IN (1, NULL)", ["and", ["!=", "i", 1], ["false"]]),
        ("i BETWEEN 1 AND 2", ["and", [">=", "i", 1], ["<=", "i", 2]]),
        ("i NOT BETWEEN 1 AND 2", ["or", ["<", "i", 1], [">", "i", 2]]),
        # NaN is not less, equal or greater
        ("d > 5", [">", "d", 5.0]),
        ("NOT d < 5", ["or", [">=", "d", 5.0], ["is-nan", "d"]]),
        ("NOT 5 > d", ["or", [">=", "d", 5.0], ["is-nan", "d"]]),
        ("NOT d = 5", ["!=", "d", 5.0]),
        (
            "d NOT BETWEEN 1 AND 5",
            [
                "or",
                ["or", ["<", "d", 1.0], ["is-nan", "d"]],
                ["or", [">", "d", 5.0], ["is-nan", "d"]],
            ],
        ),
        ("d = 'nan'", ["false"]),
        ("d <> 'nan'", ["not-null", "d"]),
        ("NOT d <= 'nan'", ["not-null", "d"]),
        ("d IN ('nan', '5')", ["in", "d", [5.0]]),
        ("NOT f < 0.1e0", ["or", [">", "f", 0.09999999403953552], ["is-nan", "f"]]),
        ("NOT f = 0.1e0", ["not-null", "f"]),
        ("d IS NOT DISTINCT FROM 'nan'", ["is-nan", "d"]),  # which groups, as GROUP BY does
        ("f IS DISTINCT FROM 'nan'::DOUBLE", ["or", ["is-null", "f"], ["not-nan", "f"]]),
        ("NOT isnan(f)", ["not-nan", "f"]),
        # a column of 32 bits meets a double as a double
        ("f = 0.1", ["=", "f", 0.10000000149011612]),
        ("f = 0.1e0", ["false"]),
        ("f < 0.1e0", ["<=", "f", 0.09999999403953552]),
        ("p = '14.2'", ["=", "p", 14.2]),
        ("day = DATE '2024-07-01'", ["=", "day", "2024-07-01"]),
        ("day < TIMESTAMP '2024-07-01 12:00:00'", ["<=", "day", "2024-07-01"]),
        ("day = TIMESTAMP '2024-07-01 12:00:00'", ["false"]),
        ("ts >= DATE '2024-07-01'", [">=", "ts", "2024-07-01T00:00:00.000000"]),
        ("ts::DATE < '2024-07-01'", ["<", "ts", "2024-07-01T00:00:00.000000"]),
        ("tz > '2024-07-01'", [">", "tz", "2024-06-30T22:00:00.000000+00:00"]),
        ("tz > '2024-07-01 00:00:00+01'", [">", "tz", "2024-06-30T23:00:00.000000+00:00"]),
        ("tz > TIMESTAMP '2024-07-01 00:00:00'", [">", "tz", "2024-06-30T22:00:00.000000+00:00"]),
        ("s LIKE 'a%'", ["starts-with", "s", "a"]),
        ("s NOT LIKE 'a%'", ["not-starts-with", "s", "a"]),
        ("s LIKE 'a'", ["=", "s", "a"]),
        ("prefix(s, 'a')", ["starts-with", "s", "a"]),
        ("b", ["=", "b", True]),
        ("NOT b", ["=", "b", False]),
        ("b IS NOT TRUE", ["or", ["is-null", "b"], ["=", "b", False]]),
        ("st.deep.s = 'x'", ["=", "st.Deep.s", "x"]),
        ("t.st['Deep'] IS NULL", ["is-null", "st.Deep"]),
        ("i IS DISTINCT FROM 7", ["or", ["is-null", "i"], ["!=", "i", 7]]),
        ("raw = '\\x00a'", ["=", "raw", "0061"]),
        ("1 = 0", ["false"]),
        ("TRUE", ["true"]),
    ],
)
def test_conditions_that_filters_can_say(condition_: str, filter_: Any) -> None:
    assert filter_of(condition_) == filter_


@pytest.mark.parametrize(
    "condition_",
    [
        "i = l",
        "i + 1 = 2",
        "abs(i) = 1",
        "s = 7",
        "i = '7.5'",
        "i = ' 7'",
        "i = '3000000000'",  # an error to the engine
        "l = 1e0",  # DuckDB rounds the column to a double
        "l BETWEEN 1 AND 2e0",
        "p = 14.2e0",
        "p = '14.205'",
        "wide = 0.00000000001",
        "f IN (0.1, 1e0)",  # the first becomes a double here
        "day = '2024-7-1'",
        "day = '2024-07-01 12:00:00'",
        "day < TIMESTAMPTZ '2024-07-01 00:00:00+00'",
        "ts > TIMESTAMPTZ '2024-07-01 00:00:00+00'",
        "ts = '2024-07-01T00:00:00Z'",
        "ts = '2024-07-01 00:00:00.0000005'",
        "tz > '2024-03-31 02:30:00'",  # a time that this zone skips
        "tz::DATE = '2024-07-01'",
        "ts = '2024-07-01 00:00:00.0005'::TIMESTAMP(3)",  # which is rounded
        "ts::TIMESTAMP(0) = '2024-07-01 00:00:00'",
        "tz > '2024-07-01 00:00:00'::TIMESTAMPTZ(0)",  # an error to the engine
        "s LIKE '%a'",
        "s LIKE 'a_'",
        "s ILIKE 'a%'",
        "s LIKE 'a!%' ESCAPE '!'",
        "fx = 'a'",
        "b = 'true'",
        "s IN (SELECT s FROM t)",
        "EXISTS (SELECT 1)",
        "i = 1 OR random() < 0.5",
        "tags = ['a']",
        "t.nothing = 1",
        "TRY_CAST(i AS INT) = 1",
        "(i, l) = (1, 2)",
    ],
)
def test_conditions_that_are_left_to_the_engine(condition_: str) -> None:
    assert filter_of(condition_) is None


def test_names_that_differ_in_case_only_are_not_plain() -> None:
    twice = Schema.from_json(lake_schema({"a": "int", "A": "int", "b": "int"}))

    assert plain("SELECT a FROM t", schema=twice) is None
    assert plain("SELECT * FROM t", schema=twice) is None
    assert plain("SELECT b FROM t", schema=twice) is not None


def test_a_column_whose_name_has_dots_hides_no_field() -> None:
    dotted = Schema.from_json(lake_schema({"st.a": "int", "st": COLUMNS["st"]}))

    assert plain('SELECT "st.a" FROM t', schema=dotted) is not None
    assert plain("SELECT st.a FROM t", schema=dotted) is None
    assert plain("SELECT x.a FROM (SELECT st AS x FROM t)", schema=dotted) is None


# --- against the engine ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Lake:
    """A table, and an engine that has read all of it."""

    table: Table
    zone: str
    engine: duckdb.DuckDBPyConnection


@pytest.fixture(scope="module", params=enumerate(ZONES), ids=str)
def lake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    seed, zone = request.param
    table = write_table(tmp_path_factory.mktemp("lake") / "t", random.Random(seed))
    engine = connection(zone)
    engine.register("t", read_whole(table))
    return Lake(open_table(table.location), zone, engine)


def rows_of(table: pa.Table) -> list[str]:
    """Return the rows in an order, with one text for each value whatever its class."""

    def shown(value: Any) -> str:
        if isinstance(value, dict):
            return repr({key: shown(each) for key, each in value.items()})
        if isinstance(value, datetime) and value.tzinfo is not None:
            value = value.astimezone(UTC)
        return str(value)

    columns = [[shown(value) for value in column.to_pylist()] for column in table.columns]
    return sorted(map(repr, zip(*columns, strict=True)))


# a seed shrinks to nothing that is smaller
@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_the_rows_are_those_of_the_engine(lake: Lake, seed: int) -> None:
    rng = random.Random(seed)
    items = rng.choice(["id", "*", "id, st.deep.s AS x, u, t.i, tz", 'i, i AS j, "a b"'])
    marked = f"SELECT {items} FROM t WHERE {condition(rng, rng.choice([0, 0, 1, 2]))}"
    if rng.random() < 0.3:
        marked = f"SELECT id FROM ({marked}) AS t WHERE {condition(rng, 1)}"
    text = as_written(marked)
    found = plain(text, lake.zone, lake.table.metadata.schema())
    assume(found is not None)
    assert found is not None

    answer = _answer(found, lake.table.scan(filter=found.filter, select=found.select).to_table())

    expected = lake.engine.sql(by_ieee(marked)).to_arrow_table()
    assert answer.schema.equals(found.schema), text
    assert expected.column_names == answer.column_names, text
    assert rows_of(answer) == rows_of(expected), text


def _answer(scan: PlainScan, read: pa.Table) -> pa.Table:
    """Return the columns of the answer, taken from those of the scan."""
    columns = []
    for output in scan.columns:
        column: Any = read.column(output.source.fields[0].name)
        for field in output.source.fields[1:]:
            column = pa.chunked_array(
                [pa.compute.struct_field(chunk, field.name) for chunk in column.chunks],
                pa.field("", column.type).type.field(field.name).type,
            )
        columns.append(column)
    return pa.table(columns, schema=scan.schema) if columns else read
