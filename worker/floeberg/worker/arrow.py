"""Names for pyarrow's values in annotations, and rows that have no columns.

pyarrow's stubs give compute functions one signature for each class of array. Code that works on
arrays of any type can name none of them, so these are `Any` to a type checker; the names are for
readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa

ArrowArray: TypeAlias = Any
"""A `pyarrow.Array` of any type."""

StructRows: TypeAlias = Any
"""A `pyarrow.StructArray`: rows, with a field a column. Unlike a record batch it keeps its length
when it has no columns, also under `filter`.
"""

BooleanArray: TypeAlias = Any
"""A `pyarrow.BooleanArray`."""

ArrowType: TypeAlias = Any
"""A `pyarrow.DataType`, of which a subclass's attributes are used after asking for its kind."""

ArrowField: TypeAlias = Any
"""A `pyarrow.Field`."""


def rows_without_columns(num_rows: int) -> StructRows:
    """Return rows that have no columns, and still a number.

    >>> len(rows_without_columns(3))
    3
    """
    return pa.StructArray.from_buffers(pa.struct([]), num_rows, [None])


def rows_of(columns: Sequence[ArrowArray], num_rows: int) -> StructRows:
    """Return rows of these columns, which have no names; there may be none.

    >>> rows_of([pa.array([1, 2])], 2).field(0).to_pylist()
    [1, 2]
    """
    if not columns:
        return rows_without_columns(num_rows)
    return pa.StructArray.from_arrays(list(columns), names=[""] * len(columns))


def fields_of(rows: ArrowArray) -> list[ArrowArray]:
    """Return the fields of a struct array as stored: not masked by the struct's own nulls."""
    return [rows.field(i) for i in range(rows.type.num_fields)]
