"""A bound filter in the form of Iceberg's REST catalog: `{"type": "eq", "term": "a", "value": 1}`.

Spec: "Expression" and its kin in the REST catalog's OpenAPI document. Columns are named as the
schema that is read names them, and values have Appendix D's JSON form.
"""

from __future__ import annotations

from typing import assert_never

from floeberg.protocol.expressions.model import (
    SETS,
    UNARY,
    BoundAnd,
    BoundExpression,
    BoundNullTest,
    BoundOr,
    BoundPredicate,
    Constant,
    Op,
)
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import BinaryType, FixedType, Json, Type, Value
from floeberg.protocol.values import to_json

_NAMES = {
    Op.EQ: "eq",
    Op.NE: "not-eq",
    Op.LT: "lt",
    Op.LE: "lt-eq",
    Op.GT: "gt",
    Op.GE: "gt-eq",
}


def rest_filter(bound: BoundExpression, schema: Schema) -> Json:
    """Return the REST form of `bound`, whose fields are those of `schema`.

    REST's `and` and `or` take two operands: longer ones become balanced trees, so that readers that
    recurse can follow. The older spelling with `term` and `value` is used, which every client
    reads.
    """
    match bound:
        case Constant(value):
            return value
        case BoundAnd(operands):
            return _joined("and", [rest_filter(o, schema) for o in operands])
        case BoundOr(operands):
            return _joined("or", [rest_filter(o, schema) for o in operands])
        case BoundNullTest():
            kind = "not-null" if bound.negated else "is-null"
            return {"type": kind, "term": schema.name_of(bound.field_id)}
        case BoundPredicate():
            return _predicate(bound, schema)
    assert_never(bound)


def _joined(kind: str, operands: list[Json]) -> Json:
    if len(operands) == 1:
        return operands[0]
    half = len(operands) // 2
    left, right = _joined(kind, operands[:half]), _joined(kind, operands[half:])
    return {"type": kind, "left": left, "right": right}


def _predicate(p: BoundPredicate, schema: Schema) -> Json:
    out: dict[str, Json] = {
        "type": _NAMES.get(p.op, str(p.op)),
        "term": schema.name_of(p.field_id),
    }
    if p.op in SETS:
        out["values"] = [rest_value(p.type, v) for v in p.literals]
    elif p.op not in UNARY:
        out["value"] = rest_value(p.type, p.literal)
    return out


def rest_value(type_: Type, value: Value | None) -> Json:
    """Return one value as REST's PrimitiveTypeValue: Appendix D's JSON, with bytes in capitals."""
    if isinstance(value, bytes) and isinstance(type_, BinaryType | FixedType):
        return rest_bytes(value)
    return to_json(type_, value)


def rest_bytes(value: bytes) -> str:
    """Return REST's BinaryTypeValue."""
    return value.hex().upper()
