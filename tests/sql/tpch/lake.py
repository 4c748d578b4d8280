"""TPC-H's tables as Iceberg tables that have lived: with deletes of every kind, and evolved.

Most of the generator's files are data files as they stand. Rows of the others were written before
the schema or the partitioning became what it is, or are written again after a delete took them from
their file; so the live rows are just the generator's.

- `lineitem` (v2): a column renamed, two promoted and one added; position deletes, equality deletes
  of two columns; partitioned by year from some time on
- `orders` (v3): a column added with a default; deletion vectors; partitioned by year from some time
  on, and then by status
- `customer` (v2): older versions of rows that equality deletes took away, under narrower types and
  an older name; a file whose rows are all deleted by position
- `part` (v2): partitioned by manufacturer, and then no more; a column promoted
- `partsupp` (v2, then v3): position deletes, then deletion vectors
- `supplier` (v1), `nation` and `region`: as they were generated
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from tests.sql.tpch.generated import generate, part_of
from tests.support.lake import DATA, Commit, TableWriter, WrittenFile
from tests.support.lake.files import metrics_of
from tests.support.lake.schemas import change_column, drop_column, find

pc: Any = pyarrow.compute  # the stubs lack overloads for what is used here

NAMESPACE = "tpch"


def write_lake(directory: Path, scale: float, parts: int = 3) -> None:
    """Write a warehouse of the eight tables in namespace `tpch`; each large one has its rows from
    so many files of the generator, three at least, which lie in the tables' directories."""
    assert parts >= 3
    warehouse = directory / NAMESPACE
    generate(warehouse, scale, parts)
    with duckdb.connect() as engine:
        engine.execute("SET threads = 1")
        for name in ("region", "nation", "supplier"):
            table = _Table(warehouse, name, engine, 1, format_version=1 + (name != "supplier"))
            with table.writer.commit() as commit:
                table.lay(commit, 1)
        _write_lineitem(_Table(warehouse, "lineitem", engine, parts))
        _write_orders(_Table(warehouse, "orders", engine, parts, format_version=3))
        _write_customer(_Table(warehouse, "customer", engine, parts))
        _write_part(_Table(warehouse, "part", engine, parts))
        _write_partsupp(_Table(warehouse, "partsupp", engine, parts))


_TYPES = {
    pa.int64(): "long",
    pa.int32(): "int",
    pa.string_view(): "string",
    pa.date32(): "date",
    pa.decimal128(15, 2): "decimal(15,2)",
}


def generated_schema(directory: Path, table: str) -> Any:
    """Return the Iceberg schema of a table as `generate` writes it, with the numbers that its
    columns have in the files."""
    fields = [
        {"id": number, "name": field.name, "required": True, "type": _TYPES[field.type]}
        for number, field in enumerate(pq.read_schema(part_of(directory, table, 1)), 1)
    ]
    return {"type": "struct", "schema-id": 0, "fields": fields}


class _Table:
    """A table on its way: `writer` writes it, and the generator's files give its rows."""

    def __init__(
        self,
        warehouse: Path,
        name: str,
        engine: duckdb.DuckDBPyConnection,
        parts: int,
        format_version: int = 2,
    ) -> None:
        self._warehouse = warehouse
        self._name = name
        self._engine = engine
        self.parts = range(1, parts + 1)
        self.schema = generated_schema(warehouse, name)
        """That of the generator's files."""
        self._format_version = format_version
        self._writer: TableWriter | None = None

    def create(self, schema: Any, spec: Sequence[Any] = ()) -> TableWriter:
        """Create the table with another schema than the generator's."""
        self._writer = TableWriter.create(
            self._warehouse / self._name, schema, spec, format_version=self._format_version
        )
        return self._writer

    @property
    def writer(self) -> TableWriter:
        return self._writer or self.create(self.schema)

    def rows(self, part: int, where: str, items: str = "*") -> pa.Table:
        file = part_of(self._warehouse, self._name, part)
        sql = f"SELECT {items} FROM read_parquet('{file}') WHERE {where}"
        rows: pa.Table = self._engine.sql(sql).to_arrow_table()
        return rows

    def positions(self, part: int, where: str) -> list[int]:
        file = part_of(self._warehouse, self._name, part)
        source = f"read_parquet('{file}', file_row_number = true)"
        found = self._engine.execute(f"SELECT file_row_number FROM {source} WHERE {where}")
        return [position for (position,) in found.fetchall()]

    def lay(self, commit: Commit, part: int) -> WrittenFile:
        """Add a file of the generator's, as it stands, without a partition."""
        file = part_of(self._warehouse, self._name, part)
        rows = self.rows(part, "TRUE")
        return commit.add_file(
            WrittenFile(
                self.writer.new_location(file.name),
                DATA,
                "parquet",
                rows.num_rows,
                file.stat().st_size,
                self.writer.unpartitioned_spec_id(),
                metrics=metrics_of(rows, self.schema),
            )
        )

    def append_parts(self, commit: Commit, part: int, where: str, field: str, value: str) -> None:
        """Add rows under a spec of one field, whose values the SQL `value` gives."""
        rows = self.rows(part, where, f"*, {value} AS partition_value")
        kept = rows.drop_columns(["partition_value"])
        values = rows["partition_value"]
        for each in values.unique().to_pylist():
            commit.append(kept.filter(pc.equal(values, each)), partition={field: each})


