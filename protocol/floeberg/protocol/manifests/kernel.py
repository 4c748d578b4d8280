"""Write a walker for the records of one writer schema, as WebAssembly text.

A walker steps through the records of an inflated block once and leaves what Iceberg knows of an
entry in columns of *cells*. It is straight-line code for that very schema: fields are found by id
here, not when it runs, and what is not needed is stepped over. It lives in a sandbox: whatever
damaged bytes make it do, it reads and writes its own memory only, and whatever it does not expect
ends it with a trap. So it may be strict where the plain decoder explains, and whoever runs it asks
that one.

A cell is a number of 64 bits and a size in one byte: 8 for a number and `NONE` for null or absent.
For text and bytes the size is how many there are, and up to 8 of them are the number itself. More
lie in a heap: then the size is `LONG`, and the number is their offset in it and, in its lowest
`LENGTH_BITS`, their count. A list is `LONG` as well, and its items lie in a heap of numbers. Floats
are their bits. Paths have a heap of their own, and their lengths are the numbers.

Entries of deleted files are history: they leave no row, and nothing in a heap.

The columns are the scalars of an entry (`SCALARS`), the fields of its partition, and for each of
its maps (`MAPS`) one a key, in the order in which the keys appear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

from floeberg.protocol.manifests import walker_code as code
from floeberg.protocol.manifests.named_schema import (
    NamedTypes,
    NotWalkable,
    entry_of,
    fields_of,
    id_of,
    kind_of,
    only_branch,
)
from floeberg.protocol.types import Json

NONE, LONG = 255, 9
LENGTH_BITS = 24
NUMBER, TEXT, BYTES, NUMBERS = "number", "text", "bytes", "numbers"
PATH_ID = 100
_PARTITION_ID = 102
_DELETED = 2  # a status, which is the first of the columns
_FILE_ID = 2

_ENTRY_SCALARS = {0: NUMBER, 1: NUMBER, 3: NUMBER, 4: NUMBER}
_FILE_SCALARS = {
    134: NUMBER,
    PATH_ID: TEXT,
    101: TEXT,
    103: NUMBER,
    104: NUMBER,
    131: BYTES,
    132: NUMBERS,
    135: NUMBERS,
    140: NUMBER,
    142: NUMBER,
    143: TEXT,
    144: NUMBER,
    145: NUMBER,
}
SCALARS = (*_ENTRY_SCALARS, *_FILE_SCALARS)
"""The field ids of the first columns, in order."""
MAPS = (108, 109, 110, 137, 125, 128)
"""The field ids of the maps, in the order of their columns."""
BOUNDS = frozenset({125, 128})
"""The maps whose values are bytes; the others' are numbers."""

STATE = np.dtype(
    [
        ("at", "<u4"),  # where to read, and where the block ends
        ("end", "<u4"),
        ("row", "<u4"),  # the next row to fill
        ("records", "<u4"),  # how many the block still has
        # each heap's beginning, the end of what is in it, and what was taken from it before
        ("heap_base", "<u4"),
        ("heap", "<u4"),
        ("items_base", "<u4"),
        ("items", "<u4"),
        ("paths", "<u4"),
        ("beyond_ascii", "<u4"),  # set to 1 by text that is not
        ("heap_before", "<u8"),  # bytes
        ("items_before", "<u8"),  # items
        ("stop", "<u4"),  # the end of all blocks
    ]
)
"""What a walker is told, and leaves changed: how far it has read and filled rows and heaps."""

BLOCK = np.dtype([("records", "<u4"), ("bytes", "<u4")])
"""What stands before each block. A walker ends when the blocks do, or where rows are full."""

# what a field that is needed may be, by the type that Avro gives it; `named` types are resolved
_FITTING = {
    NUMBER: frozenset({"int", "long"}),
    TEXT: frozenset({"string"}),
    BYTES: frozenset({"bytes", "fixed"}),
    NUMBERS: frozenset({"array"}),
}
PARTITION_TYPES = frozenset(
    {"boolean", "int", "long", "float", "double", "string", "bytes", "fixed"}
)

_NUMBER_SIZE = "(i32.const 8)"

