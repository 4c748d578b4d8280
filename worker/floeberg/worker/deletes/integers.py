"""Whether values are among keys that are integers, or counted as such: dates, times.

Rows that were written together have keys near each other, such as ids that were counted up. So few
of all keys lie within the bounds of a chunk, and a table over these bounds tells which.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
import pyarrow.types as pat

from floeberg.worker.arrow import ArrowArray

_SPAN_PER_ROW = 8
_LEAST_SPAN = 1 << 16

pc: Any = pyarrow.compute  # the stubs lack overloads for what is used here


class IntegerKeys:
    """A set of keys, of an array for which `are_integers`."""

    def __init__(self, keys: ArrowArray) -> None:
        self._sorted = np.unique(_integers(keys.drop_null()))
        self._has_null = keys.null_count > 0

    def matches(self, column: ArrowArray) -> npt.NDArray[np.bool_] | None:
        """Return which values of `column`, of the keys' type, are among the keys; a null is where
        there is a null among them. None where the values are too far apart to tell this way.
        """
        if column.null_count:
            return self._matches_with_nulls(column)
        return self._matches(_integers(column))

    def _matches_with_nulls(self, column: ArrowArray) -> npt.NDArray[np.bool_] | None:
        is_null = column.is_null().to_numpy(zero_copy_only=False)
        if column.null_count == len(column):
            return np.full(len(column), self._has_null)
        numbers = _as_numbers(column)
        # a value that is there, so that the bounds are those of the values
        matched = self._matches(numbers.fill_null(pc.min(numbers)).to_numpy())
        if matched is not None:
            matched[is_null] = self._has_null
        return matched

    def _matches(self, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_] | None:
        if not len(values):
            return np.zeros(0, dtype=np.bool_)
        first, last = values.min(), values.max()
        start = self._sorted.searchsorted(first)
        stop = self._sorted.searchsorted(last, side="right")
        if start == stop:
            return np.zeros(len(values), dtype=np.bool_)
        span = int(last) - int(first) + 1
        if span > max(_LEAST_SPAN, _SPAN_PER_ROW * len(values)):
            return None
        is_key = np.zeros(span, dtype=np.bool_)
        is_key[self._sorted[start:stop] - first] = True
        matched: npt.NDArray[np.bool_] = is_key[values - first]
        return matched

    @property
    def size_bytes(self) -> int:
        return self._sorted.nbytes


def are_integers(array: ArrowArray) -> bool:
    """Say whether the array's values are signed integers, or stored as such."""
    return _number_type(array) is not None


def _number_type(array: ArrowArray) -> Any:
    type_ = array.type
    if pat.is_int32(type_) or pat.is_date32(type_):
        return pa.int32()
    is_long = pat.is_int64(type_) or pat.is_timestamp(type_) or pat.is_time64(type_)
    return pa.int64() if is_long else None


def _as_numbers(array: ArrowArray) -> ArrowArray:
    return array.view(_number_type(array))


def _integers(array: ArrowArray) -> npt.NDArray[Any]:
    """Return the values of an array without nulls; they are not copied."""
    numbers: npt.NDArray[Any] = _as_numbers(array).to_numpy()
    return numbers
