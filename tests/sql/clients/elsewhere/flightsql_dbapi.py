"""flightsql-dbapi, which wants an old SQLAlchemy, by its DBAPI and by its dialect.

It reads the first endpoint of an answer, on the connection that it has, and no other: so it asks
for a single one by a header. Rows go through pandas, where NULL is NaN.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import flightsql
import flightsql.sqlalchemy  # whose import gives SQLAlchemy the dialect
import sqlalchemy
from serving import serve

HEADER = {"x-floeberg-single-endpoint": "true"}


def _null_for_nan(row: Sequence[Any]) -> list[Any]:
    return [None if value != value else value for value in row]


class Stream:
    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def read(self) -> int:
        for chunk in self._reader:
            if chunk.data is not None and chunk.data.num_rows:
                return chunk.data.num_rows
        return 0

    def cancel(self) -> None:
        self._reader.cancel()


class Dbapi:
    def __init__(self, client: flightsql.FlightSQLClient) -> None:
        self._client = client
        self._connection = flightsql.connect(client)

    def tables(self) -> list[str]:
        return [
            f"{schema}.{table}"
            for schema in self._connection.flightsql_get_schema_names()
            for table in self._connection.flightsql_get_table_names(schema)
        ]

    def columns(self, schema: str, table: str) -> list[str]:
        return [column["name"] for column in self._connection.flightsql_get_columns(table, schema)]

    def rows(self, sql: str, parameters: list[Any]) -> list[list[Any]]:
        cursor = self._connection.cursor()
        cursor.execute(sql, parameters)
        return [_null_for_nan(row) for row in cursor.fetchall()]

    def stream(self, sql: str) -> Stream:
        info = self._client.execute(sql)
        return Stream(self._client.do_get(info.endpoints[0].ticket))


class Alchemy:
    def __init__(self, url: str) -> None:
        self._engine = sqlalchemy.create_engine(url)

    def tables(self) -> list[str]:
        inspector = sqlalchemy.inspect(self._engine)
        return [
            f"{schema}.{table}"
            for schema in inspector.get_schema_names()
            for table in inspector.get_table_names(schema)
        ]

    def columns(self, schema: str, table: str) -> list[str]:
        inspector = sqlalchemy.inspect(self._engine)
        return [column["name"] for column in inspector.get_columns(table, schema)]

    def rows(self, sql: str, parameters: list[Any]) -> list[list[Any]]:
        with self._engine.connect() as connection:
            return [
                _null_for_nan(row) for row in connection.exec_driver_sql(sql, tuple(parameters))
            ]


def connect_dbapi(
    host: str, port: int, token: str | None, username: str | None, password: str | None
) -> Dbapi:
    return Dbapi(
        flightsql.FlightSQLClient(
            host=host,
            port=port,
            token=token,
            user=username,
            password=password,
            insecure=True,
            metadata=HEADER,
        )
    )


def connect_alchemy(
    host: str, port: int, token: str | None, username: str | None, password: str | None
) -> Alchemy:
    url = sqlalchemy.engine.URL.create(
        "datafusion+flightsql",
        username=username,
        password=password,
        host=host,
        port=port,
        query={"insecure": "true", **HEADER, **({"token": token} if token else {})},
    )
    return Alchemy(url)


serve(connect_alchemy if "--alchemy" in sys.argv else connect_dbapi)