# A hostile schema may expand without end; Iceberg's need a tenth of it.
_MAX_STEPS = 20_000
_MAX_DEPTH = 24


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a walker has its columns: `rows` entries at a time, up to `slots` keys a map.

    First the number of keys found in each map, 4 bytes each, and from byte 32 on the `STATE`; then
    the keys themselves, then cells' numbers, then their sizes. What lies beyond `end` is up to
    whoever runs it.
    """

    scalars: int
    rows: int
    slots: int

    @property
    def columns(self) -> int:
        return self.scalars + len(MAPS) * self.slots

    @property
    def state(self) -> int:
        return 32

    @property
    def keys(self) -> int:
        return 128

    @property
    def numbers(self) -> int:
        return self.keys + 64 * (1 + len(MAPS) * self.slots // 16)

    @property
    def sizes(self) -> int:
        return self.numbers + 8 * self.columns * self.rows

    @property
    def end(self) -> int:
        return self.sizes + 8 * (1 + self.columns * self.rows // 8)


@dataclass(frozen=True, slots=True)
class WalkerText:
    """A walker's code, its layout, and the ids and Avro types of the partition's fields.

    A field of the partition without an id is stepped over.
    """

    code: str
    layout: Layout
    partition: tuple[tuple[int, str], ...]


def write_walker(named: Json, rows: int, slots: int) -> WalkerText:
    """Return a walker for records of `named`, a schema whose fields are named by id (`AvroFile`).

    `rows` should keep the columns within a processor's cache. Raises `NotWalkable`.
    """
    partition = _partition_fields(named)
    layout = Layout(len(SCALARS) + len(partition), rows, slots)
    writer = _Writer(layout, tuple(i for i, _ in partition), NamedTypes(named))
    writer.entry(named)
    return WalkerText(writer.module(), layout, partition)


def _partition_fields(named: Json) -> tuple[tuple[int, str], ...]:
    types = NamedTypes(named)
    fields = fields_of(entry_of(named))
    file = next((f for f in fields if f["name"] == f"f{_FILE_ID}"), None)
    if file is None:
        raise NotWalkable("no data file")
    inner = fields_of(types.resolve(only_branch(file["type"])))
    found = next((f for f in inner if f["name"] == f"f{_PARTITION_ID}"), None)
    if found is None:
        return ()
    partition = []
    for f in fields_of(types.resolve(only_branch(found["type"]))):
        field_id = id_of(f)
        if field_id is not None:
            kind = kind_of(types.resolve(only_branch(f["type"])))
            if kind not in PARTITION_TYPES:
                raise NotWalkable(f"a partition value of type {kind}")
            partition.append((field_id, kind))
    return tuple(partition)


class _Writer:
    """The state of one walker in the making. Each method writes code that reads on from `$at`."""

    def __init__(self, layout: Layout, partition: tuple[int, ...], types: NamedTypes) -> None:
        self._layout = layout
        self._partition = partition
        self._types = types
        self._code: list[str] = []
        self._labels = 0
        self._steps = 0
        self._depth = 0
        self._deepest = 0

    def module(self) -> str:
        names = [f"(local $i{k} i32) (local $n{k} i64)" for k in range(self._deepest)]
        at = self._layout
        next_row = (
            code.NEXT_ROW.replace("SIZES", str(at.sizes))
            .replace("NUMBERS", str(at.numbers))
            .replace("COLUMNS", str(at.columns))
            .replace("STRIDE", str(at.rows))
            .replace("DELETED", str(_DELETED))
        )
        module = code.MODULE.replace("LOCALS", " ".join(names)).replace("NEXT_ROW", next_row)
        module = module.replace("FULL", str(8 * at.rows))
        return module.replace("BODY", "\n".join(self._code))

    def entry(self, named: Json) -> None:
        for f in fields_of(self._types.resolve(entry_of(named))):
            field_id = id_of(f)
            if field_id in _ENTRY_SCALARS:
                self._field(f["type"], _ENTRY_SCALARS[field_id], SCALARS.index(field_id))
            elif field_id == _FILE_ID:
                self._present(f["type"], self._file)
            else:
                self._skip(f["type"])

    def _file(self, schema: Json) -> None:
        for f in fields_of(schema):
            field_id = id_of(f)
            if field_id in _FILE_SCALARS:
                self._field(f["type"], _FILE_SCALARS[field_id], SCALARS.index(field_id))
            elif field_id in MAPS:
                self._optional(f["type"], partial(self._map, MAPS.index(field_id)))
            elif field_id == _PARTITION_ID and self._partition:
                self._present(f["type"], self._partition_tuple)
            elif field_id == _PARTITION_ID:
                self._optional(f["type"], self._partition_tuple)
            else:
                self._skip(f["type"])

    def _partition_tuple(self, schema: Json) -> None:
        for f in fields_of(schema):
            field_id = id_of(f)
            if field_id is None:
                self._skip(f["type"])
            else:
                column = len(SCALARS) + self._partition.index(field_id)
                self._optional(f["type"], partial(self._value, column))

    # --- what is kept -----------------------------------------------------------------------------

    def _field(self, schema: Json, kind: str, column: int) -> None:
        def some(inner: Json) -> None:
            if kind_of(inner) not in _FITTING[kind]:
                self._put("(unreachable)")
            elif kind == NUMBERS:
                self._list(inner, column)
            else:
                self._value(column, inner)

        self._optional(schema, some)

    def _value(self, column: int, schema: Json) -> None:
        match kind_of(schema):
            case "int" | "long":
                self._long()
                self._cell(column)
            case "boolean":
                self._put(code.BOOLEAN)
                self._cell(column)
            case "float":
                self._take(4, "i64.load32_u")
                self._cell(column)
            case "double":
                self._take(8, "i64.load")
                self._cell(column)
            case "string" if column == SCALARS.index(PATH_ID):
                self._long()
                self._put(code.SIZED + code.PATH)
                self._cell(column)
            case "string" | "bytes" as kind:
                self._long()
                self._put(code.SIZED + (code.KEPT_TEXT if kind == "string" else code.KEPT_BYTES))
                self._cell(column, "(local.get $kept)")
            case "fixed":
                self._fixed(schema)
                self._put(code.KEPT_BYTES)
                self._cell(column, "(local.get $kept)")
            case kind:
                raise NotWalkable(f"a value of type {kind}")

    def _list(self, schema: Json, column: int) -> None:
        if kind_of(schema["items"]) not in _FITTING[NUMBER]:
            raise NotWalkable("a list of other things than numbers")

        def item() -> None:
            self._long()
            self._put(code.ITEM)

        with self._nested() as k:
            self._put(f"(local.set $i{k} (local.get $items))")
            self._array(item)
            self._put(
                f"(local.set $n (i64.extend_i32_u (i32.shr_u"
                f" (i32.sub (local.get $i{k}) (local.get $items_base)) (i32.const 3))))"
                "(local.set $n (i64.add (local.get $n) (local.get $items_before)))"
                "(local.set $size (i32.shr_u"
                f" (i32.sub (local.get $items) (local.get $i{k})) (i32.const 3)))" + code.LONG_CELL
            )
            self._cell(column, "(local.get $kept)")

    def _map(self, index: int, schema: Json) -> None:
        if kind_of(schema) != "array":
            self._put("(unreachable)")
            return
        self._put("(local.set $slot (i32.const -1))")
        self._array(lambda: self._present(schema["items"], partial(self._map_item, index)))

    def _map_item(self, index: int, schema: Json) -> None:
        fields = fields_of(schema)
        if [f["name"] for f in fields] != ["key", "value"]:
            raise NotWalkable("a map that is none")
        is_bounds = MAPS[index] in BOUNDS
        at = self._layout
        first = at.scalars + index * at.slots
        count, keys = 4 * index, at.keys + 4 * index * at.slots

        def store(size: str = _NUMBER_SIZE) -> None:
            numbers = at.numbers + 8 * first * at.rows
            sizes = at.sizes + first * at.rows
            self._put(
                f"(local.set $p (i32.add (local.get $row8)"
                f" (i32.mul (local.get $slot) (i32.const {8 * at.rows}))))"
                f"(i64.store offset={numbers} (local.get $p) (local.get $n))"
                f"(i32.store8 offset={sizes} (i32.shr_u (local.get $p) (i32.const 3)) {size})"
            )

        def some(value: Json) -> None:
            if kind_of(value) not in _FITTING[BYTES if is_bounds else NUMBER]:
                self._put("(unreachable)")
            elif is_bounds:
                if kind_of(value) == "fixed":
                    raise NotWalkable("bounds of one width")
                self._long()
                self._put(code.SIZED + code.KEPT_BYTES)
                store("(local.get $kept)")
            else:
                self._long()
                store()

        def key(inner: Json) -> None:
            if kind_of(inner) not in _FITTING[NUMBER]:
                raise NotWalkable("a map by other things than ids")
            self._long()
            self._put(
                code.SLOT.replace("COUNT", str(count))
                .replace("KEYS", str(keys))
                .replace("SLOTS", str(at.slots))
            )

        self._present(fields[0]["type"], key)
        self._optional(fields[1]["type"], some)

    # --- what is not ------------------------------------------------------------------------------

    def _skip(self, schema: Json) -> None:
        if isinstance(schema, list):
            self._union([(s, self._skip) for s in schema])
            return
        schema = self._types.resolve(schema)
        match kind_of(schema):
            case "null":
                pass
            case "boolean":
                self._take(1, "i64.load8_u")
            case "int" | "long":
                self._long()
            case "float":
                self._take(4, "i64.load32_u")
            case "double":
                self._take(8, "i64.load")
            case "bytes":
                self._long()
                self._put(code.SIZED + code.STEP)
            case "string":
                self._long()
                self._put(code.SIZED + code.ASCII + code.STEP)
            case "fixed":
                self._fixed(schema)
                self._put(code.STEP)
            case "enum":
                self._long()
                count = len(schema["symbols"])
                self._put(
                    f"(if (i64.ge_u (local.get $n) (i64.const {count})) (then (unreachable)))"
                )
            case "record":
                with self._nested():
                    for f in schema["fields"]:
                        self._skip(f["type"])
            case "array":
                self._array(lambda: self._skip(schema["items"]))
            case "map":
                fields = [{"type": "string"}, {"type": schema["values"]}]
                self._array(lambda: self._skip({"type": "record", "fields": fields}))
            case kind:
                raise NotWalkable(kind)

    # --- what all of it is made of ----------------------------------------------------------------

    def _put(self, text: str) -> None:
        self._code.append(text)
        self._steps += 1  # those of branches that were given up count as well
        if self._steps > _MAX_STEPS:
            raise NotWalkable("a schema of very many fields")

    @contextmanager
    def _nested(self) -> Iterator[int]:
        """Give the number of a pair of local variables that nothing inside uses."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise NotWalkable("a schema that is very deep, or holds itself")
        self._deepest = max(self._deepest, self._depth)
        yield self._depth - 1
        self._depth -= 1

    def _long(self) -> None:
        """Read a number into `$n`."""
        self._put(code.LONG)

    def _fixed(self, schema: Json) -> None:
        self._put(f"(local.set $n (i64.const {int(schema['size'])}))" + code.SIZED)

    def _take(self, size: int, load: str) -> None:
        self._put(
            f"(local.set $n ({load} (local.get $at)))"
            f"(local.set $at (i32.add (local.get $at) (i32.const {size})))"
        )

    def _cell(self, column: int, size: str = _NUMBER_SIZE) -> None:
        """Put `$n` and a size into the entry's cell of a column."""
        numbers = self._layout.numbers + 8 * column * self._layout.rows
        sizes = self._layout.sizes + column * self._layout.rows
        self._put(
            f"(i64.store offset={numbers} (local.get $row8) (local.get $n))"
            f"(i32.store8 offset={sizes} (i32.shr_u (local.get $row8) (i32.const 3)) {size})"
        )

    def _optional(self, schema: Json, some: Callable[[Json], None]) -> None:
        """Read a value by `some`, or null, which leaves the cell empty."""
        branches = schema if isinstance(schema, list) else None
        if branches is None:
            inner = self._types.resolve(schema)
            if kind_of(inner) != "null":
                some(inner)
            return
        self._union([(s, some if kind_of(s) != "null" else lambda _: None) for s in branches])

    def _present(self, schema: Json, some: Callable[[Json], None]) -> None:
        """Read a value by `some`; null is a case for the plain decoder."""
        if not isinstance(schema, list):
            some(self._types.resolve(schema))
            return

        def none(_: Json) -> None:
            self._put("(unreachable)")

        self._union([(s, some if kind_of(s) != "null" else none) for s in schema])

    def _union(self, branches: list[tuple[Json, Callable[[Json], None]]]) -> None:
        with self._nested() as k:
            self._long()
            self._put(f"(local.set $n{k} (local.get $n))")
            for i, (schema, read) in enumerate(branches):
                self._put(f"(if (i64.eq (local.get $n{k}) (i64.const {i})) (then")
                self._branch(schema, read)
                self._put(") (else")
            self._put("(unreachable)" + "))" * len(branches))

    def _branch(self, schema: Json, read: Callable[[Json], None]) -> None:
        """Read one branch of a union; one that cannot be is a case for the plain decoder."""
        place, depth = len(self._code), self._depth
        try:
            read(self._types.resolve(schema))
        except NotWalkable:
            self._depth = depth
            self._code[place:] = ["(unreachable)"]

    def _array(self, item: Callable[[], object]) -> None:
        """Read the blocks of an array or a map, each item by `item`.

        An item takes a byte at least, or it is none of Iceberg's: so a count is bounded by the
        bytes that are left, and what items leave in a heap by the block's size.
        """
        with self._nested() as k:
            self._labels += 1
            names = {"DONE": f"$done{self._labels}", "BLOCK": f"$block{self._labels}"}
            head = code.ARRAY_HEAD.replace("LEFT", f"$i{k}").replace("COUNT", f"$n{k}")
            tail = code.ARRAY_TAIL.replace("LEFT", f"$i{k}")
            for name, label in {**names, "ITEM": f"$item{self._labels}"}.items():
                head, tail = head.replace(name, label), tail.replace(name, label)
            self._put(head)
            item()
            self._put(tail)
