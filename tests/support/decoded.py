"""Decoded rows as Python values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from floeberg.worker.arrow import Rows


def tuples_of(rows: Rows) -> list[tuple[Any, ...]]:
    """Return each row as a tuple; there may be no columns."""
    if not rows.columns:
        return [()] * len(rows)
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def table_of(chunks: Sequence[Rows], names: Sequence[str]) -> pa.Table:
    """Return the rows of `chunks` as one table."""
    batches = [pa.RecordBatch.from_arrays(list(c.columns), names=list(names)) for c in chunks]
    return pa.Table.from_batches(batches)
