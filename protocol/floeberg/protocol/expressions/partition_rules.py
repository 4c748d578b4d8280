"""What a predicate on a column says of the partition values that one transform makes of it.

`inclusive` and `strict` answer for one predicate and one partition field; `expressions.projection`
explains the two and applies them to whole filters.

Writers did not always follow the spec. Iceberg before 0.11 rounded times before 1970 up instead of
down, so a negative year, month, day or hour may be stored one too high: inclusive predicates reach
one further on that side, and strict ones stop one earlier. And where truncating an integer falls
below the smallest of its type, it wraps around to a large positive one, which stands for the
smallest values still.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from floeberg.protocol import values
from floeberg.protocol.expressions.model import (
    FALSE,
    TRUE,
    BoundExpression,
    BoundPredicate,
    Op,
)
from floeberg.protocol.expressions.rewriting import conjunction, disjunction, membership
from floeberg.protocol.partitioning import PartitionField
from floeberg.protocol.transforms import (
    Bucket,
    Day,
    Hour,
    Identity,
    Month,
    Truncate,
    UnknownTransform,
    Void,
    Year,
    apply,
    result_type,
)
from floeberg.protocol.types import (
    BinaryType,
    DateType,
    IntType,
    ListType,
    LongType,
    MapType,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    Value,
    VariantType,
)

_VALUE_SETS = frozenset({Op.EQ, Op.IN})
_EXCLUDED_SETS = frozenset({Op.NE, Op.NOT_IN})


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """One partition field, whose transform applies to its source column of type `source`."""

    field: PartitionField
    source: PrimitiveType

    @property
    def type(self) -> PrimitiveType:
        found = result_type(self.field.transform, self.source)
        assert not isinstance(found, StructType | ListType | MapType | VariantType)
        return found

    def test(self, op: Op, *literals: Value) -> BoundPredicate:
        return BoundPredicate(op, self.field.field_id, self.field.name, self.type, literals)

    def member(self, literals: set[Value], *, negated: bool) -> BoundExpression:
        """Return a test for membership in `literals`; the empty set has no members."""
        if not literals:
            return self.test(Op.NOT_NULL) if negated else FALSE
        return membership(self.test(Op.EQ), literals, negated=negated)

    def apply(self, value: Value) -> Value:
        """Return the partition value that a row with `value` is stored under."""
        result = apply(self.field.transform, self.source, value)
        assert result is not None
        return result

    def floor(self, value: Value) -> Value:
        """Return `apply(value)`, but where truncating wraps around, the number below it."""
        if isinstance(self.field.transform, Truncate) and isinstance(value, int):
            return value - value % self.field.transform.width
        return self.apply(value)

    def wrapped(self) -> Value | None:
        """Return the large value that truncating gives the smallest integers, if it wraps
        around."""
        if not isinstance(self.field.transform, Truncate):
            return None
        match self.source:
            case IntType():
                lowest = values.INT_MIN
            case LongType():
                lowest = values.LONG_MIN
            case _:
                return None
        return self.apply(lowest) if self.floor(lowest) != self.apply(lowest) else None

    def may_be_one_high(self, partition: Value) -> bool:
        """Say whether rows of `partition` may be stored under the next one, by an old writer."""
        match self.field.transform, self.source:
            case ((Year() | Month()), DateType()):
                pass
            case ((Year() | Month() | Day() | Hour()), TimestampType(nanos=False)):
                pass
            case _:
                return False  # a day of a date needs no rounding, and nanoseconds came later
        return isinstance(partition, int) and partition < 0

    def stored_any(self, literals: tuple[Value, ...]) -> set[Value]:
        """Return the partition values under which rows with one of `literals` may be found."""
        exact = {self.apply(item) for item in literals}
        return exact | {_next(p) for p in exact if self.may_be_one_high(p)}


def inclusive(predicate: BoundPredicate, column: PartitionColumn) -> BoundExpression:
    """Return what holds of the partition of every row that satisfies `predicate`."""
    if predicate.op in (Op.IS_NULL, Op.NOT_NULL):
        return column.test(predicate.op)
    match column.field.transform:
        case Identity():
            return column.test(predicate.op, *predicate.literals)
        case Day() if isinstance(column.source, DateType):
            return column.test(predicate.op, *predicate.literals)
        case Truncate(width) if isinstance(column.source, StringType | BinaryType):
            return _inclusive_prefix(predicate, column, width)
        case Bucket() | Truncate() | Year() | Month() | Day() | Hour() as transform:
            if predicate.op in _VALUE_SETS:
                return column.member(column.stored_any(predicate.literals), negated=False)
            if isinstance(transform, Bucket):
                return column.test(Op.NOT_NULL)
            return _inclusive_order(predicate, column)
        case Void() | UnknownTransform():
            return TRUE


def _inclusive_order(predicate: BoundPredicate, column: PartitionColumn) -> BoundExpression:
    """The transform never decreases: what is below `x` is stored at or below where `x` is."""
    match predicate.op:
        case Op.LT | Op.LE:
            literal = predicate.literal
            last = column.floor(literal if predicate.op is Op.LE else _previous(literal))
            if column.may_be_one_high(last):
                last = _next(last)
            below: BoundExpression = column.test(Op.LE, last)
            wrapped = column.wrapped()
            return below if wrapped is None else disjunction([below, column.test(Op.EQ, wrapped)])
        case Op.GT:
            return column.test(Op.GE, column.floor(_next(predicate.literal)))
        case Op.GE:
            return column.test(Op.GE, column.floor(predicate.literal))
        case _:
            return column.test(Op.NOT_NULL)


def _inclusive_prefix(
    predicate: BoundPredicate, column: PartitionColumn, width: int
) -> BoundExpression:
    """Text and bytes are cut to `width`; one that is shorter was not cut, and is known whole."""
    op, literals = predicate.op, predicate.literals
    match op:
        case Op.EQ | Op.IN:
            return column.member({column.apply(item) for item in literals}, negated=False)
        case Op.NE | Op.NOT_IN:
            return column.member({i for i in literals if _length(i) < width}, negated=True)
        case Op.LT if _length(predicate.literal) <= width:
            return column.test(Op.LT, predicate.literal)
        case Op.LT | Op.LE:
            return column.test(Op.LE, column.apply(predicate.literal))
        case Op.GT if _length(predicate.literal) < width:
            return column.test(Op.GT, predicate.literal)
        case Op.GT | Op.GE:
            return column.test(Op.GE, column.apply(predicate.literal))
        case Op.STARTS_WITH | Op.NOT_STARTS_WITH if _length(predicate.literal) <= width:
            return column.test(op, predicate.literal)
        case Op.STARTS_WITH:
            return column.test(Op.EQ, column.apply(predicate.literal))
        case _:
            return column.test(Op.NOT_NULL)


def strict(predicate: BoundPredicate, column: PartitionColumn) -> BoundExpression:
    """Return what holds only of partitions all of whose rows satisfy `predicate`."""
    if predicate.op in (Op.IS_NULL, Op.NOT_NULL):
        return column.test(predicate.op)
    match column.field.transform:
        case Identity():
            return column.test(predicate.op, *predicate.literals)
        case Day() if isinstance(column.source, DateType):
            return column.test(predicate.op, *predicate.literals)
        case Truncate(width) if isinstance(column.source, StringType | BinaryType):
            return _strict_prefix(predicate, column, width)
        case Bucket() | Truncate() | Year() | Month() | Day() | Hour() as transform:
            if predicate.op in _EXCLUDED_SETS:
                return column.member(column.stored_any(predicate.literals), negated=True)
            if isinstance(transform, Bucket):
                return FALSE
            return _strict_order(predicate, column)
        case Void() | UnknownTransform():
            return FALSE


def _strict_order(predicate: BoundPredicate, column: PartitionColumn) -> BoundExpression:
    """Only the partition that holds `x`, or its neighbour, can have rows on both sides of it."""
    match predicate.op:
        case Op.LT:
            return column.test(Op.LT, column.floor(predicate.literal))
        case Op.LE:
            return column.test(Op.LT, column.floor(_next(predicate.literal)))
        case Op.GT | Op.GE:
            literal = predicate.literal
            last = column.floor(literal if predicate.op is Op.GT else _previous(literal))
            if column.may_be_one_high(last):
                last = _next(last)
            above = column.test(Op.GT, last)
            wrapped = column.wrapped()
            return above if wrapped is None else conjunction([above, column.test(Op.NE, wrapped)])
        case _:
            return FALSE


def _strict_prefix(
    predicate: BoundPredicate, column: PartitionColumn, width: int
) -> BoundExpression:
    op, literals = predicate.op, predicate.literals
    match op:
        case Op.EQ | Op.IN:
            return column.member({i for i in literals if _length(i) < width}, negated=False)
        case Op.NE | Op.NOT_IN:
            return column.member({column.apply(item) for item in literals}, negated=True)
        case Op.LE if _length(predicate.literal) < width:
            return column.test(Op.LE, predicate.literal)
        case Op.LT | Op.LE:
            return column.test(Op.LT, column.apply(predicate.literal))
        case Op.GE if _length(predicate.literal) <= width:
            return column.test(Op.GE, predicate.literal)
        case Op.GT | Op.GE:
            return column.test(Op.GT, column.apply(predicate.literal))
        case Op.STARTS_WITH | Op.NOT_STARTS_WITH if _length(predicate.literal) <= width:
            return column.test(op, predicate.literal)
        case Op.NOT_STARTS_WITH:
            return column.test(Op.NE, column.apply(predicate.literal))
        case _:
            return FALSE


def _length(value: Value) -> int:
    assert isinstance(value, str | bytes)
    return len(value)


def _next(value: Value) -> Value:
    return _moved(value, 1)


def _previous(value: Value) -> Value:
    return _moved(value, -1)


def _moved(value: Value, units: int) -> Value:
    """Return the number that is `units` of the smallest step after `value`."""
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        assert isinstance(exponent, int)
        return values.decimal_of(values.unscaled_of(value, -exponent) + units, -exponent)
    assert isinstance(value, int)
    return value + units
