"""Queries over one table on DuckDB: as a whole, and by fragments of shares of its rows."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from floeberg.process.sql.shown_schemas import NO_COLUMN
from floeberg.protocol.expressions.binding import bind
from floeberg.protocol.expressions.model import Expression, field_ids
from floeberg.protocol.schema import Schema
from floeberg.server.sql.fragments import Fragments, fragments_of
from floeberg.server.sql.instants import Zone
from floeberg.server.sql.names import Session
from floeberg.server.sql.splitting import Split, split
from floeberg.server.sql.statements import parse_statement
from floeberg.worker.reading.predicates import compile_filter
from tests.support.lake import schema as lake_schema
from tests.support.sql_tables import COLUMNS, connection

SCHEMA = Schema.from_json(lake_schema(COLUMNS))

Shape = list[tuple[str, str]]


def parted(text: str, schema: Schema = SCHEMA) -> Split:
    """Return a query over tables of `COLUMNS` as it is split."""
    session = Session(["lake"], "lake", ("db",), zone=Zone("UTC"))
    return split(parse_statement(text), session, lambda _: schema)


def shares_of(table: pa.Table, rng: random.Random, count: int) -> list[pa.Table]:
    """Return the rows of `table` in shares, some of which may have none."""
    places = [rng.randrange(count) for _ in range(table.num_rows if count else 0)]
    return [
        table.take(pa.array([at for at, own in enumerate(places) if own == share], pa.int64()))
        for share in range(count)
    ]


class Engine:
    """DuckDB, with `table` as the only input. `close` it."""

    def __init__(self, table: pa.Table) -> None:
        self._connection = connection()
        self._table = table

    def close(self) -> None:
        self._connection.close()

    def fragments(self, text: str, identifier: str | None = None) -> Fragments | None:
        """Return the fragments of a query, described over an input without rows; `identifier` tells
        the rows apart, if it is given."""
        ids = () if identifier is None else (SCHEMA.lookup(identifier).field_id,)
        query = parted(text, replace(SCHEMA, identifier_field_ids=ids))
        self._read(query, self._table.slice(0, 0))
        return fragments_of(query, self.describe)

    def describe(self, sql: str) -> Shape | None:
        try:
            relation = self._connection.sql(sql)
        except duckdb.Error:
            return None
        return _shape(relation)

    def whole(self, text: str) -> tuple[Shape, list[tuple[Any, ...]]]:
        """Return columns and rows of a query over all rows. Raises duckdb.Error."""
        query = parted(text)
        self._read(query, self._table)
        relation = self._connection.sql(query.sql)
        return _shape(relation), relation.fetchall()

    def divided(
        self, text: str, fragments: Fragments, shares: Sequence[pa.Table]
    ) -> tuple[Shape, list[tuple[Any, ...]]]:
        """Return the same by fragments of `shares`, which travel as Arrow does."""
        query = parted(text)
        self._read(query, self._table.slice(0, 0))
        if fragments.merge is None:
            shape = _shape(self._connection.sql(fragments.fragment))
            rows = []
            for share in shares:
                self._read(query, share)
                rows += self._connection.sql(fragments.fragment).fetchall()
            return shape, rows
        given = [self._connection.sql(fragments.fragment).to_arrow_table()]
        told = given[0].schema
        for share in shares:
            self._read(query, share)
            given.append(self._connection.sql(fragments.fragment).to_arrow_table().cast(told))
        # the first, of no share, gave the schema
        self._connection.register(fragments.name, pa.concat_tables(given[1:] or [given[0][:0]]))
        relation = self._connection.sql(fragments.merge)
        rows = relation.fetchall()
        shape = _shape(relation)
        self._connection.unregister(fragments.name)
        return shape, rows

    def _read(self, query: Split, rows: pa.Table) -> None:
        for source in query.inputs:
            kept = rows.filter(_is_kept(source.filter, rows))
            columns = [column.name for column in source.columns]
            read = kept.select(columns) if columns else pa.table({NO_COLUMN: pa.nulls(len(kept))})
            self._connection.register(source.name, read)


def _is_kept(filter_: Expression, rows: pa.Table) -> pa.Array[Any]:
    """Return for each row whether `filter_` is true of it, as a scan decides."""
    bound = bind(filter_, SCHEMA)
    columns = {}
    for field_id in field_ids(bound):
        first, *below = SCHEMA.name_of(field_id).split(".")
        column: Any = rows[first].combine_chunks()
        for name in below:
            column = pc.struct_field(column, name)
        columns[field_id] = column
    result: pa.Array[Any] = compile_filter(bound)(columns, rows.num_rows)
    return result


def _shape(relation: duckdb.DuckDBPyRelation) -> Shape:
    return list(zip(relation.columns, map(str, relation.types), strict=True))


def agree(one: Sequence[tuple[Any, ...]], other: Sequence[tuple[Any, ...]]) -> bool:
    """Say whether two answers have the same rows in whatever order, floats nearly the same."""
    if len(one) != len(other):
        return False
    ordered = [sorted(rows, key=lambda row: repr(_rounded(row))) for rows in (one, other)]
    return all(_near(mine, its) for mine, its in zip(*ordered, strict=True))


def agree_in_order(one: Sequence[tuple[Any, ...]], other: Sequence[tuple[Any, ...]]) -> bool:
    """Say whether two answers have the same rows in the same order."""
    return len(one) == len(other) and all(map(_near, one, other))


def _near(one: object, other: object) -> bool:
    match one, other:
        case float(), float():
            return (
                one == other
                or (math.isnan(one) and math.isnan(other))
                or math.isclose(one, other, rel_tol=1e-12)
            )
        case (tuple() | list(), tuple() | list()):
            return len(one) == len(other) and all(map(_near, one, other))
        case dict(), dict():
            return _near(list(one.items()), list(other.items()))
        case _:
            return one == other


def _rounded(value: object) -> object:
    match value:
        case float():
            # of zeros that are equal, and of sums that differ in their last bits
            return float(f"{value:.8e}") + 0.0
        case tuple() | list():
            return [_rounded(each) for each in value]
        case dict():
            return {key: _rounded(each) for key, each in value.items()}
        case _:
            return value
