"""Columns of values that can be compared with literals, all rows at once.

A column has a value where it is `known`, None where that is in every row; what a comparison says of
the other rows means nothing, and who compares leaves them out. Numbers compare as numbers, and so
do decimals of one scale by their unscaled values; text and bytes compare as unsigned bytes, which
for text is the order of its code points.

Arrays go to Arrow and back by their buffers: pyarrow's own conversions import pandas where it is
installed, and the first filter of a process would wait for that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from floeberg.protocol.expressions.model import Op
from floeberg.protocol.manifests import Strings

Mask: TypeAlias = npt.NDArray[np.bool_]
Places: TypeAlias = npt.NDArray[np.int64]

_NUMPY: dict[Op, Callable[[Any, Any], Any]] = {
    Op.EQ: np.equal,
    Op.LT: np.less,
    Op.LE: np.less_equal,
    Op.GT: np.greater,
    Op.GE: np.greater_equal,
}
_ARROW: dict[Op, str] = {
    Op.EQ: "equal",
    Op.LT: "less",
    Op.LE: "less_equal",
    Op.GT: "greater",
    Op.GE: "greater_equal",
}


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """Integers, floats, or (of type object) integers of any size; shape (rows,)."""

    values: npt.NDArray[Any]
    known: Mask | None

    def __len__(self) -> int:
        return len(self.values)

    def compare(self, op: Op, other: Any) -> Mask:
        """Say of each row whether its value is `op` a literal, or another column's. NaN is not."""
        right = other.values if isinstance(other, NumberColumn) else other
        # an array of objects compares to one of objects
        return np.asarray(_NUMPY[op](self.values, right), dtype=np.bool_)

    def rank(self, literals: Sequence[Any]) -> Places:
        """Return how many of the ascending literals are less than each value."""
        return np.searchsorted(self._array(literals), self.values)

    def reaches(self, literals: Sequence[Any], places: Places) -> Mask:
        """Say whether the literal at each row's place is at most its value."""
        return np.asarray(self._array(literals)[places] <= self.values, dtype=np.bool_)

    def _array(self, literals: Sequence[Any]) -> npt.NDArray[Any]:
        if self.values.dtype == np.object_:
            array = np.empty(len(literals), dtype=np.object_)
            array[:] = literals
            return array
        is_float = self.values.dtype.kind == "f"
        return np.array(literals, dtype=np.float64 if is_float else np.int64)


@dataclass(frozen=True, slots=True)
class ByteColumn:
    """Text or bytes, as an Arrow array without nulls. Literals are bytes."""

    # Any: what is known of it to the stubs of pyarrow is of little use
    values: Any
    known: Mask | None

    def __len__(self) -> int:
        return len(self.values)

    def compare(self, op: Op, other: Any) -> Mask:
        """Say of each row whether its value is `op` a literal, or another column's."""
        right = other.values if isinstance(other, ByteColumn) else _literals([other])[0]
        return _mask(pc.call_function(_ARROW[op], [self.values, right]))

    def starts_with(self, prefix: bytes) -> Mask:
        options = pc.MatchSubstringOptions(cast(str, prefix))  # which takes bytes as well
        return _mask(pc.call_function("starts_with", [self.values], options))

    def rank(self, literals: Sequence[bytes]) -> Places:
        """Return how many of the ascending literals are less than each value."""
        if len(literals) <= _FEW_LITERALS:
            rank = np.zeros(len(self.values), dtype=np.int64)
            for literal in literals:
                rank += self.compare(Op.GT, literal)
            return rank
        values: list[bytes] = self.values.to_pylist()
        return np.fromiter((bisect_left(literals, v) for v in values), np.int64, len(values))

    def reaches(self, literals: Sequence[bytes], places: Places) -> Mask:
        """Say whether the literal at each row's place is at most its value."""
        chosen = _literals(literals).take(as_indices(places))
        return _mask(pc.call_function("less_equal", [chosen, self.values]))


OrderedColumn: TypeAlias = NumberColumn | ByteColumn

_FEW_LITERALS = 16


def is_member(column: OrderedColumn, literals: Sequence[Any]) -> Mask:
    """Say of each row whether its value is among the ascending literals. NaN is not."""
    if not literals:
        return np.zeros(len(column), dtype=np.bool_)
    if len(literals) == 1:
        return column.compare(Op.EQ, literals[0])
    places = column.rank(literals)
    inside = places < len(literals)
    places = np.minimum(places, len(literals) - 1)
    return inside & column.reaches(literals, places)


def both(one: Mask | None, other: Mask | None) -> Mask | None:
    """Return where both masks are true; None stands for everywhere."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def unless_unknown(known: Mask | None, mask: Mask) -> Mask:
    """Return `mask`, and true where a value is not known."""
    return mask if known is None else mask | ~known


def as_binary(column: Strings) -> Any:
    """Return the values of a column as an Arrow array, those that are missing as empty or zeros.

    It is not copied where the values differ in width.
    """
    data, offsets = column.data, column.offsets
    if offsets is None:
        offsets = np.arange(len(column) + 1, dtype=np.int32)
        offsets *= data.shape[1]
        data = np.ascontiguousarray(data)
    parts: list[Any] = [offsets, data]  # arrays are buffers, which the stubs do not know
    buffers: list[Any] = [None, *map(pa.py_buffer, parts)]
    return pa.Array.from_buffers(pa.binary(), len(column), buffers)


def as_indices(places: Places) -> Any:
    """Return `places` as an Arrow array, without copying them."""
    whole: Any = np.ascontiguousarray(places)
    return pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(whole)])


def _literals(literals: Sequence[bytes]) -> Any:
    offsets = np.zeros(len(literals) + 1, dtype=np.int32)
    np.cumsum([len(literal) for literal in literals], out=offsets[1:])
    return as_binary(Strings(np.frombuffer(b"".join(literals), dtype=np.uint8), offsets))


def _mask(array: Any) -> Mask:
    # Any: a boolean array without nulls, of which the stubs know no more
    bits = np.frombuffer(array.buffers()[1], dtype=np.uint8)
    count = array.offset + len(array)
    return np.unpackbits(bits, count=count, bitorder="little").view(np.bool_)[array.offset :]
