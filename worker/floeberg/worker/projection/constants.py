"""Arrow arrays from single values: partition values, defaults, and whatever else a whole file
shares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floeberg.protocol.types import ListType, MapType, StructType, Type, UnknownType
from floeberg.worker.arrow import ArrowArray, ArrowType, BooleanArray


def array_of(values: Sequence[Any], type_: Type, target: ArrowType) -> ArrowArray:
    """Return the array of `target`, the Arrow form of `type_`, that holds `values`.

    Values follow the convention of `floeberg.protocol.types.Value`; None is null. A struct is a
    mapping from field id, where a field left out is null; a list is a sequence, a map a sequence of
    pairs.
    """
    match type_:
        case StructType(fields):
            return _structs_of(values, type_, target, [f.field_id for f in fields])
        case ListType():
            elements = [e for v in values if v is not None for e in v]
            return pa.ListArray.from_arrays(
                _offsets(values),
                array_of(elements, type_.element, target.value_type),
                type=target,
                mask=_null_mask(values),
            )
        case MapType():
            pairs = [pair for v in values if v is not None for pair in v]
            return pa.MapArray.from_arrays(
                _offsets(values),
                array_of([k for k, _ in pairs], type_.key, target.key_type),
                array_of([v for _, v in pairs], type_.value, target.item_type),
                type=target,
                mask=_null_mask(values),
            )
        case UnknownType():
            return pa.nulls(len(values), target)
        case _:
            if isinstance(target, pa.BaseExtensionType):
                return pa.ExtensionArray.from_storage(target, pa.array(values, target.storage_type))
            return pa.array(values, target)


def _structs_of(
    values: Sequence[Mapping[int, Any] | None],
    type_: StructType,
    target: ArrowType,
    field_ids: Sequence[int],
) -> ArrowArray:
    children = [
        array_of(
            [v.get(field_id) if v is not None else None for v in values],
            type_.fields[i].type,
            target.field(i).type,
        )
        for i, field_id in enumerate(field_ids)
    ]
    return struct_array(children, target, len(values), _null_mask(values))


def struct_array(
    children: Sequence[ArrowArray],
    target: ArrowType,
    length: int,
    null_mask: BooleanArray | None = None,
) -> ArrowArray:
    """Return the struct array of `children`; unlike pyarrow's own way it takes no children at all.

    `null_mask` is true where the struct itself is null.
    """
    if children:
        fields = [target.field(i) for i in range(target.num_fields)]
        return pa.StructArray.from_arrays(list(children), fields=fields, mask=null_mask)
    validity = None
    if null_mask is not None:
        valid: ArrowArray = pc.invert(null_mask)
        validity = valid.buffers()[1]
    return pa.StructArray.from_buffers(target, length, [validity])


def repeat(single: ArrowArray, length: int) -> ArrowArray:
    """Return `length` copies of the only value of `single`."""
    if single.null_count:
        return pa.nulls(length, single.type)
    return single.take(pa.array(np.zeros(length, dtype=np.int64)))


def _offsets(values: Sequence[Sequence[Any] | None]) -> ArrowArray:
    lengths = [0] + [len(v) if v is not None else 0 for v in values]
    return pa.array(np.cumsum(lengths), pa.int32())


def _null_mask(values: Sequence[Any]) -> BooleanArray | None:
    return pa.array([v is None for v in values]) if any(v is None for v in values) else None
