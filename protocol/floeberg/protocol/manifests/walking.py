"""Run walkers: from the blocks of a manifest to columns of cells.

wasmtime compiles a walker once for each writer schema, and gives each thread that walks a memory of
its own; walking leaves the interpreter's lock. See `manifests.kernel` for what a walker is, and
docs/decisions/0004 for why.
"""

from __future__ import annotations

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache

import numpy as np
import numpy.typing as npt
import wasmtime

from floeberg.protocol.manifests.avro import AvroFile, InOrder, in_turn
from floeberg.protocol.manifests.columns import Bytes
from floeberg.protocol.manifests.found import Found, Strayed, Walk
from floeberg.protocol.manifests.kernel import (
    BLOCK,
    MAPS,
    NONE,
    STATE,
    Layout,
    WalkerText,
    write_walker,
)
from floeberg.protocol.manifests.named_schema import NotWalkable

# Keys a map and entries at a time: the cells of the usual manifest stay within a processor's cache.
# Each time that cells are taken out gives up the interpreter's lock, and takes it again.
_SHAPES = ((64, 2080), (256, 544), (1024, 160), (4096, 32))
_PAGE = 65536
_SLACK = 1024  # a walker may read and copy a little beyond an end
_MEMORY_LIMIT = 1 << 32
_LEAST_HEAP = 1 << 20
_BYTES_AT_ONCE = 1 << 20  # of blocks: a call takes as long as to walk ten entries
_KEPT_MEMORY = 64 << 20
_MODULES_KEPT = 64
_WALKERS_KEPT = 8


@contextmanager
def walked(file: AvroFile, in_order: InOrder = in_turn) -> Iterator[Walk]:
    """Hold a walker that has walked a manifest, and give what it found.

    `in_order` inflates its blocks, see `AvroFile.blocks`.

    Raises `NotWalkable` for a schema that has no walker, `Strayed` for records that a walker cannot
    make sense of, and `CorruptManifest` for blocks that cannot be inflated.
    """
    for shape in range(_widest.get(file.schema_text, 0), len(_SHAPES)):
        with _walkers.borrowed(file, shape) as walker:
            found = walker.walk(file, in_order)
            if found is not None:
                yield found
                return
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
        if walker.held_bytes <= _KEPT_MEMORY:
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
    """One instance of a walker, its memory, and what it found. Used by one thread at a time.

    Beyond the layout's end lie the heap, the paths, the items, and the blocks that are walked: each
    can hold what those can leave in it at most.
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
        self._found = Found(compiled.text)
        self._make_room(0)

    @property
    def held_bytes(self) -> int:
        return self._memory_bytes + self._found.held_bytes

    @property
    def _memory_bytes(self) -> int:
        return self._memory.data_len(self._store)

    def _make_room(self, block_bytes: int) -> None:
        """Arrange the memory for blocks of up to `block_bytes` together."""
        at: Layout = self.compiled.text.layout
        room = max(_LEAST_HEAP, block_bytes) + _SLACK
        self._heap_at = at.end
        self._paths_at = self._heap_at + room
        self._items_at = self._paths_at + room
        self._blocks_at = self._blocks_end = self._items_at + 8 * room
        needed = self._blocks_at + room
        if needed > _MEMORY_LIMIT - _PAGE:
            raise NotWalkable("a block of hundreds of megabytes")
        self._room = room - _SLACK
        missing = needed - self._memory_bytes
        if missing > 0:
            self._memory.grow(self._store, -(-missing // _PAGE))
        address = ctypes.cast(self._memory.data_ptr(self._store), ctypes.c_void_p).value
        assert address is not None
        held = (ctypes.c_uint8 * self._memory_bytes).from_address(address)
        self._bytes: Bytes = np.ctypeslib.as_array(held)
        # a copy by numpy would give up the interpreter's lock, and get it back behind other threads
        self._held = memoryview(held).cast("B")
        self._state = self._view(at.state, STATE, 1)[0]
        self._counts = self._view(0, np.dtype("<i4"), len(MAPS))
        self._keys = self._view(at.keys, np.dtype("<i4"), len(MAPS) * at.slots)
        cells = at.columns * at.rows
        shape = at.columns, at.rows
        self._numbers = self._view(at.numbers, np.dtype("<i8"), cells).reshape(shape)
        self._sizes = self._view(at.sizes, np.dtype(np.uint8), cells).reshape(shape)

    def _view(self, at: int, dtype: np.dtype, count: int) -> npt.NDArray:  # type: ignore[type-arg]
        return self._bytes[at : at + dtype.itemsize * count].view(dtype)

    def walk(self, file: AvroFile, in_order: InOrder) -> Walk | None:
        """Return what is in a manifest, None when a map has more keys than there is room for.

        It is valid until this walks another.
        """
        found = self._found
        found.begin(file.count)
        self._counts[:] = 0
        self._sizes[:] = NONE
        self._state["beyond_ascii"] = 0
        self._blocks_end = self._blocks_at
        self._begin()
        try:
            with closing(file.blocks(in_order)) as blocks:
                for count, data in blocks:
                    self._add_block(count, data)
            self._walk_blocks()
        except wasmtime.Trap as exc:
            if (self._counts == self.compiled.text.layout.slots).any():
                return None
            raise Strayed(str(exc)) from exc
        self._drain()
        return found.walk(self._counts, self._keys, bool(self._state["beyond_ascii"]))

    def _add_block(self, count: int, data: bytes | bytearray) -> None:
        """Have a block walked, together with others."""
        size = BLOCK.itemsize + len(data)
        if self._blocks_end + size > self._blocks_at + _BYTES_AT_ONCE:
            self._walk_blocks()
        if size > self._room:
            self._drain()
            self._make_room(size)
            self._begin()
        if count >= 1 << 31:
            raise Strayed(f"{count} records in a block")
        start = self._blocks_end + BLOCK.itemsize
        self._view(self._blocks_end, BLOCK, 1)[0] = count, len(data)
        self._held[start : start + len(data)] = data
        self._blocks_end += size

    def _walk_blocks(self) -> None:
        state = self._state
        if self._may_overflow(self._blocks_end - self._blocks_at):
            self._drain()
        state["at"] = state["end"] = self._blocks_at
        state["records"], state["stop"] = 0, self._blocks_end
        self._function(self._store)
        while state["records"] or state["at"] != state["stop"]:
            self._drain()
            self._function(self._store)
        self._blocks_end = self._blocks_at

    def _may_overflow(self, block_bytes: int) -> bool:
        """Say whether a heap may have too little room left for all that blocks can hold."""
        state = self._state
        return bool(
            int(state["heap"]) + block_bytes > self._heap_at + self._room
            or int(state["paths"]) + block_bytes > self._paths_at + self._room
            or int(state["items"]) + 8 * block_bytes > self._items_at + 8 * self._room
        )

    def _begin(self) -> None:
        """Begin the rows and the heaps anew, after what was found before."""
        state = self._state
        state["row"] = 0
        state["heap"] = state["heap_base"] = self._heap_at
        state["items"] = state["items_base"] = self._items_at
        state["paths"] = self._paths_at
        state["heap_before"] = self._found.heap_bytes
        state["items_before"] = self._found.item_count

    def _drain(self) -> None:
        """Take what the walker has found out of its memory, and make the cells empty again."""
        state = self._state
        self._found.take(
            self._numbers,
            self._sizes,
            self._counts,
            int(state["row"]),
            self._bytes[self._heap_at : int(state["heap"])],
            self._bytes[self._items_at : int(state["items"])].view(np.int64),
            self._bytes[self._paths_at : int(state["paths"])],
        )
        self._begin()
