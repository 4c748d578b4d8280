"""Which manifests of a list may name a file whose partition satisfies a filter, all at once.

A manifest list summarises, a partition field at a time, the values of all files of a manifest. The
answer may be yes for a manifest without such a file, and is never no for one that has one. Spec:
"Manifest Lists", "Scan Planning".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from floeberg.protocol.expressions.model import (
    BoundAnd,
    BoundExpression,
    BoundNullTest,
    BoundOr,
    BoundPredicate,
    Constant,
    Op,
)
from floeberg.protocol.files import FieldSummary
from floeberg.protocol.manifests import Strings
from floeberg.protocol.manifests.columns import OFFSETS
from floeberg.protocol.partitioning import PartitionSpec
from floeberg.protocol.types import DoubleType, FloatType, PrimitiveType, StructType
from floeberg.server.planning.vectorised.bounds import ColumnBounds, decode_columns
from floeberg.server.planning.vectorised.metrics import bounds_may_match
from floeberg.server.planning.vectorised.ordered import Mask


@dataclass(frozen=True, slots=True)
class FieldColumns:
    """The summaries of one partition field, a row for each of n manifests.

    `contains_nan` is true also where it is unknown. Bounds are None where no manifest has one.
    """

    contains_null: Mask
    contains_nan: Mask
    lower: Strings | None
    upper: Strings | None

    @classmethod
    def of(cls, summaries: Sequence[FieldSummary]) -> FieldColumns:
        rows = len(summaries)
        return cls(
            np.fromiter((s.contains_null for s in summaries), np.bool_, rows),
            np.fromiter((s.contains_nan is not False for s in summaries), np.bool_, rows),
            _strings([s.lower_bound for s in summaries]),
            _strings([s.upper_bound for s in summaries]),
        )

    @property
    def memory_bytes(self) -> int:
        bounds = [column for column in (self.lower, self.upper) if column is not None]
        flags = self.contains_null.nbytes + self.contains_nan.nbytes
        return flags + sum(map(_memory_bytes, bounds))


class PartitionSummaries:
    """The summaries of manifests of one spec, each of as many fields. Never changes."""

    def __init__(self, of_manifests: Sequence[Sequence[FieldSummary]]) -> None:
        self._rows = len(of_manifests)
        self._fields = [FieldColumns.of(column) for column in zip(*of_manifests, strict=True)]

    @property
    def memory_bytes(self) -> int:
        return sum(field.memory_bytes for field in self._fields)

    def may_match(
        self, projected: BoundExpression, spec: PartitionSpec, partition_type: StructType
    ) -> Mask:
        """Say of each manifest whether it may list a file whose partition satisfies `projected`.

        `projected` is an inclusive projection onto `spec`, the manifests' own; summaries are in the
        order of its fields, and `partition_type` gives the fields' types. Summaries that are
        missing, or of another number than the fields, say nothing.
        """
        known: dict[int, _Field] = {}
        if len(self._fields) == len(spec.fields):
            for field, columns in zip(partition_type.fields, self._fields, strict=True):
                if isinstance(field.type, PrimitiveType):
                    known[field.field_id] = _Field(field.type, columns)
        return _may_match(projected, known, self._rows)


class _Field:
    """The summaries of a field of known type. Its bounds are decoded once for all predicates."""

    def __init__(self, type_: PrimitiveType, columns: FieldColumns) -> None:
        self._type = type_
        self._columns = columns
        self._bounds: ColumnBounds | None = None

    def may_match(self, predicate: BoundPredicate, rows: int) -> Mask:
        match predicate.op:
            case Op.IS_NULL:
                return self._columns.contains_null
            case Op.IS_NAN:
                return self._columns.contains_nan
            case Op.NOT_NULL | Op.NOT_NAN:
                # absent bounds might mean that all are null, or that none were written
                return np.ones(rows, dtype=np.bool_)
            case Op.NE | Op.NOT_IN if isinstance(predicate.type, FloatType | DoubleType):
                return np.ones(rows, dtype=np.bool_)
        if self._bounds is None:
            lower, upper = self._columns.lower, self._columns.upper
            self._bounds = decode_columns(self._type, lower, upper)
        return bounds_may_match(predicate, self._bounds, rows)


def _may_match(projected: BoundExpression, known: Mapping[int, _Field], rows: int) -> Mask:
    match projected:
        case Constant(value):
            return np.full(rows, value)
        case BoundPredicate(field_id=field_id) if field_id in known:
            return known[field_id].may_match(projected, rows)
        case BoundPredicate() | BoundNullTest():
            return np.ones(rows, dtype=np.bool_)
        case BoundAnd(operands):
            mask = np.ones(rows, dtype=np.bool_)
            for operand in operands:
                mask &= _may_match(operand, known, rows)
            return mask
        case BoundOr(operands):
            mask = np.zeros(rows, dtype=np.bool_)
            for operand in operands:
                mask |= _may_match(operand, known, rows)
            return mask


def _strings(values: Sequence[bytes | None]) -> Strings | None:
    # Any: of an array's buffers the stubs know no more
    array: Any = pa.array(values, pa.binary())
    if array.null_count == len(values):
        return None
    bits, offsets, data = array.buffers()
    valid = None
    if bits is not None and array.null_count:
        packed = np.frombuffer(bits, np.uint8)
        valid = np.unpackbits(packed, count=len(values), bitorder="little").view(np.bool_)
    starts = np.frombuffer(offsets, OFFSETS, len(values) + 1)
    raw = np.frombuffer(b"" if data is None else data, np.uint8, int(starts[-1]))
    width = int(starts[1])
    if valid is None and (np.diff(starts) == width).all():
        return Strings(raw.reshape(len(values), width), None)
    return Strings(raw, starts, valid)


def _memory_bytes(column: Strings) -> int:
    others = (column.offsets, column.valid)
    return column.data.nbytes + sum(array.nbytes for array in others if array is not None)
