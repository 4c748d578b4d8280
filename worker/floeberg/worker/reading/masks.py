"""Which rows of a chunk are kept, as bits, and what they leave of its columns.

A mask is a `pyarrow.BooleanArray` without nulls: kernels make them, combine them and count their
bits in a fraction of the time that bools of a byte each take.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from floeberg.worker.arrow import ArrowArray, BooleanArray, Rows

Mask: TypeAlias = BooleanArray

_MOST, _FEW = 0.95, 0.06
"""From the first share of kept rows on, Arrow's filter is faster than taking rows by their places:
it copies stretches. So it is up to the second one, where it passes over stretches that hold none.
Between them it takes up to four times as long."""


def mask_of(flags: npt.NDArray[np.bool_]) -> Mask:
    """Return a mask of bools.

    >>> mask_of(np.array([True, False, True])).to_pylist()
    [True, False, True]
    """
    bits: Any = np.packbits(flags, bitorder="little")  # the stubs know of no arrays as buffers
    return pa.BooleanArray.from_buffers(pa.bool_(), len(flags), [None, pa.py_buffer(bits)])


def true_of(result: BooleanArray) -> Mask:
    """Return where a three-valued result is true.

    >>> true_of(pa.array([True, None, False])).to_pylist()
    [True, False, False]
    """
    bits: BooleanArray = pa.BooleanArray.from_buffers(
        pa.bool_(), len(result), [None, result.buffers()[1]], 0, result.offset
    )
    return pc.and_(bits, result.is_valid()) if result.null_count else bits


def both(one: Mask | None, other: Mask) -> Mask | None:
    """Return where both masks keep a row; None stands for a mask that keeps all."""
    kept: Mask = other if one is None else pc.and_(one, other)
    return None if kept.true_count == len(kept) else kept


def kept_of(rows: Rows, mask: Mask) -> Rows:
    """Return the rows that `mask` marks."""
    columns, count = rows.columns, mask.true_count
    if not columns:
        return Rows((), count)
    share = count / len(mask)
    if share >= _MOST:
        return Rows([_without_marks(column).filter(mask) for column in columns], count)
    if share <= _FEW:
        # looks through the mask once for all columns
        batch = pa.RecordBatch.from_arrays(list(columns), names=[""] * len(columns))
        return Rows(batch.filter(mask).columns, count)
    places = pa.array(places_of(mask).astype(np.int32))
    return Rows([_taken(column, places) for column in columns], count)


def places_of(mask: Mask) -> npt.NDArray[np.int64]:
    """Return where the rows are that `mask` marks, counted from its first.

    >>> places_of(pa.array([True, False, True, True]).slice(1)).tolist()
    [1, 2]
    """
    end = mask.offset + len(mask)
    bits = np.frombuffer(mask.buffers()[1], dtype=np.uint8)
    flags = np.unpackbits(bits, count=end, bitorder="little")
    return np.flatnonzero(flags[mask.offset :].view(np.bool_)).astype(np.int64, copy=False)


def _without_marks(column: ArrowArray) -> ArrowArray:
    """Return `column` without a buffer that marks none of its values as null, if it is a flat one
    of fixed width: the decoder gives each optional column such a buffer, with which Arrow's filter
    takes three times as long.
    """
    type_ = column.type
    if column.null_count or not pat.is_primitive(type_):
        return column
    marks, values = column.buffers()
    if marks is None:
        return column
    return pa.Array.from_buffers(type_, len(column), [None, values], 0, column.offset)


def _taken(column: ArrowArray, places: ArrowArray) -> ArrowArray:
    # the places are within the column, which need not be looked at again
    return pc.take(column, places, boundscheck=False)
