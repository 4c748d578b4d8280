"""SQLAlchemy, by its dialect for ADBC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import sqlalchemy

from tests.sql.clients.kinds import NOBODY, Row, Shown


class _Rows:
    def __init__(self, connection: sqlalchemy.Connection, result: sqlalchemy.CursorResult) -> None:
        self._connection = connection
        self._result = result

    def read(self) -> int:
        return len(self._result.fetchmany(1000))

    def cancel(self) -> None:
        self._result.close()
        self._connection.close()


class AlchemySession:
    def __init__(self, engine: sqlalchemy.Engine) -> None:
        self._engine = engine

    def tables(self) -> set[str]:
        inspector = sqlalchemy.inspect(self._engine)
        return {
            f"{schema}.{table}"
            for schema in inspector.get_schema_names()
            for table in inspector.get_table_names(schema)
        }

    def columns(self, schema: str, table: str) -> list[str]:
        inspector = sqlalchemy.inspect(self._engine)
        return [column["name"] for column in inspector.get_columns(table, schema)]

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        with self._engine.connect() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(sql, tuple(parameters))]

    def table(self, schema: str, table: str) -> sqlalchemy.Table:
        return sqlalchemy.Table(
            table, sqlalchemy.MetaData(), schema=schema, autoload_with=self._engine
        )

    def select(self, statement: sqlalchemy.Select[Any]) -> list[Row]:
        with self._engine.connect() as connection:
            return [tuple(row) for row in connection.execute(statement)]

    def stream(self, sql: str) -> _Rows:
        connection = self._engine.connect()
        return _Rows(connection, connection.exec_driver_sql(sql))


class SqlAlchemy:
    name = "sqlalchemy-adbc"
    abilities = frozenset({"browse", "parameters", "stream", "types", "login"})

    @contextmanager
    def connect(self, location: str, shown: Shown = NOBODY) -> Iterator[AlchemySession]:
        place = location.partition("://")[2]
        if shown.token is not None:
            url = f"adbc+flightsql://anybody:{quote(shown.token)}@{place}/?tls=false"
        elif shown.username is not None:
            who = f"username={quote(shown.username)}&password={quote(shown.password or '')}"
            url = f"adbc+flightsql://{place}/?tls=false&{who}"
        else:
            url = f"adbc+flightsql://{place}/?tls=false"
        engine = sqlalchemy.create_engine(url)
        try:
            yield AlchemySession(engine)
        finally:
            engine.dispose()
