"""The lock-down of a connection, by what DuckDB itself refuses: even if a statement came past the
check, as another parser might have it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from floeberg.process.sql.connecting import known_timezones, open_connection


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    (tmp_path / "spill").mkdir()
    (tmp_path / "t.csv").write_text("a\n1\n")
    connection = open_connection(
        memory_bytes=64 << 20,
        threads=1,
        spill=tmp_path / "spill",
        spill_bytes=1 << 30,
        timezone="UTC",
    )
    yield connection
    connection.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{dir}/t.csv')",
        "SELECT * FROM '{dir}/t.csv'",
        "SELECT * FROM read_text('{dir}/t.csv')",
        "SELECT * FROM read_blob('{dir}/t.csv')",
        "SELECT * FROM read_json('{dir}/t.csv')",
        "SELECT * FROM read_parquet('{dir}/t.csv')",
        "SELECT * FROM sniff_csv('{dir}/t.csv')",
        "SELECT * FROM glob('{dir}/*')",
        "COPY (SELECT 1) TO '{dir}/out.csv'",
        "CREATE TABLE t (a int); COPY t FROM '{dir}/t.csv'",
        "ATTACH '{dir}/other.db'",
        "EXPORT DATABASE '{dir}/export'",
        "IMPORT DATABASE '{dir}/export'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "LOAD '{dir}/a.so'",
        "SELECT * FROM 'https://localhost/t.csv'",
        "SET memory_limit = '10GB'",
        "RESET memory_limit",
        "SET temp_directory = '{dir}'",
        "SET enable_external_access = true",
        "SET python_enable_replacements = true",
        "PRAGMA memory_limit = '10GB'",
        "CALL enable_logging()",
        "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
        "SELECT getenv('HOME')",
        "SELECT * FROM a_table_of_this_test",
    ],
)
def test_what_reaches_out_or_changes_settings_is_refused(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, sql: str
) -> None:
    a_table_of_this_test = pa.table({"a": [1]})
    before = sorted(tmp_path.iterdir())

    with pytest.raises(duckdb.Error):
        connection.execute(sql.format(dir=tmp_path)).fetchall()

    assert sorted(tmp_path.iterdir()) == before
    assert a_table_of_this_test.num_rows == 1


def test_connections_share_nothing(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    connection.register("i0", pa.table({"a": [1]}))
    other = open_connection(
        memory_bytes=64 << 20, threads=1, spill=None, spill_bytes=0, timezone="UTC"
    )
    try:
        for name in ("t", "i0"):
            with pytest.raises(duckdb.CatalogException):
                other.execute(f"SELECT * FROM {name}")
    finally:
        other.close()


def test_times_are_in_the_timezone_that_is_asked_for() -> None:
    connection = open_connection(
        memory_bytes=64 << 20, threads=1, spill=None, spill_bytes=0, timezone="Asia/Tokyo"
    )
    try:
        found = connection.execute(
            "SELECT date_trunc('day', TIMESTAMPTZ '2024-01-01 20:00:00+00')::VARCHAR"
        ).fetchone()
    finally:
        connection.close()

    assert found == ("2024-01-02 00:00:00+09",)


def test_a_timezone_that_there_is_not_is_an_error() -> None:
    with pytest.raises(duckdb.Error):
        open_connection(
            memory_bytes=64 << 20, threads=1, spill=None, spill_bytes=0, timezone="Nowhere/At_All"
        )


def test_known_timezones_are_those_that_a_connection_takes() -> None:
    known = known_timezones()
    assert {"UTC", "Europe/Vienna", "America/Argentina/Ushuaia", "Etc/GMT+5"} <= known

    with duckdb.connect() as connection:
        for name in sorted(known)[::40]:
            connection.execute(f"SET TimeZone = '{name}'")
    with pytest.raises(duckdb.Error, match="Unknown TimeZone"):
        open_connection(
            memory_bytes=64 << 20, threads=1, spill=None, spill_bytes=0, timezone="localtime"
        )
