"""An input as DuckDB scans it: a pyarrow dataset that is read anew for each scan.

DuckDB asks a dataset for a scanner, with the columns that it wants and the part of WHERE that it
leaves to the scan, as an expression of pyarrow's. It does not apply that part again, so it is
applied here, row by row. The two agree on all that DuckDB hands over: of floats it keeps `>`, `>=`
and `<>` for itself, where NaN, its greatest value, would make them differ.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from floeberg.process.sql.shown_schemas import shown_schema

Read = Callable[[], Iterator[pa.RecordBatch]]


def take_unaligned_buffers() -> None:
    """Have Arrow align what comes over Flight before it filters, without a warning for each batch.

    To be called before the first filter, for the whole process.
    """
    os.environ.setdefault("ACERO_ALIGNMENT_HANDLING", "reallocate")


class InputDataset(ds.Dataset):
    """Rows of `schema`, read by `read` for each scan; whoever drops a scan drops its iterator."""

    def __init__(self, schema: pa.Schema, read: Read) -> None:
        self._shown = shown_schema(schema)
        self._read = read

    @property
    def schema(self) -> pa.Schema:
        return self._shown

    # DuckDB calls it by these names, and never asks for the rest of what a dataset can do
    def scanner(  # type: ignore[override]
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None
    ) -> _Scanner:
        return _Scanner(self._shown, self._read, columns, filter)


class _Scanner:
    def __init__(
        self,
        schema: pa.Schema,
        read: Read,
        columns: Sequence[str] | None,
        filter: pc.Expression | None,
    ) -> None:
        self._schema = schema
        self._read = read
        self._columns = schema.names if columns is None else list(columns)
        self._filter = filter

    @property
    def projected_schema(self) -> pa.Schema:
        return pa.schema([self._schema.field(name) for name in self._columns])

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.projected_schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._read():
            shown = _shown(batch, self._schema)
            if self._filter is None:
                yield shown.select(self._columns)
                continue
            # a table: of a batch, Arrow can't say that no row is left where types are extensions
            kept = pa.Table.from_batches([shown]).filter(self._filter)
            yield from kept.select(self._columns).to_batches()


def _shown(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = batch.columns if batch.num_columns else [pa.nulls(batch.num_rows)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
