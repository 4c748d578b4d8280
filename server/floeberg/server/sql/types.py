"""Which of DuckDB's types holds an Iceberg type's values, where that is just one."""

from __future__ import annotations

from typing import TypeGuard

from sqlglot import exp

from floeberg.protocol.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntType,
    LongType,
    StringType,
    TimestampType,
    TimeType,
    Type,
    UuidType,
)


def is_cast(node: object) -> TypeGuard[exp.Cast]:
    """Say whether `node` is a cast to a type, and neither TRY_CAST nor with more to it."""
    if type(node) is not exp.Cast or not isinstance(node.to, exp.DataType):
        return False
    return not any(value for key, value in node.args.items() if key not in ("this", "to"))


def is_type(written: exp.DataType, type_: Type) -> bool:
    """Say whether a type, as a cast names it, is the one that columns of `type_` have already.

    >>> is_type(exp.DataType.build("BIGINT", dialect="duckdb"), LongType())
    True
    """
    kind = written.this
    if isinstance(type_, DecimalType):
        if kind != exp.DType.DECIMAL:
            return False
        digits = [str(parameter.this.name) for parameter in written.expressions]
        return digits == [str(type_.precision), str(type_.scale)]
    if written.expressions or written.args.get("nested"):
        return False
    match type_:
        case BooleanType():
            return bool(kind == exp.DType.BOOLEAN)
        case IntType():
            return bool(kind == exp.DType.INT)
        case LongType():
            return bool(kind == exp.DType.BIGINT)
        case FloatType():
            return bool(kind == exp.DType.FLOAT)
        case DoubleType():
            return bool(kind == exp.DType.DOUBLE)
        case DateType():
            return bool(kind == exp.DType.DATE)
        case TimeType():
            return bool(kind == exp.DType.TIME)
        case TimestampType(zoned=False, nanos=False):
            return kind in (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ)
        case TimestampType(zoned=True, nanos=False):
            return bool(kind == exp.DType.TIMESTAMPTZ)
        case TimestampType(zoned=False, nanos=True):
            return bool(kind == exp.DType.TIMESTAMP_NS)
        case StringType():
            return kind in (exp.DType.TEXT, exp.DType.VARCHAR)
        case UuidType():
            return bool(kind == exp.DType.UUID)
        case BinaryType() | FixedType():
            return bool(kind == exp.DType.VARBINARY)
        case _:
            return False
