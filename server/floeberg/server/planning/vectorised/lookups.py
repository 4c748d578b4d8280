"""Find which of some known values each row of a column has, all rows at once.

Made once from few values, and asked for very many rows that mostly have none of them. An answer is
the value's number, its place among the known ones; -1 stands for none.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from floeberg.protocol.manifests import Strings
from floeberg.protocol.manifests.columns import Bytes, Int64s
from floeberg.server.planning.vectorised.ordered import as_binary

Words = npt.NDArray[np.uint64]

_TABLE_ENTRIES: Final = 1 << 16
_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_HALF: Final = np.uint64(32)
_WORD_BYTES: Final = 8
_SAMPLE: Final = 1000
_FIRST_WORDS, _MOST_WORDS = 2, 8


class NumberLookup:
    """Known numbers, ascending and each once; shape (n,)."""

    def __init__(self, known: Int64s) -> None:
        self._known = known
        self._table: Int64s | None = None
        if len(known) and int(known[-1]) - int(known[0]) < max(_TABLE_ENTRIES, 16 * len(known)):
            # days, buckets and codes lie close together: a table is ten times as fast as a search
            self._table = np.full(int(known[-1]) - int(known[0]) + 1, -1, dtype=np.int64)
            self._table[known - known[0]] = np.arange(len(known))

    def __len__(self) -> int:
        return len(self._known)

    def find(self, values: npt.NDArray[np.signedinteger]) -> Int64s:
        """Return the number of each value."""
        if not len(self._known):
            return np.full(len(values), -1, dtype=np.int64)
        low, high = self._known[0], self._known[-1]
        inside = (values >= low) & (values <= high)
        within = np.where(inside, values, low)
        if self._table is not None:
            return np.where(inside, self._table[within - low], -1)
        places = np.searchsorted(self._known, within)
        return np.where(inside & (self._known[places] == within), places, -1)


class StringLookup:
    """Known byte strings, each once, in any order, as an Arrow array of binary without nulls."""

    # Any: what is known of arrays of binary to the stubs of pyarrow is of little use
    def __init__(self, known: Any) -> None:
        self._known = known
        self._ends: tuple[int, ...] = ()
        column = _column_of(known)
        everything = np.arange(len(known))
        self._ends = _telling_words(column)
        prints = _fingerprints(column, everything, self._ends[:_FIRST_WORDS])
        for words in range(_FIRST_WORDS, len(self._ends) + 1):
            prints = _fingerprints(column, everything, self._ends[:words])
            if words == len(self._ends) or len(np.unique(prints)) == len(known):
                self._ends = self._ends[:words]
                break
        self._order = np.argsort(prints, kind="stable")
        self._prints = prints[self._order]
        self._are_distinct = not np.equal(self._prints[1:], self._prints[:-1]).any()
        # most rows are told by a table of bits, which is small enough to stay at hand
        bits = max(10, (8 * len(known)).bit_length())
        self._shift = np.uint64(64 - bits)
        self._may_be = np.zeros(1 << bits, dtype=np.bool_)
        self._may_be[_places(self._prints >> self._shift)] = True

    def __len__(self) -> int:
        return len(self._known)

    def find(self, column: Strings, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Return which of `rows` have a known value, as places in `rows`, and the values' numbers.

        All of `rows` have a value.
        """
        nothing = np.zeros(0, dtype=np.int64)
        if not len(self._known) or not len(rows):
            return nothing, nothing
        prints = _fingerprints(column, rows, self._ends)
        places = np.flatnonzero(self._may_be[_places(prints >> self._shift)])
        if not len(places):
            return nothing, nothing
        prints = prints[places]
        near = np.minimum(np.searchsorted(self._prints, prints), len(self._prints) - 1)
        alike = self._prints[near] == prints
        places, near = places[alike], near[alike]
        values: Any = as_binary(column).take(pa.array(rows[places]))
        numbers = self._order[near]
        alike_values = self._known.take(pa.array(numbers))
        is_it = pc.call_function("equal", [values, alike_values]).to_numpy(zero_copy_only=False)
        if not self._are_distinct and not is_it.all():
            found: Any = pc.index_in(values, value_set=self._known)
            is_it = found.is_valid().to_numpy(zero_copy_only=False)
            numbers = found.fill_null(-1).to_numpy().astype(np.int64)
        return places[is_it], numbers[is_it]


def _places(words: Words) -> Int64s:
    return words.view(np.int64)


def _column_of(array: Any) -> Strings:
    """Return an Arrow array without nulls as a segment has strings."""
    _, offsets, data = array.buffers()
    starts = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    raw = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return Strings(raw, starts)


def _telling_words(column: Strings) -> tuple[int, ...]:
    """Return where words lie, in bytes before a value's end, that tell the values best.

    Paths of data files begin and end alike, and differ in a few bytes between.
    """
    rows = np.arange(0, len(column), max(len(column) // _SAMPLE, 1))
    if not len(rows):
        return (_WORD_BYTES,)
    longest = int(column.lengths()[rows].max())
    ends = range(_WORD_BYTES, max(longest, _WORD_BYTES) + 1, _WORD_BYTES)
    distinct = {end: len(np.unique(_fingerprints(column, rows, (end,)))) for end in ends}
    return tuple(sorted(ends, key=lambda end: -distinct[end])[:_MOST_WORDS])


def _fingerprints(column: Strings, rows: Int64s, ends: tuple[int, ...]) -> Words:
    """Return a number for the values of `rows`, the same for equal values.

    It is of the length and of the words that end so many bytes before the value's end, or begin
    with the value where that is too short.
    """
    data, starts, sizes = _laid_out(column, rows)
    prints = sizes.astype(np.uint64)
    short = np.flatnonzero(sizes < _WORD_BYTES)
    # a word at any byte: the array is not aligned, which indexing by an array allows
    words: Words = np.ndarray(
        (max(len(data) - _WORD_BYTES + 1, 0),), np.dtype("<u8"), data.data, 0, (1,)
    )
    of_short = _short_words(data, starts[short], sizes[short]) if len(short) else None
    last = len(words) - 1
    for end in ends:
        at = starts + np.maximum(sizes - end, 0)
        if of_short is None:
            found = words[at]
        else:
            found = words[np.clip(at, 0, last)] if last >= 0 else np.zeros(len(rows), np.uint64)
            found[short] = of_short
        prints ^= found
        prints *= _MULTIPLIER
        prints ^= prints >> _HALF
    prints *= _MULTIPLIER
    return prints


def _short_words(data: Bytes, starts: Int64s, sizes: Int64s) -> Words:
    """Return values of less than a word, filled up with zeros."""
    words = np.zeros(len(starts), dtype=np.uint64)
    for i in range(_WORD_BYTES - 1):
        has = sizes > i
        words[has] |= data[starts[has] + i].astype(np.uint64) << np.uint64(8 * i)
    return words


def _laid_out(column: Strings, rows: Int64s) -> tuple[Bytes, Int64s, Int64s]:
    """Return bytes, and where in them the values of `rows` begin and how long they are."""
    if column.offsets is None:
        width: int = column.data.shape[1]
        data: Any = np.ascontiguousarray(column.data).reshape(-1)
        return data, rows * width, np.full(len(rows), width, dtype=np.int64)
    starts = column.offsets[rows].astype(np.int64)
    return column.data, starts, column.offsets[rows + 1] - starts
