"""Whether a manifest may list a file whose partition satisfies a projected filter.

A manifest list summarises, a partition field at a time, the values of all files of a manifest. The
answer may be yes for a manifest without such a file, and is never no for one that has one. Spec:
"Manifest Lists", "Scan Planning".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from floeberg.protocol.expressions.bounds import decode_bounds, may_match
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
from floeberg.protocol.partitioning import PartitionSpec
from floeberg.protocol.types import DoubleType, FloatType, StructType, Type

_Summary: TypeAlias = tuple[Type, FieldSummary]


def manifest_may_match(
    projected: BoundExpression,
    spec: PartitionSpec,
    partition_type: StructType,
    summaries: Sequence[FieldSummary],
) -> bool:
    """Say whether a manifest may list a file whose partition satisfies `projected`.

    `projected` is an inclusive projection onto `spec`, the manifest's own; `summaries` are in the
    order of its fields, and `partition_type` gives the fields' types. Summaries that are missing,
    or of another number than the fields, say nothing.
    """
    known: dict[int, _Summary] = {}
    if len(summaries) == len(spec.fields):
        for field, summary in zip(spec.fields, summaries, strict=True):
            found = partition_type.field(field.field_id)
            if found is not None:
                known[field.field_id] = (found.type, summary)
    return _may_match(projected, known)


def _may_match(projected: BoundExpression, summaries: Mapping[int, _Summary]) -> bool:
    match projected:
        case Constant(value):
            return value
        case BoundPredicate(field_id=field_id):
            summary = summaries.get(field_id)
            return summary is None or _field_may_match(projected, *summary)
        case BoundNullTest():
            return True
        case BoundAnd(operands):
            return all(_may_match(operand, summaries) for operand in operands)
        case BoundOr(operands):
            return any(_may_match(operand, summaries) for operand in operands)


def _field_may_match(predicate: BoundPredicate, type_: Type, summary: FieldSummary) -> bool:
    match predicate.op:
        case Op.IS_NULL:
            return summary.contains_null
        case Op.NOT_NULL:
            return True  # absent bounds might mean that all are null, or that none were written
        case Op.IS_NAN:
            return summary.contains_nan is not False
        case Op.NOT_NAN:
            return True
        case Op.NE | Op.NOT_IN if isinstance(predicate.type, FloatType | DoubleType):
            return True
        case _:
            bounds = decode_bounds(type_, summary.lower_bound, summary.upper_bound)
            return may_match(predicate, bounds)
