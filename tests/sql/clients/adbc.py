"""ADBC's driver, by Python's DBAPI and by its own functions, and what reads through it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import adbc_driver_flightsql
import adbc_driver_flightsql.dbapi
import adbc_driver_manager
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
from adbc_driver_manager import dbapi

from tests.sql.clients.kinds import NOBODY, Row, Shown

AUTHORIZATION = adbc_driver_flightsql.DatabaseOptions.AUTHORIZATION_HEADER.value


def options_of(shown: Shown) -> dict[str, str]:
    if shown.token is not None:
        return {AUTHORIZATION: f"Bearer {shown.token}"}
    if shown.username is not None:
        return {"username": shown.username, "password": shown.password or ""}
    return {}


def rows_of(table: pa.Table) -> list[Row]:
    return [tuple(row.values()) for row in table.to_pylist()]


def tables_in(objects: list[dict[str, Any]]) -> set[str]:
    return {
        f"{schema['db_schema_name']}.{table['table_name']}"
        for catalog in objects
        for schema in catalog["catalog_db_schemas"]
        for table in schema["db_schema_tables"]
    }


class _Batches:
    """A reader of record batches, and what gives it up."""

    def __init__(self, reader: pa.RecordBatchReader, cancel: Any) -> None:
        self._reader = reader
        self._cancel = cancel

    def read(self) -> int:
        for batch in self._reader:
            if batch.num_rows:
                return batch.num_rows
        return 0

    def cancel(self) -> None:
        self._cancel()
        self._reader.close()


# --- Python's DBAPI ------------------------------------------------------------------------------


class DbapiSession:
    def __init__(self, connection: dbapi.Connection) -> None:
        self.connection = connection

    def tables(self) -> set[str]:
        return tables_in(self.connection.adbc_get_objects(depth="tables").read_all().to_pylist())

    def columns(self, schema: str, table: str) -> list[str]:
        return self.connection.adbc_get_table_schema(table, db_schema_filter=schema).names

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, parameters or None)
            return [tuple(row) for row in cursor.fetchall()]

    def stream(self, sql: str) -> _Batches:
        cursor = self.connection.cursor()
        cursor.execute(sql)
        return _Batches(cursor.fetch_record_batch(), cursor.close)

    def partitions(self, sql: str) -> list[bytes]:
        with self.connection.cursor() as cursor:
            return cursor.adbc_execute_partitions(sql)[0]

    def read_partition(self, partition: bytes) -> list[Row]:
        with self.connection.cursor() as cursor:
            cursor.adbc_read_partition(partition)
            return rows_of(cursor.fetch_arrow_table())


class AdbcDbapi:
    name = "adbc-dbapi"
    abilities = frozenset({"browse", "parameters", "stream", "types", "partitions", "login"})
    session: type[DbapiSession] = DbapiSession

    @contextmanager
    def connect(self, location: str, shown: Shown = NOBODY) -> Iterator[DbapiSession]:
        with adbc_driver_flightsql.dbapi.connect(
            location, options_of(shown), autocommit=True
        ) as connection:
            yield self.session(connection)


# --- ADBC's own functions ------------------------------------------------------------------------


def _reader(handle: adbc_driver_manager.ArrowArrayStreamHandle) -> pa.RecordBatchReader:
    return pa.RecordBatchReader._import_from_c(handle.address)


class LowLevelSession:
    def __init__(self, connection: adbc_driver_manager.AdbcConnection) -> None:
        self._connection = connection

    def tables(self) -> set[str]:
        depth = adbc_driver_manager.GetObjectsDepth.TABLES
        handle = self._connection.get_objects(depth)
        return tables_in(_reader(handle).read_all().to_pylist())

    def columns(self, schema: str, table: str) -> list[str]:
        handle = self._connection.get_table_schema(None, schema, table)
        return pa.Schema._import_from_c(handle.address).names

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        with adbc_driver_manager.AdbcStatement(self._connection) as statement:
            statement.set_sql_query(sql)
            if parameters:
                statement.prepare()
                row = pa.record_batch({str(n): [value] for n, value in enumerate(parameters)})
                schema, array = row.__arrow_c_array__()
                statement.bind(array, schema)
            handle, _ = statement.execute_query()
            return rows_of(_reader(handle).read_all())

    def stream(self, sql: str) -> _Batches:
        statement = adbc_driver_manager.AdbcStatement(self._connection)
        statement.set_sql_query(sql)
        handle, _ = statement.execute_query()
        reader = _reader(handle)

        def cancel() -> None:
            statement.cancel()
            reader.close()
            statement.close()

        return _Batches(reader, cancel)

    def partitions(self, sql: str) -> list[bytes]:
        with adbc_driver_manager.AdbcStatement(self._connection) as statement:
            statement.set_sql_query(sql)
            return statement.execute_partitions()[0]

    def read_partition(self, partition: bytes) -> list[Row]:
        return rows_of(_reader(self._connection.read_partition(partition)).read_all())


class AdbcLowLevel:
    name = "adbc-low-level"
    abilities = frozenset({"browse", "parameters", "stream", "types", "partitions", "login"})

    @contextmanager
    def connect(self, location: str, shown: Shown = NOBODY) -> Iterator[LowLevelSession]:
        with (
            adbc_driver_flightsql.connect(location, options_of(shown)) as database,
            adbc_driver_manager.AdbcConnection(database) as connection,
        ):
            yield LowLevelSession(connection)


# --- what reads through the DBAPI ----------------------------------------------------------------


class PandasSession(DbapiSession):
    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        assert not parameters, "read_sql takes none for a connection of ADBC"
        frame = pd.read_sql(sql, self.connection, dtype_backend="pyarrow")
        return rows_of(pa.Table.from_pandas(frame, preserve_index=False))


class Pandas(AdbcDbapi):
    name = "pandas.read_sql"
    abilities = frozenset({"types", "login"})
    session = PandasSession


class PolarsSession(DbapiSession):
    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        given = {"parameters": list(parameters)} if parameters else None
        return pl.read_database(sql, self.connection, execute_options=given).rows()

    def stream(self, sql: str) -> Any:
        # a cursor that Polars makes it leaves to the garbage collector
        cursor = self.connection.cursor()
        frames = pl.read_database(sql, cursor, iter_batches=True)

        class Frames:
            def read(self) -> int:
                return next(frames, pl.DataFrame()).height

            def cancel(self) -> None:
                frames.close()
                cursor.close()

        return Frames()


class Polars(AdbcDbapi):
    name = "polars.read_database"
    abilities = frozenset({"parameters", "types", "stream", "login"})
    session = PolarsSession


class DuckDbSession(DbapiSession):
    """DuckDB computes something of an answer that it reads through ADBC, batch by batch."""

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        with self.connection.cursor() as cursor, duckdb.connect() as engine:
            cursor.execute(sql, parameters or None)
            engine.register("answer", cursor.fetch_record_batch())
            engine.execute("SET TimeZone = 'UTC'")
            return rows_of(engine.sql("FROM answer").to_arrow_table())

    def stream(self, sql: str) -> _Batches:
        cursor = self.connection.cursor()
        cursor.execute(sql)
        engine = duckdb.connect()
        engine.register("answer", cursor.fetch_record_batch())
        reader = engine.sql("SELECT * FROM answer WHERE n >= 0").to_arrow_reader(10_000)

        def cancel() -> None:
            reader.close()
            engine.close()
            cursor.close()

        return _Batches(reader, cancel)


class DuckDb(AdbcDbapi):
    name = "duckdb-over-adbc"
    abilities = frozenset({"parameters", "types", "stream", "login"})
    session = DuckDbSession


class PolarsUriSession:
    def __init__(self, uri: str) -> None:
        self._uri = uri

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        given = {"parameters": list(parameters)} if parameters else None
        return pl.read_database_uri(sql, self._uri, engine="adbc", execute_options=given).rows()


class PolarsUri:
    """A connection of its own for each query, by a URI that has no place for a token or a
    password."""

    name = "polars.read_database_uri"
    abilities = frozenset({"types"})

    @contextmanager
    def connect(self, location: str, shown: Shown = NOBODY) -> Iterator[Any]:
        place = location.partition("://")[2]
        yield PolarsUriSession(f"flightsql://{place}?transport=tcp")
