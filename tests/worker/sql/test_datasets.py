"""What DuckDB makes of an input is what it makes of the same rows in a table of its own."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from decimal import Decimal
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.process.sql.connecting import open_connection
from floeberg.worker.sql.datasets import InputDataset

NAN, INF = math.nan, math.inf
ROWS = pa.table(
    {
        "i": pa.array([1, 2, None, 4, 5, -6], pa.int64()),
        "j": pa.array([1, None, 3, 4, 5, 6], pa.int32()),
        "d": pa.array([1.0, NAN, None, -0.0, 7.5, INF]),
        "f": pa.array([1.0, NAN, None, -0.0, 7.5, -INF], pa.float32()),
        "s": pa.array(["a", "b", None, "", "é", "ab"]),
        "o": pa.array([True, None, False, True, True, False]),
        "u": pa.array([UUID(int=n).bytes if n else None for n in range(6)], pa.uuid()),
        "x": pa.array([b"ab", b"cd", None, b"ab", b"zz", b"\0\1"], pa.binary(2)),
        "y": pa.array([b"", b"cd", None, b"ab", b"zz", b"\0"]),
        "t": pa.array([dt.time(1), None, *[dt.time(2)] * 4], pa.time64("us")),
        "a": pa.array([1, 2, None, -4, 5, 6], pa.date32()),
        "p": pa.array([1, 2, None, -4, 5, 6], pa.timestamp("us")),
        "z": pa.array([1, 2, None, -4, 5, 6], pa.timestamp("us", "UTC")),
        "n": pa.array([1, 2, None, -4, 5, 6], pa.timestamp("ns")),
        "q": pa.array([1, 2, None, -4, 5, 6], pa.timestamp("ns", "UTC")),
        "c": pa.array([Decimal("1.25"), None, *[Decimal("-2.5")] * 4], pa.decimal128(5, 2)),
        "b": pa.array([Decimal(10) ** 37, None, *[Decimal(-3)] * 4], pa.decimal128(38, 0)),
        "k": pa.nulls(6),
        "r": pa.array([{"g": 1, "h": 2.0}, {"g": None, "h": NAN}, None, *[{"g": 3, "h": 4.0}] * 3]),
        "l": pa.array([[1, None], [], None, [2], [3], [4]], pa.list_(pa.int32())),
        "m": pa.array(
            [[("k", 1)], [], None, *[[("z", None)]] * 3], pa.map_(pa.string(), pa.int32())
        ),
        "e.f": pa.array([1, 2, 3, 4, 5, None], pa.int32()),
    }
)
COLUMNS = ", ".join(f'"{name}"' for name in ROWS.column_names)


def connected(rows: pa.Table = ROWS) -> duckdb.DuckDBPyConnection:
    connection = open_connection(
        memory_bytes=256 << 20, threads=2, spill=None, spill_bytes=0, timezone="UTC"
    )
    batches = rows.to_batches(max_chunksize=2)
    connection.register("i0", InputDataset(rows.schema, lambda: iter(batches)))
    connection.register("whole", rows)
    connection.execute("CREATE TABLE own AS SELECT * FROM whole")
    return connection


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = connected()
    yield connection
    connection.close()


def answer(connection: duckdb.DuckDBPyConnection, sql: str, table: str) -> list[str]:
    rows = connection.execute(sql.format(table=table)).fetchall()
    return sorted(repr(row) for row in rows)


def agree(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    assert answer(connection, sql, "i0") == answer(connection, sql, "own")


def test_all_types_come_through(connection: duckdb.DuckDBPyConnection) -> None:
    agree(connection, "SELECT * FROM {table}")
    for name in ROWS.column_names:
        agree(connection, f'SELECT typeof("{name}"), count("{name}") FROM {{table}} GROUP BY 1')


LITERALS = {
    "i": ["1", "2", "-6", "9223372036854775807"],
    "j": ["1", "3"],
    "d": ["1.0", "'nan'", "'inf'", "0.0", "7.5"],
    "f": ["1.0", "'nan'::float", "'-inf'::float", "0.0", "7.5"],
    "s": ["'a'", "''", "'é'"],
    "o": ["true", "false"],
    "u": ["'00000000-0000-0000-0000-000000000001'"],
    "x": ["'ab'::blob", "'zz'::blob"],
    "y": ["''::blob", "'cd'::blob"],
    "t": ["'01:00:00'"],
    "a": ["'1970-01-03'"],
    "p": ["'1970-01-01 00:00:00.000002'"],
    "z": ["'1970-01-01 00:00:00.000002+00'"],
    "n": ["'1970-01-01 00:00:00.000000002'::timestamp_ns"],
    "q": ["'1970-01-01 00:00:00.000002+00'"],
    "c": ["1.25", "-2.5", "3"],
    "b": ["10000000000000000000000000000000000000", "-3"],
    "r.g": ["1", "3"],
    "r.h": ["2.0", "'nan'::double"],
    "l": ["[2]"],
    '"e.f"': ["2"],
}
comparisons = st.sampled_from(sorted(LITERALS)).flatmap(
    lambda column: st.builds(
        lambda operator, literal: f"{column} {operator} {literal}",
        st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"]),
        st.sampled_from(LITERALS[column]),
    )
)
memberships = st.sampled_from(sorted(LITERALS)).flatmap(
    lambda column: st.builds(
        lambda negation, literals: f"{column} {negation} IN ({', '.join(literals)})",
        st.sampled_from(["", "NOT"]),
        st.lists(st.sampled_from([*LITERALS[column], "NULL"]), min_size=1, max_size=4),
    )
)
ranges = st.sampled_from(sorted(set(LITERALS) - {"l"})).flatmap(
    lambda column: st.builds(
        lambda low, high: f"{column} BETWEEN {low} AND {high}",
        *[st.sampled_from(LITERALS[column])] * 2,
    )
)
nulls = st.builds(
    lambda column, negation: f'"{column}" IS {negation} NULL',
    st.sampled_from(ROWS.column_names),
    st.sampled_from(["", "NOT"]),
)
others = st.sampled_from(
    ["o", "NOT o", "i % 2 = 0", "s LIKE 'a%'", "starts_with(s, 'a')", "i = j", "d = i", "r = r"]
)
filters = st.recursive(
    comparisons | memberships | ranges | nulls | others,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("(NOT {})".format, inner),
        st.builds("({} IS NOT TRUE)".format, inner),
    ),
    max_leaves=4,
)


@given(filter=filters)
def test_what_duckdb_leaves_to_a_scan_is_applied_as_duckdb_would(
    connection: duckdb.DuckDBPyConnection, filter: str
) -> None:
    agree(connection, f"SELECT {COLUMNS} FROM {{table}} WHERE {filter}")
    agree(connection, f"SELECT count(*), min(s) FROM {{table}} WHERE {filter}")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x.i, y.s FROM {table} x JOIN {table} y ON x.i = y.j",
        "SELECT x.d FROM {table} x JOIN {table} y ON x.d = y.f WHERE y.i < 5",
        "SELECT i FROM {table} WHERE i IN (SELECT j FROM {table} WHERE s >= 'a')",
        "WITH c AS (SELECT i, d FROM {table} WHERE i > 1) SELECT * FROM c a, c b WHERE a.i < b.i",
        "SELECT i FROM {table} ORDER BY d DESC NULLS LAST, i LIMIT 3",
        "SELECT d, count(*), sum(i), avg(c), max(b) FROM {table} GROUP BY d",
        "SELECT count(*) FROM {table}",
        "SELECT count(DISTINCT s), count(DISTINCT d) FROM {table}",
        "SELECT i, sum(j) OVER (ORDER BY i NULLS FIRST) FROM {table}",
        "SELECT i FROM {table} UNION SELECT j FROM {table} EXCEPT SELECT 4",
        "SELECT max(i) FROM {table} WHERE i < (SELECT max(i) FROM {table})",
        "SELECT unnest(l), m['k'], r.g FROM {table}",
        "SELECT year(p), date_trunc('hour', z), extract(microsecond FROM n) FROM {table}",
    ],
)
def test_statements_read_an_input_as_often_as_they_name_it(
    connection: duckdb.DuckDBPyConnection, sql: str
) -> None:
    agree(connection, sql)


def test_a_limit_ends_the_reading() -> None:
    ended: list[int] = []

    def read() -> Iterator[pa.RecordBatch]:
        number = 0
        try:
            for number in range(1_000_000):
                yield pa.record_batch({"a": [number] * 100})
        finally:
            ended.append(number)

    connection = open_connection(
        memory_bytes=64 << 20, threads=2, spill=None, spill_bytes=0, timezone="UTC"
    )
    connection.register("i0", InputDataset(pa.schema([("a", pa.int64())]), read))
    found = connection.sql("SELECT a FROM i0 LIMIT 7").to_arrow_reader(100)

    assert sum(batch.num_rows for batch in found) == 7
    connection.close()
    assert len(ended) == 1
    assert ended[0] < 1000


def test_rows_without_columns_are_counted() -> None:
    three = pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), 3, [None]))
    dataset = InputDataset(pa.schema([]), lambda: iter([three, three]))
    connection = open_connection(
        memory_bytes=64 << 20, threads=2, spill=None, spill_bytes=0, timezone="UTC"
    )
    connection.register("i0", dataset)
    try:
        assert connection.execute("SELECT count(*) FROM i0").fetchone() == (6,)
        assert connection.execute("SELECT 1 FROM i0").fetchall() == [(1,)] * 6
    finally:
        connection.close()


def test_an_input_without_rows_is_empty() -> None:
    connection = connected(ROWS.slice(0, 0))
    try:
        agree(connection, "SELECT * FROM {table}")
        agree(connection, "SELECT count(*), sum(i), max(s) FROM {table} WHERE i > 1")
    finally:
        connection.close()


def test_no_row_is_left_where_types_are_extensions() -> None:
    ids = pa.array([b"\0" * 16], pa.uuid())
    rows = pa.RecordBatch.from_pydict(
        {"a": [1], "u": ids, "st": pa.StructArray.from_arrays([ids], ["u"])}
    )
    connection = open_connection(
        memory_bytes=64 << 20, threads=2, spill=None, spill_bytes=0, timezone="UTC"
    )
    connection.register("i0", InputDataset(rows.schema, lambda: iter([rows])))
    try:
        assert connection.execute("SELECT st, u FROM i0 WHERE a = 2").fetchall() == []
        assert connection.execute("SELECT count(st.u) FROM i0 WHERE a = 1").fetchall() == [(1,)]
    finally:
        connection.close()
