"""Build projected arrays from decoded ones, following a tree of sources.

Structs, lists and maps are rebuilt around their projected children with their own validity: a null
struct stays null whatever its fields' defaults, and a null list does not become an empty one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from floeberg.protocol.errors import CorruptTable
from floeberg.worker.arrow import ArrowArray, BooleanArray, Rows, fields_of
from floeberg.worker.projection.constants import repeat, struct_array
from floeberg.worker.projection.conversion import CannotConvert, convert, decode_layout
from floeberg.worker.projection.sources import (
    ConstantSource,
    LeafSource,
    ListSource,
    MapSource,
    Source,
    StructSource,
)


@dataclass(frozen=True, slots=True)
class Assembler:
    """Builds arrays from the decoded columns of the file at `location`; raises `corrupt` where they
    do not fit.
    """

    location: str
    corrupt: type[CorruptTable]

    def project(self, sources: Sequence[Source], rows: Rows) -> list[ArrowArray]:
        """Return one array a source, each as long as `rows`, whose columns the sources count."""
        stored, length = rows.columns, rows.num_rows
        return [self._build(source, stored, length) for source in sources]

    def _build(self, source: Source, stored: Sequence[ArrowArray], length: int) -> ArrowArray:
        match source:
            case ConstantSource(single):
                return repeat(single, length)
            case LeafSource():
                return self._leaf(source, stored[source.position])
            case StructSource(position=None):
                return self._struct(source, [], length, None)
            case StructSource(position=int(position)):
                array = decode_layout(stored[position])
                return self._struct(source, fields_of(array), length, _null_mask(array))
            case ListSource():
                return self._list(source, stored[source.position])
            case MapSource():
                return self._map(source, stored[source.position])

    def _leaf(self, source: LeafSource, array: ArrowArray) -> ArrowArray:
        try:
            return convert(array, source.target)
        except CannotConvert as exc:
            raise self.corrupt(
                f"{self.location}: column {source.name!r} does not fit the table: {exc}"
            ) from exc

    def _struct(
        self,
        source: StructSource,
        stored: Sequence[ArrowArray],
        length: int,
        null_mask: BooleanArray | None,
    ) -> ArrowArray:
        below = [self._build(child, stored, length) for child in source.children]
        self.check_required(source.children, below, null_mask)
        target = source.target
        storage = target.storage_type if isinstance(target, pa.BaseExtensionType) else target
        array = struct_array(below, storage, length, null_mask)
        return array if storage is target else pa.ExtensionArray.from_storage(target, array)

    def _list(self, source: ListSource, array: ArrowArray) -> ArrowArray:
        plain = _offset_list(array)
        offsets, elements = _part_below(plain.offsets, plain.values)
        below = self._build(source.element, [elements], len(elements))
        self._check_elements(source.element, below, offsets, plain)
        return pa.ListArray.from_arrays(offsets, below, type=source.target, mask=_null_mask(plain))

    def _map(self, source: MapSource, array: ArrowArray) -> ArrowArray:
        offsets, keys = _part_below(array.offsets, array.keys)
        _, values = _part_below(array.offsets, array.items)
        parts = [keys, values]
        below_keys, below_values = (
            self._build(part, parts, len(keys)) for part in (source.key, source.value)
        )
        self._check_elements(source.key, below_keys, offsets, array)
        self._check_elements(source.value, below_values, offsets, array)
        return pa.MapArray.from_arrays(
            offsets, below_keys, below_values, type=source.target, mask=_null_mask(array)
        )

    # --- nulls where the table allows none
    # ---------------------------------------------------------

    def check_required(
        self,
        sources: Sequence[Source],
        arrays: Sequence[ArrowArray],
        null_parent: BooleanArray | None = None,
    ) -> None:
        """Raise when an array is null in a required field of a row; `null_parent` marks rows that
        have no field.
        """
        for source, array in zip(sources, arrays, strict=True):
            if isinstance(source, ConstantSource) or not source.required or not array.null_count:
                continue
            nulls = array.is_null()
            if null_parent is not None:
                nulls = pc.and_not(nulls, null_parent)
            if pc.any(nulls).as_py():
                raise self._null_in(source.name)

    def _check_elements(
        self, source: Source, below: ArrowArray, offsets: ArrowArray, parent: ArrowArray
    ) -> None:
        if isinstance(source, ConstantSource) or not source.required or not below.null_count:
            return
        # elements below a null list are no elements: only here must they be told apart
        lists = pa.ListArray.from_arrays(offsets, below.is_null(), mask=_null_mask(parent))
        if pc.any(lists.flatten()).as_py():
            raise self._null_in(source.name)

    def _null_in(self, name: str) -> CorruptTable:
        return self.corrupt(f"{self.location}: column {name!r} is required, and holds a null")


def _null_mask(array: ArrowArray) -> BooleanArray | None:
    return array.is_null() if array.null_count else None


def _offset_list(array: ArrowArray) -> ArrowArray:
    """Return any of Arrow's list layouts as the plain one."""
    return array if pat.is_list(array.type) else array.cast(pa.list_(array.type.field(0)))


def _part_below(offsets: ArrowArray, values: ArrowArray) -> tuple[ArrowArray, ArrowArray]:
    """Return the values that `offsets` spans, and the offsets into them.

    A slice keeps all of its parent's values; converting them would do the work once a slice.
    """
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return pc.subtract(offsets, first), values.slice(first, last - first)
