from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from floeberg.worker.sql.databases import Databases, Settings

SETTINGS = Settings(64 << 20, 1 << 20, 1, "Asia/Tokyo")


def _setting(connection: duckdb.DuckDBPyConnection, name: str) -> object:
    ((value,),) = connection.execute(f"SELECT current_setting('{name}')").fetchall()
    return value


def _marked(connection: duckdb.DuckDBPyConnection) -> str:
    """Return which database a connection is of."""
    return str(_setting(connection, "temp_directory"))


@pytest.fixture
def databases(tmp_path: Path) -> Iterator[Databases]:
    made = 0

    @contextmanager
    def directory() -> Iterator[Path]:
        nonlocal made
        made += 1
        path = tmp_path / str(made)
        path.mkdir()
        try:
            yield path
        finally:
            path.rmdir()

    lent = Databases(directory)
    yield lent
    lent.close()
    assert list(tmp_path.iterdir()) == []


def test_the_next_statement_has_the_database_and_nothing_of_the_one_before(
    databases: Databases,
) -> None:
    with databases.lend(SETTINGS) as connection:
        first = _marked(connection)
        connection.register("i0", pa.table({"a": [1]}))
        connection.execute("PREPARE p AS SELECT 1")
        connection.execute("SELECT setseed(0.5)").fetchall()
        seeded = connection.execute("SELECT random()").fetchall()
    with databases.lend(SETTINGS) as connection:
        assert _marked(connection) == first
        with pytest.raises(duckdb.CatalogException):
            connection.execute("SELECT * FROM i0")
        with pytest.raises(duckdb.Error):
            connection.execute("EXECUTE p")
        assert connection.execute("SELECT random()").fetchall() != seeded
        assert connection.execute("SELECT count(*) FROM duckdb_tables()").fetchall() == [(0,)]
        assert connection.execute(
            "SELECT count(*) FROM duckdb_views() WHERE NOT internal"
        ).fetchall() == [(0,)]


def test_each_connection_is_locked_down(databases: Databases) -> None:
    of_python = pa.table({"a": [1]})
    told = ("TimeZone", "memory_limit", "enable_external_access", "lock_configuration")
    for _ in range(2):
        with databases.lend(SETTINGS) as connection:
            values = [_setting(connection, name) for name in told]
            with pytest.raises(duckdb.CatalogException):
                connection.execute("SELECT * FROM of_python")
        assert values == ["Asia/Tokyo", "64.0 MiB", False, True]
    assert of_python.num_rows == 1


def test_no_two_statements_share_one(databases: Databases) -> None:
    with databases.lend(SETTINGS) as one, databases.lend(SETTINGS) as other:
        assert _marked(one) != _marked(other)


def test_other_settings_are_another_database(databases: Databases) -> None:
    marks: set[str] = set()
    for settings in (SETTINGS, replace(SETTINGS, timezone="UTC"), replace(SETTINGS, threads=2)):
        with databases.lend(settings) as connection:
            marks.add(_marked(connection))
    assert len(marks) == 3


def test_after_a_failure_it_is_not_used_again(databases: Databases) -> None:
    marks: list[str] = []

    def fail() -> None:
        with databases.lend(SETTINGS) as connection:
            marks.append(_marked(connection))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not Path(marks[0]).exists()
    with databases.lend(SETTINGS) as connection:
        assert _marked(connection) != marks[0]


def test_a_wrong_timezone_leaves_nothing(databases: Databases) -> None:
    with pytest.raises(duckdb.Error), databases.lend(replace(SETTINGS, timezone="Mars/Olympus")):
        pass


def test_those_idle_for_longest_are_closed_first(databases: Databases, tmp_path: Path) -> None:
    for threads in range(1, 11):
        with databases.lend(replace(SETTINGS, threads=threads)):
            pass
    assert {path.name for path in tmp_path.iterdir()} == {str(n) for n in range(3, 11)}


def test_one_that_comes_back_after_the_end_is_closed(databases: Databases, tmp_path: Path) -> None:
    with databases.lend(SETTINGS):
        databases.close()
    assert list(tmp_path.iterdir()) == []
