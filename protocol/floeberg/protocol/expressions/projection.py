"""Turn a filter on rows into filters on the partition values that transforms made of them.

*Inclusive*: true of the partition of every row that satisfies the filter; it errs by being true of
others too, so whatever it is not true of can be skipped. *Strict*: true only of partitions all of
whose rows satisfy the filter; it errs by missing some, so where it is true the filter need not be
evaluated again.

Both follow the rule for null and NaN of `expressions.evaluation`: a comparison is satisfied by no
null, and a null partition value holds only nulls. So a projected filter decides by whether it
evaluates to true; false and unknown mean the same. A partition field whose transform is void or
unknown, whose source column was dropped, or which has several source columns, says nothing. Spec:
"Scan Planning", "Partition Transforms".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from floeberg.protocol.expressions.model import (
    BoundAnd,
    BoundExpression,
    BoundNullTest,
    BoundOr,
    BoundPredicate,
    Constant,
)
from floeberg.protocol.expressions.partition_rules import PartitionColumn, inclusive, strict
from floeberg.protocol.expressions.rewriting import conjunction, disjunction
from floeberg.protocol.partitioning import PartitionSpec
from floeberg.protocol.schema import Schema
from floeberg.protocol.transforms import Void, applies_to

_Leaf: TypeAlias = Callable[[BoundPredicate | BoundNullTest], BoundExpression]


def project_inclusive(
    bound: BoundExpression, spec: PartitionSpec, schema: Schema
) -> BoundExpression:
    """Return what is true of the partition of every row that satisfies `bound`, by partition field
    ids.

    `schema` is the one that `bound` was bound to. May keep a partition without a matching row,
    never drops one.
    """

    def leaf(predicate: BoundPredicate | BoundNullTest) -> BoundExpression:
        columns = partition_columns(predicate, spec, schema)
        return conjunction([inclusive(p, column) for p, column in columns])

    return _project(bound, leaf)


def project_strict(bound: BoundExpression, spec: PartitionSpec, schema: Schema) -> BoundExpression:
    """Return what is true only of partitions all of whose rows satisfy `bound`, by partition field
    ids.

    `schema` is the one that `bound` was bound to. May miss such a partition, never claims one
    wrongly.
    """

    def leaf(predicate: BoundPredicate | BoundNullTest) -> BoundExpression:
        columns = partition_columns(predicate, spec, schema)
        return disjunction([strict(p, column) for p, column in columns])

    return _project(bound, leaf)


def _project(bound: BoundExpression, leaf: _Leaf) -> BoundExpression:
    match bound:
        case Constant():
            return bound
        case BoundPredicate() | BoundNullTest():
            return leaf(bound)
        case BoundAnd(operands) | BoundOr(operands):
            projected: list[BoundExpression] = []
            for operand in operands:
                projected.append(_project(operand, leaf))
            join = conjunction if isinstance(bound, BoundAnd) else disjunction
            return join(projected)


def partition_columns(
    leaf: BoundPredicate | BoundNullTest, spec: PartitionSpec, schema: Schema
) -> Iterator[tuple[BoundPredicate, PartitionColumn]]:
    """Yield the partition fields that say something of the column that `leaf` tests."""
    if not isinstance(leaf, BoundPredicate):
        return  # structs, lists and maps are no partition's source
    source = schema.find(leaf.field_id)
    for field in spec.by_source.get(leaf.field_id, ()):
        if (
            source is not None
            and not isinstance(field.transform, Void)
            and applies_to(field.transform, source.type)
        ):
            yield leaf, PartitionColumn(field, leaf.type)
