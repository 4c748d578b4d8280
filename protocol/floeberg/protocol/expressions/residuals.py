"""What is left of a filter for the rows of one partition.

A predicate that is true of all rows of the partition goes, and with it the need to read its column;
one that is true of none makes what it is `and`ed with false. The others stay as they are. Spec:
"Scan Planning".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from floeberg.protocol.expressions.evaluation import is_true
from floeberg.protocol.expressions.model import (
    FALSE,
    TRUE,
    BoundAnd,
    BoundExpression,
    BoundNullTest,
    BoundOr,
    BoundPredicate,
    Constant,
    field_ids,
)
from floeberg.protocol.expressions.projection import project_inclusive, project_strict
from floeberg.protocol.expressions.rewriting import conjunction, disjunction
from floeberg.protocol.partitioning import PartitionSpec
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import Value


def residual(
    bound: BoundExpression,
    spec: PartitionSpec,
    schema: Schema,
    partition: Mapping[int, Value | None],
) -> BoundExpression:
    """Return a filter that is true of the same rows of `partition` as `bound` is.

    `partition` holds the partition value of each field of `spec`, null as None; a field that it
    does not hold is unknown. `schema` is the one that `bound` was bound to. TRUE means that every
    row satisfies `bound`, and FALSE that none does; a partition of either kind may still come back
    with a filter, never with the wrong constant. For many partitions of one spec, `Residuals`
    projects only once.
    """
    return Residuals(bound, spec, schema).in_partition(partition)


class Residuals:
    """A filter, projected onto a spec a predicate at a time, for the residuals of many partitions.

    Never changes, so threads may share it.
    """

    def __init__(self, bound: BoundExpression, spec: PartitionSpec, schema: Schema) -> None:
        self._root = _projected(bound, spec, schema)

    def in_partition(self, partition: Mapping[int, Value | None]) -> BoundExpression:
        """Return what `residual` does."""
        return _residual(self._root, partition)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A predicate, what it says of partitions, and the partition fields that it says it by."""

    predicate: BoundPredicate | BoundNullTest
    inclusive: BoundExpression
    strict: BoundExpression
    fields: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Join:
    is_and: bool
    nodes: tuple[_Node, ...]


_Node: TypeAlias = Constant | _Leaf | _Join


def _projected(bound: BoundExpression, spec: PartitionSpec, schema: Schema) -> _Node:
    match bound:
        case Constant():
            return bound
        case BoundPredicate() | BoundNullTest():
            inclusive = project_inclusive(bound, spec, schema)
            strict = project_strict(bound, spec, schema)
            return _Leaf(bound, inclusive, strict, field_ids(inclusive) | field_ids(strict))
        case BoundAnd(operands) | BoundOr(operands):
            nodes: list[_Node] = []
            for operand in operands:
                nodes.append(_projected(operand, spec, schema))
            return _Join(isinstance(bound, BoundAnd), tuple(nodes))


def _residual(node: _Node, partition: Mapping[int, Value | None]) -> BoundExpression:
    match node:
        case Constant():
            return node
        case _Leaf():
            if not node.fields <= partition.keys():
                return node.predicate
            if is_true(node.strict, partition):
                return TRUE
            return node.predicate if is_true(node.inclusive, partition) else FALSE
        case _Join(is_and, nodes):
            left: list[BoundExpression] = []
            for inner in nodes:
                left.append(_residual(inner, partition))
            return conjunction(left) if is_and else disjunction(left)
