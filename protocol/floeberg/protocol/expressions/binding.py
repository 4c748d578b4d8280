"""Bind a filter to a schema: names become field ids, literals get the column's type, NOT
disappears.

NOT goes down to the predicates first, since only there it can be resolved under three-valued logic:
the opposite of a comparison is unknown on null as the comparison itself is, and on a float it is
true of NaN. Only then are predicates folded that are the same for every row. With no NOT left
above, a false may stand for an unknown: neither returns the row. See `expressions.evaluation` for
the rule itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from floeberg.protocol.errors import BadFilter
from floeberg.protocol.expressions.literals import Exact, Gap, type_literal, type_prefix
from floeberg.protocol.expressions.model import (
    FALSE,
    MAX_DEPTH,
    SETS,
    TRUE,
    UNARY,
    And,
    BoundExpression,
    BoundNullTest,
    BoundPredicate,
    Constant,
    Expression,
    Not,
    Op,
    Or,
    Predicate,
    RawLiteral,
)
from floeberg.protocol.expressions.rewriting import (
    NEGATED,
    ORDERINGS,
    conjunction,
    disjunction,
    membership,
)
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import (
    BinaryType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    UnknownType,
    Value,
    VariantType,
)

_ONLY_NULL_TESTS = (
    StructType | ListType | MapType | VariantType | UnknownType | GeometryType | GeographyType
)
_Join: TypeAlias = Callable[[Sequence[BoundExpression]], BoundExpression]


def bind(expression: Expression, schema: Schema, case_sensitive: bool = True) -> BoundExpression:
    """Return `expression` over the fields of `schema`, without NOT, flat and folded.

    A row satisfies the result exactly when it satisfies `expression`. Raises `UnknownColumn` and
    `AmbiguousColumn` for names, `BadLiteral` for literals of the wrong type, and `BadFilter` for an
    operator that the column's type does not have, for columns below lists and maps, and for a
    filter nested more than `MAX_DEPTH` deep.
    """
    return _Binder(schema, case_sensitive).bind(expression, negated=False, depth=0)


class _Binder:
    def __init__(self, schema: Schema, case_sensitive: bool) -> None:
        self._schema = schema
        self._case_sensitive = case_sensitive

    def bind(self, expression: Expression, negated: bool, depth: int) -> BoundExpression:
        while isinstance(expression, Not):
            expression, negated = expression.operand, not negated
        match expression:
            case Constant(value):
                return TRUE if value is not negated else FALSE
            case Predicate():
                return self._predicate(expression, negated)
            case And() | Or():
                if depth >= MAX_DEPTH:
                    raise BadFilter(f"the filter is nested more than {MAX_DEPTH} levels deep")
                is_and = isinstance(expression, And) is not negated
                join: _Join = conjunction if is_and else disjunction
                bound: list[BoundExpression] = []
                for operand in _flat(expression):
                    bound.append(self.bind(operand, negated, depth + 1))
                return join(bound)

    def _predicate(self, predicate: Predicate, negated: bool) -> BoundExpression:
        op = predicate.op
        _check_arity(predicate)
        field = self._schema.lookup(predicate.column, self._case_sensitive)
        self._check_reachable(field, predicate.column)
        if op in (Op.IS_NULL, Op.NOT_NULL):
            return self._null_test(field, is_null=(op is Op.IS_NULL) is not negated)
        type_ = field.type
        if isinstance(type_, _ONLY_NULL_TESTS):
            raise BadFilter(
                f"{op} cannot be asked of {predicate.column!r}, which is a {_kind(type_)}:"
                " only is-null and not-null can"
            )
        target = BoundPredicate(op, field.field_id, self._schema.name_of(field.field_id), type_)
        if op in SETS:
            return self._set(target, predicate.literals, negated)
        if op in (Op.IS_NAN, Op.NOT_NAN):
            if not isinstance(type_, FloatType | DoubleType):
                raise BadFilter(f"{op} needs a float or double column; {target.name!r} is {type_}")
            return _with(target, NEGATED[op] if negated else op)
        if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
            return self._prefix(target, predicate.literals[0], NEGATED[op] if negated else op)
        return self._comparison(target, predicate.literals[0], negated)

    def _check_reachable(self, field: NestedField, column: str) -> None:
        for above in self._schema.path(field.field_id)[:-1]:
            parent = self._schema.find(above)
            if parent is not None and isinstance(parent.type, ListType | MapType):
                raise BadFilter(
                    f"{column!r} is inside a {_kind(parent.type)}, where one row has many values;"
                    " only columns and fields of structs can be filtered"
                )

    def _null_test(self, field: NestedField, is_null: bool) -> BoundExpression:
        type_ = field.type
        if isinstance(type_, UnknownType):
            return TRUE if is_null else FALSE
        if self._never_null(field):
            return FALSE if is_null else TRUE
        name = self._schema.name_of(field.field_id)
        if isinstance(type_, StructType | ListType | MapType | VariantType):
            return BoundNullTest(field.field_id, name, type_, negated=not is_null)
        return BoundPredicate(Op.IS_NULL if is_null else Op.NOT_NULL, field.field_id, name, type_)

    def _never_null(self, field: NestedField) -> bool:
        """Say whether the field and all structs around it are required."""
        path = (self._schema.find(i) for i in self._schema.path(field.field_id))
        return all(f is not None and f.required for f in path)

    def _not_null(self, target: BoundPredicate) -> BoundExpression:
        """The comparison holds for every value: what is left is that there is one."""
        field = self._schema.find(target.field_id)
        if field is not None and self._never_null(field):
            return TRUE
        return _with(target, Op.NOT_NULL)

    def _comparison(
        self, target: BoundPredicate, raw: RawLiteral, negated: bool
    ) -> BoundExpression:
        literal = type_literal(raw, target.type, target.name)
        if literal == Exact(math.nan) or _is_nan(literal):
            # NaN is not less than, equal to or greater than anything
            return self._not_null(target) if (target.op is Op.NE) is not negated else FALSE
        op = NEGATED[target.op] if negated else target.op
        bound = self._folded(target, op, literal)
        if negated and op in ORDERINGS and isinstance(target.type, FloatType | DoubleType):
            return disjunction((bound, _with(target, Op.IS_NAN)))
        return bound

    def _folded(self, target: BoundPredicate, op: Op, literal: Exact | Gap) -> BoundExpression:
        if isinstance(literal, Exact):
            return _with(target, op, literal.value)
        match op, literal:
            case Op.EQ, _:
                return FALSE
            case Op.NE, _:
                return self._not_null(target)
            case ((Op.LT | Op.LE), Gap(below=None)):
                return FALSE
            case ((Op.LT | Op.LE), Gap(above=None)):
                return self._not_null(target)
            case ((Op.LT | Op.LE), Gap(below=below)) if below is not None:
                return _with(target, Op.LE, below)
            case _, Gap(above=None):
                return FALSE
            case _, Gap(below=None):
                return self._not_null(target)
            case _, Gap(above=above):
                assert above is not None
                return _with(target, Op.GE, above)

    def _set(
        self, target: BoundPredicate, raws: tuple[RawLiteral, ...], negated: bool
    ) -> BoundExpression:
        excludes = (target.op is Op.NOT_IN) is not negated
        if not raws:  # nothing is in the empty set, and nulls are outside it like every value
            return TRUE if excludes else FALSE
        members: list[Value] = []
        for raw in raws:
            literal = type_literal(raw, target.type, target.name)
            if isinstance(literal, Exact) and not _is_nan(literal):
                members.append(literal.value)
        if not members:  # only literals that no value equals
            return self._not_null(target) if excludes else FALSE
        return membership(target, members, negated=excludes)

    def _prefix(self, target: BoundPredicate, raw: RawLiteral, op: Op) -> BoundExpression:
        type_ = target.type
        if not isinstance(type_, StringType | BinaryType | FixedType):
            raise BadFilter(
                f"{target.op} needs a string or binary column; {target.name!r} is {type_}"
            )
        prefix = type_prefix(raw, type_, target.name)
        assert isinstance(prefix, str | bytes)
        if not prefix:
            return self._not_null(target) if op is Op.STARTS_WITH else FALSE
        if isinstance(type_, FixedType) and len(prefix) > type_.length:
            return FALSE if op is Op.STARTS_WITH else self._not_null(target)
        return _with(target, op, prefix)


def _with(target: BoundPredicate, op: Op, *literals: Value) -> BoundPredicate:
    return BoundPredicate(op, target.field_id, target.name, target.type, literals)


def _is_nan(literal: Exact | Gap) -> bool:
    return (
        isinstance(literal, Exact)
        and isinstance(literal.value, float)
        and math.isnan(literal.value)
    )


def _kind(type_: PrimitiveType | VariantType | StructType | ListType | MapType) -> str:
    """Return the name of a type without what is below it."""
    return str(type_).partition("<")[0]


def _check_arity(predicate: Predicate) -> None:
    count = len(predicate.literals)
    if predicate.op in UNARY and count:
        raise BadFilter(f"{predicate.op} takes no literal, and {count} were given")
    if predicate.op not in UNARY and predicate.op not in SETS and count != 1:
        raise BadFilter(f"{predicate.op} takes one literal, and {count} were given")


def _flat(expression: And | Or) -> list[Expression]:
    """Return the operands, with those of operands of the same kind in their place, however deep
    they chain."""
    kind = type(expression)
    operands: list[Expression] = []
    waiting: list[Expression] = list(reversed(expression.operands))
    while waiting:
        operand = waiting.pop()
        if isinstance(operand, And | Or) and type(operand) is kind:
            waiting.extend(reversed(operand.operands))
        else:
            operands.append(operand)
    return operands
