"""Comparisons of floats as DuckDB gets them: plain where nothing may be NaN, and still joins."""

from __future__ import annotations

import duckdb
import pytest

from floeberg.protocol.schema import Schema
from floeberg.server.sql.names import Session
from floeberg.server.sql.splitting import split
from floeberg.server.sql.statements import parse_statement
from tests.support.lake import schema as lake_schema

COLUMNS = {"i": "int", "j": "long", "d": "double", "f": "float", "s": "string", "day": "date"}


def rewritten(text: str) -> str:
    schema = Schema.from_json(lake_schema(COLUMNS))
    return split(parse_statement(text), Session(["lake"], "lake"), lambda _: schema).sql


@pytest.mark.parametrize(
    "condition",
    [
        "i > j",
        "s >= 'x' AND s <> 'nan'",
        "day BETWEEN s::DATE AND DATE '2024-01-01'",
        "i + j * 2 > 5",
        "i IN (j, 1)",
        # NaN is beyond these to DuckDB too
        "d < 5",
        "d BETWEEN 1 AND 5",
        "d IN (1, 2.5)",
        "NOT d = i",
        "i > d",
        "d IS DISTINCT FROM f",
    ],
)
def test_what_needs_no_other_words_stays(condition: str) -> None:
    written = rewritten(f"SELECT 1 FROM t AS x WHERE {condition}")

    assert "NAN(" not in written.upper().replace("'NAN'", "")
    assert "CASE" not in written


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        (
            "SELECT 1 FROM t x WHERE d > 5 OR length(s) = 1",
            "SELECT 1 FROM i0 AS x WHERE (d > 5 AND NOT ISNAN(d)) OR LENGTH(s) = 1",
        ),
        (
            "SELECT 1 FROM t x WHERE d = f",
            "SELECT 1 FROM i0 AS x WHERE CASE WHEN ISNAN(d) THEN NULL ELSE d END = f",
        ),
        (
            "SELECT d > i FROM t x",
            "SELECT CASE WHEN ISNAN(d) THEN (i IS NULL) AND NULL ELSE d > i END"
            ' AS "(d > i)" FROM i0 AS x',
        ),
        (
            "SELECT random() > 5 FROM t x",
            "SELECT LIST_EXTRACT(LIST_TRANSFORM([{'v0': RANDOM()}], LAMBDA _ieee_operands : CASE"
            " WHEN TYPEOF(_ieee_operands.v0) IN ('FLOAT', 'DOUBLE')"
            " AND ISNAN(TRY_CAST(_ieee_operands.v0 AS DOUBLE)) THEN FALSE"
            ' ELSE _ieee_operands.v0 > 5 END), 1) AS "(RANDOM() > 5)" FROM i0 AS x',
        ),
    ],
)
def test_nan_is_asked_for(text: str, sql: str) -> None:
    assert rewritten(text) == sql


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"])
@pytest.mark.parametrize("columns", ["x.d = y.d", "x.d + 1 = y.d / 2", "x.i = y.i"])
def test_joins_stay_hash_joins(kind: str, columns: str) -> None:
    sql = rewritten(f"SELECT count(*) FROM t x {kind} t y ON {columns}")

    with duckdb.connect() as engine:
        for name in ("i0", "i1"):
            engine.execute(
                f"CREATE TABLE {name} AS SELECT i::INT i, i::DOUBLE d FROM range(9) r(i)"
            )
        ((_, plan),) = engine.execute(f"EXPLAIN {sql}").fetchall()

    assert "Hash Join" in plan
