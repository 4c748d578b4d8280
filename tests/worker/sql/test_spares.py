from __future__ import annotations

from floeberg.worker.sql.spares import SpareDatabases
from tests.support.waiting import wait_until


def test_each_database_is_given_once() -> None:
    databases = SpareDatabases()
    databases.refill()
    wait_until(lambda: len(databases._spares) == 2, "the spares to be opened")

    given = [databases.take() for _ in range(4)]

    assert len({id(database) for database in given}) == 4
    for database in given:
        # nothing of another statement is in it
        assert database.execute("SELECT count(*) FROM duckdb_tables()").fetchall() == [(0,)]
        database.execute("CREATE TABLE t (a INT)")
        database.close()


def test_no_more_are_opened_than_are_kept() -> None:
    databases = SpareDatabases()
    for _ in range(3):
        databases.refill()
    wait_until(lambda: not databases._is_filling, "the spares to be opened")
    databases.refill()

    assert len(databases._spares) == 2
