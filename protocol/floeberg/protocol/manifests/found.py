"""What a walker finds in a manifest, collected from the little that its memory holds at a time.

The arrays are a walker's for as long as it lives: to touch memory for the first time takes longer
than to walk what is put there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from floeberg.protocol.manifests.columns import Bytes, Int64s
from floeberg.protocol.manifests.kernel import MAPS, NONE, WalkerText

Int32s = npt.NDArray[np.int32]
_Item = TypeVar("_Item", bound=np.generic)


class Strayed(Exception):
    """A walker met what it does not expect: damage, or something for the plain decoder to judge."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Columns of cells, shape (columns, entries) both: see `manifests.kernel`."""

    numbers: Int64s
    sizes: Bytes

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, slots=True)
class Walk:
    """What a manifest's live entries hold: views of a walker's memory, valid while it is held.

    `scalars` has the columns of `SCALARS` and then of the `partition`, whose fields have an id and
    an Avro type each. `maps` has, by field id, the keys of a map and their columns. `paths` are the
    entries' paths, one after the other; `heap` holds text and bytes, and `items` those of lists.
    `is_ascii` tells that all of the text is.
    """

    scalars: Cells
    partition: tuple[tuple[int, str], ...]
    maps: Mapping[int, tuple[Int32s, Cells]]
    paths: Bytes
    heap: Bytes
    items: Int64s
    is_ascii: bool


class Found:
    """The columns of one manifest after another, as far as they are filled."""

    def __init__(self, text: WalkerText) -> None:
        self._text = text
        self._scalars = _Columns()
        self._maps = [_Columns() for _ in MAPS]
        self._heap = _Row(np.dtype(np.uint8))
        self._paths = _Row(np.dtype(np.uint8))
        self._items = _Row(np.dtype(np.int64))

    @property
    def heap_bytes(self) -> int:
        return self._heap.filled

    @property
    def item_count(self) -> int:
        return self._items.filled

    @property
    def held_bytes(self) -> int:
        columns = sum(columns.held_bytes for columns in (self._scalars, *self._maps))
        return columns + sum(row.held_bytes for row in (self._heap, self._paths, self._items))

    def begin(self, count: int) -> None:
        """Forget what was found, and make room for `count` entries. Raises `Strayed` for lack of
        it."""
        try:
            for columns in (self._scalars, *self._maps):
                columns.begin(count)
        except (MemoryError, ValueError) as exc:
            # the counts of damaged blocks may be any number
            raise Strayed(f"no room for {count} entries") from exc
        for row in (self._heap, self._paths, self._items):
            row.filled = 0

    def take(
        self,
        numbers: Int64s,
        sizes: Bytes,
        counts: Int32s,
        rows: int,
        heap: Bytes,
        items: Int64s,
        paths: Bytes,
    ) -> None:
        """Copy the first `rows` entries, and make their cells empty."""
        at = self._text.layout
        self._scalars.take(numbers[: at.scalars, :rows], sizes[: at.scalars, :rows])
        for index, count in enumerate(counts.tolist()):
            first = at.scalars + index * at.slots
            cells = slice(first, first + count)
            self._maps[index].take(numbers[cells, :rows], sizes[cells, :rows])
        self._heap.take(heap)
        self._items.take(items)
        self._paths.take(paths)

    def walk(self, counts: Int32s, keys: Int32s, beyond_ascii: bool) -> Walk:
        """Return all that was taken since `begin`."""
        by_map = keys.reshape(len(MAPS), self._text.layout.slots)
        maps = {
            field_id: (by_map[i, : counts[i]].copy(), self._maps[i].cells())
            for i, field_id in enumerate(MAPS)
        }
        return Walk(
            self._scalars.cells(),
            self._text.partition,
            maps,
            self._paths.all(),
            self._heap.all(),
            self._items.all(),
            not beyond_ascii,
        )


class _Columns:
    """Columns of cells that are filled from the front."""

    def __init__(self) -> None:
        self._columns = self._filled = 0
        self._numbers = np.empty((0, 0), dtype=np.int64)
        self._sizes = np.empty((0, 0), dtype=np.uint8)

    @property
    def held_bytes(self) -> int:
        return self._numbers.nbytes + self._sizes.nbytes

    def begin(self, count: int) -> None:
        self._columns = self._filled = 0
        if count > self._numbers.shape[1]:
            self._hold(len(self._numbers), count)

    def take(self, numbers: Int64s, sizes: Bytes) -> None:
        """Append cells, and empty them where they were. There may be more columns than before."""
        columns, upto = len(numbers), self._filled + numbers.shape[1]
        if columns > len(self._numbers):
            before = self._numbers, self._sizes
            self._hold(columns, self._numbers.shape[1])
            self._numbers[: self._columns, : self._filled] = before[0][
                : self._columns, : self._filled
            ]
            self._sizes[: self._columns, : self._filled] = before[1][
                : self._columns, : self._filled
            ]
        self._sizes[self._columns : columns, : self._filled] = NONE
        self._numbers[:columns, self._filled : upto] = numbers
        self._sizes[:columns, self._filled : upto] = sizes
        sizes[:] = NONE
        self._columns, self._filled = columns, upto

    def cells(self) -> Cells:
        return Cells(
            self._numbers[: self._columns, : self._filled],
            self._sizes[: self._columns, : self._filled],
        )

    def _hold(self, columns: int, count: int) -> None:
        self._numbers = np.empty((columns, count), dtype=np.int64)
        self._sizes = np.empty((columns, count), dtype=np.uint8)


class _Row(Generic[_Item]):
    """Items that are filled in from the front."""

    def __init__(self, dtype: np.dtype[_Item]) -> None:
        self._items: npt.NDArray[_Item] = np.empty(0, dtype=dtype)
        self.filled = 0

    @property
    def held_bytes(self) -> int:
        return self._items.nbytes

    def take(self, items: npt.NDArray[_Item]) -> None:
        upto = self.filled + len(items)
        if upto > len(self._items):
            longer = np.empty(2 * upto, dtype=self._items.dtype)
            longer[: self.filled] = self._items[: self.filled]
            self._items = longer
        self._items[self.filled : upto] = items
        self.filled = upto

    def all(self) -> npt.NDArray[_Item]:
        return self._items[: self.filled]
