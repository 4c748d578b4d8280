"""Run walkers: from the blocks of a manifest to columns of cells.

wasmtime compiles a walker once for each writer schema, and gives each thread that walks a memory of
its own; walking leaves the interpreter's lock. See `manifests.kernel` for what a walker is, and
docs/decisions/0004 for why.
"""

from __future__ import annotations

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import wasmtime

from floeberg.protocol.manifests.avro import AvroFile
from floeberg.protocol.manifests.columns import Bytes, Int64s
from floeberg.protocol.manifests.kernel import (
    MAPS,
    STATE,
    Layout,
    WalkerText,
    write_walker,
)
from floeberg.protocol.manifests.named_schema import NotWalkable

Int32s = npt.NDArray[np.int32]

# Keys a map and entries at a time: the cells of the usual manifest stay within a processor's cache.
_SHAPES = ((64, 264), (256, 136), (1024, 40), (4096, 8))
_PAGE = 65536
_SLACK = 1024  # a walker may read and copy a little beyond an end
_MEMORY_LIMIT = 1 << 32
_LEAST_HEAP = 1 << 20
_KEPT_MEMORY = 64 << 20
_MODULES_KEPT = 64
_WALKERS_KEPT = 8


class Strayed(Exception):
    """A walker met what it does not expect: damage, or something for the plain decoder to judge."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Columns of cells, shape (columns, entries) both: see `manifests.kernel`."""

    numbers: Int64s
    lengths: Int32s

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, slots=True)
class Walk:
    """What a manifest's entries hold, the deleted ones among them.

    `scalars` has the columns of `SCALARS` and then of the `partition`, whose fields have an id and
    an Avro type each. `maps` has, by field id, the keys of a map and their columns. `paths` are the
    entries' paths, one after the other; `heap` holds text and bytes, and `items` those of lists.
    """

    scalars: Cells
    partition: tuple[tuple[int, str], ...]
    maps: Mapping[int, tuple[Int32s, Cells]]
    paths: Bytes
    heap: Bytes
    items: Int64s


def walk(file: AvroFile) -> Walk:
    """Return what the entries of a manifest hold.

    Raises `NotWalkable` for a schema that has no walker, `Strayed` for records that a walker cannot
    make sense of, and `CorruptManifest` for blocks that cannot be inflated.
    """
    for shape in range(len(_SHAPES)):
        if shape < _widest.get(file.schema_text, 0):
            continue
        with _walkers.borrowed(file, shape) as walker:
            try:
                return walker.walk(file)
            except Strayed:
                if not walker.ran_out_of_slots:
                    raise
        _widest[file.schema_text] = shape + 1
    raise NotWalkable("maps of very many keys")


# the shape that manifests of a schema needed; a schema is forgotten with its modules' cache
_widest: dict[bytes, int] = {}


@cache
def _engine() -> wasmtime.Engine:
    config = wasmtime.Config()
    # checks in the code instead: as fast here, and the process keeps its signal handlers
    config.signals_based_traps = False
    config.parallel_compilation = False
    return wasmtime.Engine(config)


class _Compiled:
    """A walker's code for one schema and shape."""

    def __init__(self, text: WalkerText) -> None:
        self.text = text
        # kept with the module: threads that begin together may make an engine each
        self.engine = _engine()
        self.module = wasmtime.Module(self.engine, text.code)


