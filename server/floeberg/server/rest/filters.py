"""A filter in the form of Iceberg's REST catalog, as a client sends it.

Spec: "Predicate" and its kin in the REST catalog's OpenAPI document, the older spelling (`term`,
`value`) and the newer one (`child`, `left`, `right`, references as objects) alike. The other
direction is `floeberg.server.planning.rest_filter`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from floeberg.protocol import civil_time, values
from floeberg.protocol.errors import BadFilter, BadLiteral, Unsupported
from floeberg.protocol.expressions.model import (
    FALSE,
    MAX_DEPTH,
    SETS,
    TRUE,
    UNARY,
    And,
    Constant,
    Expression,
    Not,
    Op,
    Or,
    Predicate,
    RawLiteral,
)
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import (
    BooleanType,
    DateType,
    DoubleType,
    FloatType,
    IntType,
    Json,
    LongType,
    TimestampType,
    TimeType,
    Type,
)

_OPS = {
    "eq": Op.EQ,
    "not-eq": Op.NE,
    "lt": Op.LT,
    "lt-eq": Op.LE,
    "gt": Op.GT,
    "gt-eq": Op.GE,
    **{str(op): op for op in SETS | UNARY},
    "starts-with": Op.STARTS_WITH,
    "not-starts-with": Op.NOT_STARTS_WITH,
}
_NAN_TESTS = frozenset({Op.IS_NAN, Op.NOT_NAN})
_FLIPPED = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE, Op.EQ: Op.EQ, Op.NE: Op.NE}
_NUMBER = re.compile(r"[+-]?\d{1,40}(?:\.\d{0,40})?", re.ASCII)


# --- reading -------------------------------------------------------------------------------------


def expression_from_rest(raw: Json) -> Expression:
    """Return the filter that REST's JSON writes.

    Raises `BadFilter` for what is no predicate, and `Unsupported`, which names it, for one that
    compares anything but a column with literals.

    >>> expression_from_rest({"type": "lt-eq", "term": "a", "value": 1})
    Predicate(op=<Op.LE: '<='>, column='a', literals=(1,))
    """
    return _parse(raw, 0)


def _parse(raw: Json, depth: int) -> Expression:
    negated = False
    while _type(raw) == "not":
        raw, negated = _members(raw, {"child"})["child"], not negated
    kind = _type(raw)
    if kind in ("true", "false"):
        parsed: Expression = TRUE if kind == "true" else FALSE
    elif kind in ("and", "or"):
        if depth >= MAX_DEPTH:
            raise BadFilter(f"the filter is nested more than {MAX_DEPTH} levels deep")
        operands: list[Expression] = []
        waiting = [raw]
        while waiting:  # a chain, however long, is one level
            item = waiting.pop()
            if _type(item) == kind:
                members = _members(item, {"left", "right"})
                waiting += [members["right"], members["left"]]
            else:
                operands.append(_parse(item, depth + 1))
        parsed = And(tuple(operands)) if kind == "and" else Or(tuple(operands))
    else:
        parsed = _predicate(kind, raw)
    return Not(parsed) if negated else parsed


def _type(raw: Json) -> str:
    match raw:
        case bool():
            return "true" if raw else "false"
        case {"type": "literal", "value": bool() as value}:
            return "true" if value else "false"
        case {"type": str() as kind}:
            return kind.lower().replace("_", "-")
        case _:
            raise BadFilter(f"{_shown(raw)} is not a predicate: that is an object with a type")


def _members(raw: Json, needed: set[str]) -> Mapping[str, Json]:
    """Return the members of an object that has `needed` beside its type, and no others."""
    if not isinstance(raw, Mapping) or raw.keys() != needed | {"type"}:
        raise BadFilter(f"{_shown(raw)} has other members than type, {', '.join(sorted(needed))}")
    return raw


def _predicate(kind: str, raw: Json) -> Predicate:
    op = _OPS.get(kind)
    if op is None:
        raise BadFilter(f"no predicate is of type {kind[:40]!r}; there are {', '.join(_OPS)}")
    tested = "child" if "child" in raw else "term"
    if op in UNARY:
        return Predicate(op, _column(_members(raw, {tested})[tested]))
    if op in SETS:
        members = _members(raw, {tested, "values"})
        return Predicate(op, _column(members[tested]), _literals(members["values"]))
    if "left" not in raw:
        members = _members(raw, {"term", "value"})
        return Predicate(op, _column(members["term"]), (_literal(members["value"]),))
    members = _members(raw, {"left", "right"})
    left, right = members["left"], members["right"]
    if not _is_reference(left) and _is_reference(right) and op in _FLIPPED:
        op, left, right = _FLIPPED[op], right, left
    return Predicate(op, _column(left), (_literal(right),))


def _is_reference(raw: Json) -> bool:
    return isinstance(raw, Mapping) and raw.get("type") == "reference"


def _column(raw: Json) -> str:
    match raw:
        case str():
            return raw
        case {"type": "reference", "name": str() as name}:
            return name
        case {"type": "reference", "term": str() as name}:  # as Iceberg's own library writes it
            return name
        case {"type": "reference", "id": _}:
            raise Unsupported("a filter that names columns by field id; name them by their names")
        case {"type": "transform" | "apply"}:
            raise Unsupported(f"a filter on a function of a column: {_shown(raw)}")
        case _:
            raise BadFilter(f"{_shown(raw)} is not a column's name")


def _literals(raw: Json) -> tuple[RawLiteral, ...]:
    match raw:
        case list():
            return tuple(_literal(item) for item in raw)
        case {"type": "literals", "values": list() as items}:
            return tuple(_literal(item) for item in items)
        case _:
            raise BadFilter(f"{_shown(raw)} is not a list of literals")


def _literal(raw: Json) -> RawLiteral:
    match raw:
        case bool() | int() | float() | Decimal() | str():
            return raw
        case {"type": "literal", "value": value} if not isinstance(value, Mapping):
            return _literal(value)
        case None:
            raise BadFilter(
                "null is not a literal: test with is-null (infinities, which some clients send as"
                ' null, are written "Infinity")'
            )
        case _:
            raise Unsupported(f"a filter that compares a column with {_shown(raw)}")


def _shown(raw: Json) -> str:
    """Return `raw` for a message, without walking all of something deep or wide."""
    if isinstance(raw, Mapping):
        return f"an object of type {str(raw.get('type'))[:40]!r} with {', '.join(list(raw)[:6])}"
    return "a list" if isinstance(raw, list) else repr(raw)[:80]


# --- literals as REST clients write them ---------------------------------------------------------


def suited_to_columns(expression: Expression, schema: Schema, case_sensitive: bool) -> Expression:
    """Return the filter with its literals in floeberg's forms, where clients have others.

    Iceberg's own library sends dates as days, times and timestamps as microseconds; PyIceberg
    leaves the offset out of zoned timestamps, which are UTC then, takes numbers and booleans as
    text, and tests any column for NaN. Raises `UnknownColumn`, `AmbiguousColumn`, and `BadLiteral`
    for numbers beyond the type.
    """
    match expression:
        case Constant():
            return expression
        case Not(operand):
            return Not(suited_to_columns(operand, schema, case_sensitive))
        case And(operands):
            return And(tuple(suited_to_columns(o, schema, case_sensitive) for o in operands))
        case Or(operands):
            return Or(tuple(suited_to_columns(o, schema, case_sensitive) for o in operands))
        case Predicate(op, column, literals):
            field = schema.lookup(column, case_sensitive)
            if op in _NAN_TESTS and not isinstance(field.type, FloatType | DoubleType):
                return Constant(op is Op.NOT_NAN)
            suited = tuple(_suited(raw, field.type, column) for raw in literals)
            return Predicate(op, column, suited)


def _suited(raw: RawLiteral, type_: Type, column: str) -> RawLiteral:
    match type_, raw:
        case (DateType() | TimeType() | TimestampType(), int()) if not isinstance(raw, bool):
            return _civil(raw, type_, column)
        case TimestampType(zoned=True), str():
            return _with_offset(raw)
        case (IntType() | LongType(), str()) if _NUMBER.fullmatch(raw):
            return Decimal(raw)
        case BooleanType(), str() if raw.lower() in ("true", "false"):
            return raw.lower() == "true"
        case _:
            return raw


def _civil(number: int, type_: Type, column: str) -> str:
    nanos = isinstance(type_, TimestampType) and type_.nanos
    try:
        return str(values.to_json(type_, number * 1000 if nanos else number))
    except (ValueError, OverflowError) as exc:
        raise BadLiteral(number, str(type_), str(exc), column) from exc


def _with_offset(text: str) -> str:
    if ":" not in text:
        return f"{text}T00:00:00+00:00"
    try:
        return text if civil_time.parse_timestamp(text).zoned else f"{text}+00:00"
    except ValueError:
        return text  # binding says what is wrong with it
