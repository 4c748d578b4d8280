"""What is left of a filter for the rows of one partition.

A predicate that is true of all rows of the partition goes, and with it the need to read its column;
one that is true of none makes what it is `and`ed with false. The others stay as they are. Spec:
"Scan Planning".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import TypeAlias

import numpy as np

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
from floeberg.protocol.manifests.columns import Mask
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


class Outcome(Enum):
    """What a partition says of a predicate."""

    TRUE = "true of all its rows"
    FALSE = "true of none"
    OPEN = "true of some, or not known"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A predicate, what it says of partitions, and the partition fields that it says it by.

    Its outcome is FALSE where `inclusive` is not true, else TRUE where `strict` is; and OPEN in a
    partition that lacks any of `fields`.
    """

    predicate: BoundPredicate | BoundNullTest
    inclusive: BoundExpression
    strict: BoundExpression
    fields: frozenset[int]

    def outcome(self, partition: Mapping[int, Value | None]) -> Outcome:
        if not self.fields <= partition.keys():
            return Outcome.OPEN
        if not is_true(self.inclusive, partition):
            return Outcome.FALSE
        return Outcome.TRUE if is_true(self.strict, partition) else Outcome.OPEN


class Residuals:
    """A filter, projected onto a spec a predicate at a time, for the residuals of many partitions.

    A residual depends on the partition by the outcomes of `leaves` only. Threads may share it.
    """

    def __init__(self, bound: BoundExpression, spec: PartitionSpec, schema: Schema) -> None:
        leaves: list[Leaf] = []
        self._root = _projected(bound, spec, schema, leaves)
        self.leaves = tuple(leaves)
        """The predicates of the filter, left to right."""
        self._given: dict[tuple[Outcome, ...], BoundExpression] = {}

    def in_partition(self, partition: Mapping[int, Value | None]) -> BoundExpression:
        """Return what `residual` does."""
        return self.given([leaf.outcome(partition) for leaf in self.leaves])

    def given(self, outcomes: Sequence[Outcome]) -> BoundExpression:
        """Return the residual of partitions with these outcomes of the `leaves`, in their order.

        For the same outcomes it is the same object, which who looks for equal ones sees at once.
        """
        key = tuple(outcomes)
        found = self._given.get(key)
        if found is None:
            found = self._given.setdefault(key, _residual(self._root, self.leaves, key))
        return found

    def possible(self, leaves: Sequence[Mask], rows: int) -> Mask:
        """Say of each of so many partitions whether its residual is other than FALSE.

        `leaves` say of the predicates whether their outcome is, by masks of the shape (rows,) or,
        for one that is the same everywhere, (1,).
        """
        return np.broadcast_to(_possible(self._root, leaves), rows)


@dataclass(frozen=True, slots=True)
class _Join:
    is_and: bool
    nodes: tuple[_Node, ...]


_Node: TypeAlias = Constant | int | _Join
"""A number stands for the leaf at that place."""


def _projected(
    bound: BoundExpression, spec: PartitionSpec, schema: Schema, leaves: list[Leaf]
) -> _Node:
    """Return a node for `bound`, and append its leaves."""
    match bound:
        case Constant():
            return bound
        case BoundPredicate() | BoundNullTest():
            inclusive = project_inclusive(bound, spec, schema)
            strict = project_strict(bound, spec, schema)
            fields = field_ids(inclusive) | field_ids(strict)
            leaves.append(Leaf(bound, inclusive, strict, fields))
            return len(leaves) - 1
        case BoundAnd(operands) | BoundOr(operands):
            nodes: list[_Node] = []
            for operand in operands:
                nodes.append(_projected(operand, spec, schema, leaves))
            return _Join(isinstance(bound, BoundAnd), tuple(nodes))


def _residual(node: _Node, leaves: Sequence[Leaf], outcomes: Sequence[Outcome]) -> BoundExpression:
    match node:
        case Constant():
            return node
        case int():
            match outcomes[node]:
                case Outcome.TRUE:
                    return TRUE
                case Outcome.FALSE:
                    return FALSE
                case Outcome.OPEN:
                    return leaves[node].predicate
        case _Join(is_and, nodes):
            left: list[BoundExpression] = []
            for inner in nodes:
                left.append(_residual(inner, leaves, outcomes))
            return conjunction(left) if is_and else disjunction(left)


def _possible(node: _Node, leaves: Sequence[Mask]) -> Mask:
    match node:
        case Constant(value):
            return np.full(1, value)
        case int():
            return leaves[node]
        case _Join(is_and, nodes):
            join = np.logical_and if is_and else np.logical_or
            mask: Mask = reduce(join, (_possible(inner, leaves) for inner in nodes))
            return mask
