"""The forms that rows come in, whatever was asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.process.frames import to_pandas, to_polars

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class PlannedRows(Protocol):
    """What was asked for, as the coordinator has planned it."""

    @property
    def info(self) -> fl.FlightInfo:
        """The schema, the endpoints with tickets and locations, and totals (-1 unknown)."""
        ...

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Yield the rows; closing the generator ends the streams."""
        ...


class RemoteRows(ABC):
    """Rows that are asked for. Nothing is asked of the server until a method that reads is called,
    and each call plans anew."""

    @abstractmethod
    def planned(self) -> PlannedRows: ...

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream that holds a bounded window; DuckDB, Polars and others read
        it as it is. They are planned before this returns."""
        plan = self.planned()
        return pa.RecordBatchReader.from_batches(plan.info.schema, plan.batches())

    def to_batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Return the rows batch by batch, as they arrive. They are planned before this returns."""
        return self.planned().batches()

    def to_arrow(self) -> pa.Table:
        """Return all rows as one table."""
        plan = self.planned()
        return pa.Table.from_batches(plan.batches(), schema=plan.info.schema)

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """Return all rows as a pandas DataFrame (extra `pandas`); `options` are those of
        `pyarrow.Table.to_pandas`."""
        return to_pandas(self.to_arrow, options)

    def to_polars(self) -> pl.DataFrame:
        """Return all rows as a Polars DataFrame (extra `polars`)."""
        return to_polars(self.to_arrow)