# --- tables ---------------------------------------------------------------------------------------


def _write_lineitem(table: _Table) -> None:
    first, *between, last = table.parts
    older = change_column(table.schema, "l_extendedprice", name="l_price", type="decimal(12,2)")
    writer = table.create(change_column(older, "l_orderkey", type="int"))
    moved = "l_orderkey % 8 = 1"
    writer.append(table.rows(first, moved, "* RENAME (l_extendedprice AS l_price)"))
    writer.promote_column("l_orderkey", "long")
    writer.promote_column("l_price", "decimal(15,2)")
    writer.rename_column("l_price", "l_extendedprice")
    writer.add_column("l_note", "string")
    with writer.commit() as commit:
        files = [table.lay(commit, part) for part in (first, *between)]
    writer.delete_positions({files[0]: table.positions(first, moved)})
    writer.evolve_spec([("l_shipdate", "year")])
    by_year = "l_shipdate_year", "year(l_shipdate)::INT - 1970"
    with writer.commit() as commit:
        table.append_parts(commit, last, "TRUE", *by_year)
    # what streaming writers do for an update: the delete and the row's new version in one commit
    updated = "l_orderkey % 64 = 5"
    with writer.commit() as commit:
        for part in between:
            keys = table.rows(part, updated, "l_orderkey, l_linenumber")
            commit.delete_equal(keys, ["l_orderkey", "l_linenumber"])
            table.append_parts(commit, part, updated, *by_year)


def _write_orders(table: _Table) -> None:
    first, *between, last = table.parts
    writer = table.create(drop_column(table.schema, "o_shippriority"))
    moved = "o_orderkey % 16 = 3"
    writer.append(table.rows(first, moved))
    # all orders have 0, so that the default is what older files lack
    added = find(table.schema, "o_shippriority") | {"initial-default": 0, "write-default": 0}
    fields = [added if f["name"] == added["name"] else f for f in table.schema["fields"]]
    writer.evolve_schema({**table.schema, "fields": fields})
    with writer.commit() as commit:
        files = [table.lay(commit, part) for part in (first, *between)]
    writer.write_vectors({files[0]: table.positions(first, moved)})
    writer.evolve_spec([("o_orderdate", "year")])
    with writer.commit() as commit:
        table.append_parts(
            commit, last, "TRUE", "o_orderdate_year", "year(o_orderdate)::INT - 1970"
        )
    writer.evolve_spec([("o_orderstatus", "identity")])
    updated = "o_orderkey % 32 = 7"
    with writer.commit() as commit:
        commit.write_vectors({files[1]: table.positions(2, updated)})
        table.append_parts(commit, 2, updated, "o_orderstatus", "o_orderstatus")


def _write_customer(table: _Table) -> None:
    older = change_column(table.schema, "c_mktsegment", name="c_segment")
    older = change_column(older, "c_acctbal", type="decimal(12,2)")
    writer = table.create(change_column(older, "c_custkey", type="int"))
    # older versions of rows, which their newer ones replace
    changed = "c_custkey % 10 = 1"
    stale = "* REPLACE (0::DECIMAL(12, 2) AS c_acctbal) RENAME (c_mktsegment AS c_segment)"
    writer.append(pa.concat_tables([table.rows(part, changed, stale) for part in table.parts]))
    writer.rename_column("c_segment", "c_mktsegment")
    writer.promote_column("c_acctbal", "decimal(15,2)")
    writer.promote_column("c_custkey", "long")
    with writer.commit() as commit:
        for part in table.parts:
            commit.delete_equal(table.rows(part, changed, "c_custkey"), ["c_custkey"])
            table.lay(commit, part)
    (twice,) = writer.append(table.rows(1, "c_custkey % 10 = 2"))
    writer.delete_positions({twice: range(twice.record_count)})


def _write_part(table: _Table) -> None:
    first, *others = table.parts
    writer = table.create(table.schema, [("p_mfgr", "identity")])
    with writer.commit() as commit:
        table.append_parts(commit, first, "TRUE", "p_mfgr", "p_mfgr")
    writer.evolve_spec([])
    writer.promote_column("p_size", "long")
    with writer.commit() as commit:
        for part in others:
            table.lay(commit, part)


def _write_partsupp(table: _Table) -> None:
    writer = table.writer
    with writer.commit() as commit:
        files = [table.lay(commit, part) for part in table.parts]
    moved = "ps_partkey % 20 = 7"
    with writer.commit() as commit:
        commit.delete_positions({files[0]: table.positions(1, moved)})
        commit.append(table.rows(1, moved))
    writer.upgrade(3)
    moved = "ps_partkey % 20 = 9"
    with writer.commit() as commit:
        commit.write_vectors({files[1]: table.positions(2, moved)})
        commit.append(table.rows(2, moved))
