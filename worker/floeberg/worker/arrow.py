"""Names for pyarrow's values in annotations, and rows that may have no columns.

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

BooleanArray: TypeAlias = Any
"""A `pyarrow.BooleanArray`."""

ArrowType: TypeAlias = Any
"""A `pyarrow.DataType`, of which a subclass's attributes are used after asking for its kind."""

ArrowField: TypeAlias = Any
"""A `pyarrow.Field`."""


def rows_without_columns(num_rows: int) -> ArrowArray:
    """Return a struct array without fields: rows that have no columns, and still a number.

    >>> len(rows_without_columns(3))
    3
    """
    return pa.StructArray.from_buffers(pa.struct([]), num_rows, [None])


class Rows:
    """Columns of one length, which have no names; there may be none.

    A struct array or a record batch would be the same, and takes longer to make than a chunk of a
    narrow column to decode.
    """

    __slots__ = ("columns", "num_rows")

    def __init__(self, columns: Sequence[ArrowArray], num_rows: int) -> None:
        self.columns = columns
        self.num_rows = num_rows

    @classmethod
    def of_batch(cls, batch: pa.RecordBatch) -> Rows:
        return cls(batch.columns, batch.num_rows)

    def __len__(self) -> int:
        return self.num_rows

    def slice(self, start: int, length: int | None = None) -> Rows:
        """Return `length` rows from `start` on, fewer at the end; all that follow without it.

        >>> len(Rows([], 3).slice(1))
        2
        """
        rest = max(self.num_rows - start, 0)
        count = rest if length is None else min(length, rest)
        if count == self.num_rows:
            return self
        return Rows([column.slice(start, count) for column in self.columns], count)


def fields_of(rows: ArrowArray) -> list[ArrowArray]:
    """Return the fields of a struct array as stored: not masked by the struct's own nulls."""
    return [rows.field(i) for i in range(rows.type.num_fields)]
