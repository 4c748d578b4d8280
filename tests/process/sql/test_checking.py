from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from floeberg.process.sql.checking import check_statement
from floeberg.process.sql.connecting import open_connection
from floeberg.protocol.errors import BadSql, FloebergError, UnsupportedSql


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = open_connection(
        memory_bytes=64 << 20, threads=1, spill=None, spill_bytes=0, timezone="UTC"
    )
    yield connection
    connection.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "SELECT 1;",
        "-- a comment\nSELECT a, sum(b) FROM i0 GROUP BY ALL HAVING sum(b) > 1 ORDER BY 2 LIMIT 3",
        "FROM i0",
        "TABLE I0",
        "VALUES (1), (2)",
        "SELECT * FROM i0 x JOIN i0 y USING (a) LEFT JOIN i1 ON x.a = i1.a",
        "WITH c AS (SELECT a FROM i0) SELECT * FROM c WHERE a IN (SELECT a FROM C)",
        "WITH RECURSIVE r AS (SELECT 1 a UNION ALL SELECT a + 1 FROM r WHERE a < 5) FROM r",
        "WITH c AS MATERIALIZED (FROM i0) FROM c UNION ALL FROM c",
        "SELECT a, row_number() OVER (PARTITION BY b ORDER BY a) FROM i0 QUALIFY a > 1",
        "SELECT * FROM range(1000000000) t(n), unnest([1, 2]) u(m)",
        "SELECT unnest(range(10)), repeat('x', 10), lpad('x', 8, '0') FROM i0",
        "SELECT list_transform([1, 2], lambda x: x + 1)",
        "SELECT format('{}: {:>8.2f}', s, x), printf('%08d', a) FROM i0",
        "SELECT a BETWEEN 1 AND 2, a LIKE 'x' ESCAPE 'y', a::INT, a IS DISTINCT FROM b FROM i0",
        "SELECT s COLLATE nocase, a ~ 'x', s || 'x', [a][1], {'f': a}.f FROM i0",
        "SELECT (SELECT max(a) FROM i1), EXISTS (SELECT 1 FROM i1) FROM i0",
        "SELECT columns('a.*') FROM i0",
        "SELECT 'select * from duckdb_settings(); drop table x' AS duckdb_settings",
        "UNPIVOT i0 ON a",
    ],
)
def test_a_select_over_the_inputs_passes(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    check_statement(connection, sql, ["i0", "i1"])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE i0",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "COPY i0 TO '/tmp/x.csv'",
        "COPY (SELECT 1) TO '/tmp/x.csv'",
        "ATTACH '/tmp/x.db'",
        "DETACH memory",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "RESET threads",
        "PRAGMA database_list",
        "PRAGMA table_info('i0')",
        "CALL pragma_version()",
        "EXPORT DATABASE '/tmp/x'",
        "CREATE SECRET s (TYPE s3)",
        "CREATE TABLE t AS SELECT 1",
        "CREATE TEMP VIEW v AS SELECT 1",
        "CREATE MACRO f() AS 1",
        "INSERT INTO i0 VALUES (1)",
        "DELETE FROM i0",
        "PREPARE p AS SELECT 1",
        "BEGIN",
        "CHECKPOINT",
        "VACUUM",
        "USE memory",
        "EXPLAIN SELECT 1",
        "DESCRIBE i0",
        "SHOW TABLES",
        "SUMMARIZE i0",
        "SELECT * FROM (DESCRIBE i0)",
        "SELECT * FROM (SHOW DATABASES)",
        "SELECT * FROM i2",
        "SELECT * FROM main.i0",
        "SELECT * FROM memory.main.i0",
        "SELECT * FROM i0 AT (VERSION => 1)",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM duckdb_views",
        "SELECT * FROM pg_class",
        "SELECT * FROM sqlite_master",
        # a name that a query is given elsewhere does not make it one here
        "SELECT * FROM pg_settings, (WITH pg_settings AS (SELECT 1) SELECT 2)",
        "WITH c AS (SELECT * FROM duckdb_secrets()) SELECT * FROM c",
        "SELECT (SELECT path FROM duckdb_databases() LIMIT 1)",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM query_table('i0')",
        "SELECT * FROM json_execute_serialized_sql('{}')",
        "SELECT * FROM arrow_scan(1::POINTER, 2::POINTER, 3::POINTER)",
        "SELECT * FROM pragma_storage_info('i0')",
        "SELECT current_setting('temp_directory')",
        "SELECT system.main.current_setting('temp_directory')",
        "SELECT getenv('HOME')",
        "SELECT getvariable('x')",
        "SELECT write_log('x')",
        "SELECT nextval('s')",
        "SELECT repeat('x', 2000000000)",
        "SELECT repeat('x', 1000 * 1000)",
        "SELECT lpad('x', a, 'y') FROM i0",
        "SELECT range(1000000000)",
        "SELECT unnest(generate_series(1, a)) FROM i0",
        "SELECT list_resize([1], 1000000000)",
        "SELECT 'x'.repeat(1000000000)",
        "SELECT list_transform(range(10), lambda n: repeat('x', n))",
        "SELECT bitstring('0101', 1000000000)",
        "SELECT format('{:>900000000}', 'x')",
        "SELECT format('{:{}}', 'x', 900000000)",
        "SELECT format('{0:>{1}}', 'x', 900000000)",
        "SELECT printf('%900000000d', 1)",
        "SELECT printf('%*d', 900000000, 1)",
        "SELECT printf(s, 1) FROM i0",
        "SELECT __internal_decompress_string(1)",
        "SELECT sleep_ms(1000000)",
        "SELECT pg_sleep(1000)",
        "SELECT a FROM i0 WHERE length(repeat('x', 999999999)) > 1",
        "PIVOT i0 ON a USING sum(b)",
    ],
)
def test_anything_else_is_refused(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    with pytest.raises((BadSql, UnsupportedSql)) as refused:
        check_statement(connection, sql, ["i0", "i1"])

    assert "Error" not in str(refused.value)


@pytest.mark.parametrize(
    "sql", ["SELEC 1", "", "SELECT FROM", "SELECT 'x", "SELECT 1 +", "\0", ";"]
)
def test_what_is_no_sql_is_told_so(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    with pytest.raises(FloebergError) as refused:
        check_statement(connection, sql, [])

    assert isinstance(refused.value, BadSql | UnsupportedSql)


def test_deep_nesting_is_refused_and_long_chains_are_read(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    check_statement(connection, "SELECT " + " + ".join(["1"] * 200), [])
    check_statement(connection, "FROM i0 WHERE " + " OR ".join(["a = 1"] * 5000), ["i0"])
    for deep in ("SELECT " + "(" * 20_000 + "1" + ")" * 20_000, "SELECT " + "- " * 50_000 + "1"):
        with pytest.raises((BadSql, UnsupportedSql)):
            check_statement(connection, deep, [])