class _Walkers:
    """Compiled walkers, and idle ones with their memories, by schema. Shared by threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._compiled: OrderedDict[tuple[bytes, int], _Compiled | NotWalkable] = OrderedDict()
        self._idle: list[_Walker] = []

    @contextmanager
    def borrowed(self, file: AvroFile, shape: int) -> Iterator[_Walker]:
        compiled = self._compiled_for(file, shape)
        with self._lock:
            walker = next((w for w in self._idle if w.compiled is compiled), None)
            if walker is not None:
                self._idle.remove(walker)
        walker = walker or _Walker(compiled)
        yield walker
        # not after an error: a trap may leave a store unusable
        if walker.memory_bytes <= _KEPT_MEMORY:
            with self._lock:
                self._idle.append(walker)
                del self._idle[:-_WALKERS_KEPT]

    def _compiled_for(self, file: AvroFile, shape: int) -> _Compiled:
        key = file.schema_text, shape
        with self._lock:
            if key in self._compiled:
                self._compiled.move_to_end(key)
                return _or_not_walkable(self._compiled[key])
        slots, rows = _SHAPES[shape]
        compiled: _Compiled | NotWalkable
        try:
            compiled = _Compiled(write_walker(file.named, rows, slots))
        except NotWalkable as exc:
            compiled = NotWalkable(str(exc))
        with self._lock:
            # of two threads that compile the same, the first one's stays
            compiled = self._compiled.setdefault(key, compiled)
            while len(self._compiled) > _MODULES_KEPT:
                (schema_text, _), _ = self._compiled.popitem(last=False)
                _widest.pop(schema_text, None)
        return _or_not_walkable(compiled)


def _or_not_walkable(compiled: _Compiled | NotWalkable) -> _Compiled:
    if isinstance(compiled, NotWalkable):
        raise NotWalkable(str(compiled))
    return compiled


_walkers = _Walkers()


class _Walker:
    """One instance of a walker and its memory. Used by one thread at a time.

    Beyond the layout's end lie the heap, the paths, the items, and the block that is walked: each
    can hold what one block can leave in it at most.
    """

    def __init__(self, compiled: _Compiled) -> None:
        self.compiled = compiled
        self._store = wasmtime.Store(compiled.engine)
        exports = wasmtime.Instance(self._store, compiled.module, []).exports(self._store)
        memory, function = exports["memory"], exports["walk"]
        assert isinstance(memory, wasmtime.Memory)
        assert isinstance(function, wasmtime.Func)
        self._memory = memory
        self._function = function
        self._make_room(0)

    @property
    def memory_bytes(self) -> int:
        return self._memory.data_len(self._store)

    @property
    def ran_out_of_slots(self) -> bool:
        """Say whether a map has had as many keys as there is room for."""
        slots = self.compiled.text.layout.slots
        return bool((self._counts == slots).any())

    def _make_room(self, block_bytes: int) -> None:
        """Arrange the memory for blocks of up to `block_bytes`."""
        at: Layout = self.compiled.text.layout
        room = max(_LEAST_HEAP, block_bytes) + _SLACK
        self._heap_at = at.end
        self._paths_at = self._heap_at + room
        self._items_at = self._paths_at + room
        self._block_at = self._items_at + 8 * room
        needed = self._block_at + room
        if needed > _MEMORY_LIMIT - _PAGE:
            raise NotWalkable("a block of hundreds of megabytes")
        self._room = room - _SLACK
        missing = needed - self.memory_bytes
        if missing > 0:
            self._memory.grow(self._store, -(-missing // _PAGE))
        address = ctypes.cast(self._memory.data_ptr(self._store), ctypes.c_void_p).value
        assert address is not None
        held = (ctypes.c_uint8 * self.memory_bytes).from_address(address)
        self._bytes: Bytes = np.ctypeslib.as_array(held)
        self._state = self._view(at.state, STATE, 1)[0]
        self._counts = self._view(0, np.dtype("<i4"), len(MAPS))
        self._keys = self._view(at.keys, np.dtype("<i4"), len(MAPS) * at.slots)
        cells = at.columns * at.rows
        shape = at.columns, at.rows
        self._numbers = self._view(at.numbers, np.dtype("<i8"), cells).reshape(shape)
        self._lengths = self._view(at.lengths, np.dtype("<i4"), cells).reshape(shape)

    def _view(self, at: int, dtype: np.dtype, count: int) -> npt.NDArray:  # type: ignore[type-arg]
        return self._bytes[at : at + dtype.itemsize * count].view(dtype)

    def walk(self, file: AvroFile) -> Walk:
        drained = _Drained(self.compiled.text, file.count)
        state = self._state
        self._counts[:] = 0
        self._lengths[:] = -1
        self._begin(drained)
        row = 0
        for count, data in file.blocks():
            if len(data) > self._room:
                self._drain(drained, row)
                row = 0
                self._make_room(len(data))
                self._begin(drained)
                state = self._state
            self._bytes[self._block_at : self._block_at + len(data)] = np.frombuffer(data, np.uint8)
            state["at"], state["end"] = self._block_at, self._block_at + len(data)
            left = count
            while left:
                if row == self.compiled.text.layout.rows or self._may_overflow(len(data)):
                    self._drain(drained, row)
                    row = 0
                rows = min(left, self.compiled.text.layout.rows - row)
                state["row"], state["rows"] = row, rows
                try:
                    self._function(self._store)
                except wasmtime.Trap as exc:
                    raise Strayed(str(exc)) from exc
                row, left = row + rows, left - rows
            if state["at"] != state["end"]:
                raise Strayed("a block holds more than its records")
        self._drain(drained, row)
        return drained.finish(self._counts, self._keys)

    def _may_overflow(self, block_bytes: int) -> bool:
        """Say whether a heap may have too little room left for all that a block can hold."""
        state = self._state
        return bool(
            int(state["heap"]) + block_bytes > self._heap_at + self._room
            or int(state["paths"]) + block_bytes > self._paths_at + self._room
            or int(state["items"]) + 8 * block_bytes > self._items_at + 8 * self._room
        )

    def _begin(self, drained: _Drained) -> None:
        """Begin the heaps anew, after what was drained of them."""
        state = self._state
        state["heap"] = state["heap_base"] = self._heap_at
        state["items"] = state["items_base"] = self._items_at
        state["paths"] = self._paths_at
        state["heap_before"], state["items_before"] = drained.heap_bytes, drained.item_count

    def _drain(self, drained: _Drained, rows: int) -> None:
        """Take what the walker has found out of its memory, and make the cells empty again."""
        state = self._state
        drained.take(
            self._numbers,
            self._lengths,
            self._counts,
            rows,
            self._bytes[self._heap_at : int(state["heap"])],
            self._bytes[self._items_at : int(state["items"])].view(np.int64),
            self._bytes[self._paths_at : int(state["paths"])],
        )
        self._begin(drained)


class _Drained:
    """The columns of one manifest, as far as they are filled."""

    def __init__(self, text: WalkerText, count: int) -> None:
        self._text = text
        self._scalars = _Filling(count, text.layout.scalars)
        self._maps = [_Filling(count) for _ in MAPS]
        self._heap: list[Bytes] = []
        self._items: list[Int64s] = []
        self._paths: list[Bytes] = []
        self.heap_bytes = 0
        self.item_count = 0

    def take(
        self,
        numbers: Int64s,
        lengths: Int32s,
        counts: Int32s,
        rows: int,
        heap: Bytes,
        items: Int64s,
        paths: Bytes,
    ) -> None:
        """Copy the first `rows` entries, and set the lengths of their cells to -1."""
        at = self._text.layout
        self._scalars.take(numbers[: at.scalars, :rows], lengths[: at.scalars, :rows])
        for index, count in enumerate(counts.tolist()):
            first = at.scalars + index * at.slots
            cells = slice(first, first + count)
            self._maps[index].take(numbers[cells, :rows], lengths[cells, :rows])
        self._heap.append(heap.copy())
        self._items.append(items.copy())
        self._paths.append(paths.copy())
        self.heap_bytes += len(heap)
        self.item_count += len(items)

    def finish(self, counts: Int32s, keys: Int32s) -> Walk:
        by_map = keys.reshape(len(MAPS), self._text.layout.slots)
        maps = {
            field_id: (by_map[i, : counts[i]].copy(), self._maps[i].cells())
            for i, field_id in enumerate(MAPS)
        }
        return Walk(
            self._scalars.cells(),
            self._text.partition,
            maps,
            np.concatenate(self._paths),
            np.concatenate(self._heap),
            np.concatenate(self._items),
        )


class _Filling:
    """Columns of `count` cells that are filled from the front."""

    def __init__(self, count: int, columns: int = 0) -> None:
        self._count = count
        self._filled = 0
        self._numbers, self._lengths = self._empty(columns)

    def take(self, numbers: Int64s, lengths: Int32s) -> None:
        """Append cells, and set their lengths to -1. There may be more columns than before."""
        before, columns = len(self._numbers), len(numbers)
        if columns > before:
            more_numbers, more_lengths = self._empty(columns)
            more_numbers[:before], more_lengths[:before] = self._numbers, self._lengths
            more_lengths[before:, : self._filled] = -1
            self._numbers, self._lengths = more_numbers, more_lengths
        upto = self._filled + numbers.shape[1]
        self._numbers[:, self._filled : upto] = numbers
        self._lengths[:, self._filled : upto] = lengths
        lengths[:] = -1
        self._filled = upto

    def cells(self) -> Cells:
        return Cells(self._numbers, self._lengths)

    def _empty(self, columns: int) -> tuple[Int64s, Int32s]:
        try:
            numbers = np.empty((columns, self._count), dtype=np.int64)
            return numbers, np.empty((columns, self._count), dtype=np.int32)
        except (MemoryError, ValueError) as exc:
            # the counts of damaged blocks may be any number
            raise Strayed(f"no room for {self._count} entries") from exc
