"""What the rows of statements will be, found out without running them."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

import duckdb
import pyarrow as pa

from floeberg.process.sql.checking import check_statement
from floeberg.process.sql.connecting import open_connection
from floeberg.process.sql.failing import sql_error
from floeberg.process.sql.shown_schemas import shown_schema
from floeberg.process.sql.types import arrow_type

_MEMORY_BYTES = 64 << 20


class Binding:
    """Binds statements in DuckDB's dialect over inputs of known schemas, on a database of its own.

    No expression is computed. For one thread; a context manager.
    """

    def __init__(self, inputs: Mapping[str, pa.Schema], timezone: str) -> None:
        self._inputs = dict(inputs)
        self._connection = open_connection(
            memory_bytes=_MEMORY_BYTES, threads=1, spill=None, spill_bytes=0, timezone=timezone
        )
        for name, schema in inputs.items():
            self._connection.register(name, shown_schema(schema).empty_table())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._connection.close()

    def schema(self, sql: str) -> pa.Schema:
        """Return the schema of the rows of a statement; every column may be null.

        Raises `BadSql` and `UnsupportedSql` for what would not run.
        """
        bound = self._bound(sql)
        return pa.schema(
            [
                (name, arrow_type(type_, name))
                for name, type_ in zip(bound.columns, bound.types, strict=True)
            ]
        )

    def columns(self, sql: str) -> list[tuple[str, str]]:
        """Return the columns of a statement by name and type, as DuckDB writes it. Raises likewise.

        The types may be such as no client is sent.
        """
        bound = self._bound(sql)
        return [(name, str(type_)) for name, type_ in zip(bound.columns, bound.types, strict=True)]

    def _bound(self, sql: str) -> duckdb.DuckDBPyRelation:
        try:
            check_statement(self._connection, sql, self._inputs)
            return self._connection.sql(sql)
        except duckdb.Error as exc:
            raise sql_error(exc, _MEMORY_BYTES, 0) from exc


def bind_statement(sql: str, inputs: Mapping[str, pa.Schema], timezone: str) -> pa.Schema:
    """Return the schema of the rows of one statement, as `Binding.schema` does."""
    with Binding(inputs, timezone) as binding:
        return binding.schema(sql)
