"""What the rows of a statement will be, found out without running it."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pyarrow as pa

from floeberg.process.sql.checking import check_statement
from floeberg.process.sql.connecting import open_connection
from floeberg.process.sql.failing import sql_error
from floeberg.process.sql.shown_schemas import shown_schema
from floeberg.process.sql.types import arrow_type

_MEMORY_BYTES = 64 << 20


def bind_statement(sql: str, inputs: Mapping[str, pa.Schema], timezone: str) -> pa.Schema:
    """Return the schema of the rows of `sql`, DuckDB's dialect, over inputs of these schemas.

    The statement is bound, on a database of its own, and no expression of it computed. Every column
    may be null. Raises `BadSql` and `UnsupportedSql` for what would not run.
    """
    connection = open_connection(
        memory_bytes=_MEMORY_BYTES, threads=1, spill=None, spill_bytes=0, timezone=timezone
    )
    try:
        check_statement(connection, sql, inputs)
        for name, schema in inputs.items():
            connection.register(name, shown_schema(schema).empty_table())
        bound = connection.sql(sql)
        return pa.schema(
            [
                (name, arrow_type(type_, name))
                for name, type_ in zip(bound.columns, bound.types, strict=True)
            ]
        )
    except duckdb.Error as exc:
        raise sql_error(exc, _MEMORY_BYTES, 0) from exc
    finally:
        connection.close()
