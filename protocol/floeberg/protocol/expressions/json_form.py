"""Filters as JSON, in two forms that look alike.

A caller's filter names columns and has literals as JSON writes them: `["and", [">", "amount", 10],
["is-null", "region"]]`. A bound filter on the wire names field ids and has Appendix D's literals,
which come back as the very values that they were: NaN aside (bound filters hold none), infinities
and decimals included.
"""

from __future__ import annotations

import datetime
import json
import math
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

from floeberg.protocol import values
from floeberg.protocol.errors import BadFilter
from floeberg.protocol.expressions.model import (
    FALSE,
    MAX_DEPTH,
    SETS,
    TRUE,
    UNARY,
    And,
    BoundAnd,
    BoundExpression,
    BoundNullTest,
    BoundOr,
    BoundPredicate,
    Constant,
    Expression,
    Not,
    Op,
    Or,
    Predicate,
    RawLiteral,
)
from floeberg.protocol.schema import Schema
from floeberg.protocol.suggestions import cut, quoted
from floeberg.protocol.types import (
    BinaryType,
    FixedType,
    Json,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    UnknownType,
    Value,
    VariantType,
)

_OPS = {str(op): op for op in Op}
_HINTS = {"==": "=", "<>": "!=", "is_null": "is-null", "isnull": "is-null", "not_in": "not-in"}


class MalformedExpression(ValueError):
    """JSON that `bound_to_json` did not write, or wrote for another schema."""


# --- as a caller writes it -----------------------------------------------------------------------


def expression_from_json(raw: Json) -> Expression:
    """Return the filter that a JSON form writes; lists and tuples are the same.

    Literals are JSON's, and from Python also `Decimal`, `bytes`, `UUID`, `date`, `time` and
    `datetime`. Raises `BadFilter` for everything that has another shape, and for one nested too
    deep to be meant.

    >>> expression_from_json(["in", "region", ["eu", "us"]])
    Predicate(op=<Op.IN: 'in'>, column='region', literals=('eu', 'us'))
    """
    return _parse(raw, 0)


def parse_json_text(text: str) -> Expression:
    """Return the filter of a JSON text. Numbers keep all their digits. Raises `BadFilter`."""
    try:
        raw = json.loads(text, parse_float=exact_number, parse_constant=_no_constant)
    except (ValueError, RecursionError) as exc:
        raise BadFilter(f"the filter is not JSON that can be read: {exc}") from exc
    return expression_from_json(raw)


def exact_number(text: str) -> float | Decimal:
    """Return the number that `text` writes: a float where that keeps its value, else a decimal.

    >>> exact_number("0.10"), exact_number("1234567890123456789.5")
    (0.1, Decimal('1234567890123456789.5'))
    """
    number = float(text)
    exact = Decimal(text)
    return number if math.isfinite(number) and Decimal(repr(number)) == exact else exact


def _no_constant(name: str) -> float:
    raise ValueError(f'{name} is no JSON: write "{name}" in quotes')


def _parse(raw: Json, depth: int) -> Expression:
    negated = False
    while _op(raw) == "not":
        if len(raw) != 2:
            raise BadFilter(f"not takes one filter: {_shown(raw)}")
        raw, negated = raw[1], not negated
    op = _op(raw)
    if op in ("and", "or"):
        if depth >= MAX_DEPTH:
            raise BadFilter(f"the filter is nested more than {MAX_DEPTH} levels deep")
        operands: list[Expression] = []
        waiting = list(reversed(raw[1:]))
        while waiting:
            item = waiting.pop()
            if _op(item) == op:  # a chain, however long, is one level
                waiting.extend(reversed(item[1:]))
            else:
                operands.append(_parse(item, depth + 1))
        parsed: Expression = And(tuple(operands)) if op == "and" else Or(tuple(operands))
    else:
        parsed = _parse_leaf(op, raw)
    return Not(parsed) if negated else parsed


def _op(raw: Json) -> str:
    if not isinstance(raw, list | tuple) or not raw or not isinstance(raw[0], str):
        raise BadFilter(
            f"a filter is a list that starts with an operator, like"
            f' ["=", "column", 1], and not {_shown(raw)}'
        )
    return raw[0].lower()


def _parse_leaf(op: str, raw: Json) -> Expression:
    if op in ("true", "false"):
        if len(raw) != 1:
            raise BadFilter(f"{op} takes nothing: {_shown(raw)}")
        return TRUE if op == "true" else FALSE
    known = _OPS.get(op)
    if known is None:
        hint = f"; write {_HINTS[op]!r}" if op in _HINTS else f"; there are {', '.join(_OPS)}"
        raise BadFilter(f"there is no operator {quoted(raw[0])}{hint}, and, or, not, true, false")
    expected = 2 if known in UNARY else 3
    if len(raw) != expected:
        raise BadFilter(
            f"{op} takes a column{' and ' if expected == 3 else ''}"
            f"{'a list of literals' if known in SETS else 'a literal' if expected == 3 else ''}"
            f": {_shown(raw)}"
        )
    column = raw[1]
    if not isinstance(column, str):
        raise BadFilter(f"{op} starts with a column's name, and not with {_shown(column)}")
    if known in UNARY:
        return Predicate(known, column)
    if known not in SETS:
        return Predicate(known, column, (_literal(raw[2], known, column),))
    if not isinstance(raw[2], list | tuple):
        raise BadFilter(f"{op} takes a list of literals, and not {_shown(raw[2])}")
    return Predicate(known, column, tuple(_literal(item, known, column) for item in raw[2]))


def _literal(raw: Json, op: Op, column: str) -> RawLiteral:
    match raw:
        case bool() | int() | float() | Decimal() | str() | bytes():
            return raw
        case None:
            raise BadFilter(
                f"{op} with null is never true; test {quoted(column)} with is-null or not-null"
            )
        case datetime.datetime() | datetime.date() | datetime.time():
            return raw.isoformat()
        case uuid.UUID():
            return str(raw)
        case _:
            raise BadFilter(f"{_shown(raw)} is not a literal")


def _shown(raw: Json, limit: int = 80) -> str:
    """Return `raw` for a message, without walking all of something deep or wide."""
    if isinstance(raw, list | tuple):
        inner = ", ".join("[…]" if isinstance(r, list | tuple) else repr(r) for r in raw[:6])
        text = f"[{inner}{', …' if len(raw) > 6 else ''}]"
    else:
        text = repr(raw)
    return cut(text, limit)


def expression_to_json(expression: Expression) -> Json:
    """Return the JSON form of a filter; `expression_from_json` reads it to the same meaning.

    Bytes become hexadecimal text. A decimal becomes a number where JSON's floats keep its value,
    and text where they do not. Raises `BadFilter` for one nested too deep.
    """
    return _unparse(expression, 0)


def _unparse(expression: Expression, depth: int) -> Json:
    if depth > 2 * MAX_DEPTH:  # each level may have its own not
        raise BadFilter(f"the filter is nested more than {MAX_DEPTH} levels deep")
    match expression:
        case Constant(value):
            return ["true" if value else "false"]
        case Predicate(op, column, literals):
            if op in UNARY:
                return [str(op), column]
            plain = [_literal_to_json(item) for item in literals]
            return [str(op), column, plain if op in SETS else plain[0]]
        case Not(operand):
            return ["not", _unparse(operand, depth + 1)]
        case And(operands) | Or(operands):
            out: list[Json] = ["and" if isinstance(expression, And) else "or"]
            for operand in operands:
                out.append(_unparse(operand, depth + 1))
            return out


def _literal_to_json(literal: RawLiteral) -> Json:
    match literal:
        case Decimal() if not literal.is_finite():
            return str(literal)
        case Decimal():
            if abs(literal) < 10**40 and literal == literal.to_integral_value():
                return int(literal)
            number = float(literal)
            return number if Decimal(repr(number)) == literal else str(literal)
        case bytes():
            return literal.hex()
        case float() if not math.isfinite(literal):
            return "NaN" if math.isnan(literal) else "Infinity" if literal > 0 else "-Infinity"
        case _:
            return literal


# --- bound, for the wire and for people ----------------------------------------------------------

_Naming: TypeAlias = Callable[[BoundPredicate | BoundNullTest], Json]


def bound_to_json(bound: BoundExpression) -> Json:
    """Return a bound filter by field ids; `bound_from_json` reads it with the same schema."""
    return _bound_to_json(bound, lambda leaf: leaf.field_id)


def bound_to_named_json(bound: BoundExpression, schema: Schema) -> Json:
    """Return a bound filter by the columns' names in `schema`: a caller's form, which binds to
    itself."""
    return _bound_to_json(bound, lambda leaf: schema.name_of(leaf.field_id))


def _bound_to_json(bound: BoundExpression, name: _Naming) -> Json:
    match bound:
        case Constant(value):
            return ["true" if value else "false"]
        case BoundPredicate(op=op, literals=literals):
            if op in UNARY:
                return [str(op), name(bound)]
            type_ = _literal_type(op, bound.type)
            plain = [values.to_json(type_, item) for item in literals]
            return [str(op), name(bound), plain if op in SETS else plain[0]]
        case BoundNullTest(negated=negated):
            return [str(Op.NOT_NULL if negated else Op.IS_NULL), name(bound)]
        case BoundAnd(operands) | BoundOr(operands):
            out: list[Json] = ["and" if isinstance(bound, BoundAnd) else "or"]
            for operand in operands:
                out.append(_bound_to_json(operand, name))
            return out


def _literal_type(op: Op, type_: PrimitiveType) -> PrimitiveType:
    """Return the type of a predicate's literals: the column's, but a prefix may have any length."""
    if isinstance(type_, FixedType) and op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        return BinaryType()
    return type_


def bound_from_json(raw: Json, schema: Schema) -> BoundExpression:
    """Return the bound filter that `bound_to_json` wrote, over the fields of `schema`.

    Raises `MalformedExpression` for any other JSON: it may come from outside.
    """
    return _bound_from_json(raw, schema, 0)


def _bound_from_json(raw: Json, schema: Schema, depth: int) -> BoundExpression:
    match raw:
        case ["true"]:
            return TRUE
        case ["false"]:
            return FALSE
        case ["and" | "or" as op, *items] if len(items) >= 2:
            if depth >= 2 * MAX_DEPTH:  # rewriting a negated float comparison adds a level
                raise MalformedExpression("a filter nested too deep")
            operands: list[BoundExpression] = []
            for item in items:
                operands.append(_bound_from_json(item, schema, depth + 1))
            return BoundAnd(tuple(operands)) if op == "and" else BoundOr(tuple(operands))
        case [str(name), int(field_id), *rest] if name in _OPS and not isinstance(field_id, bool):
            field = schema.find(field_id)
            if field is None:
                raise MalformedExpression(f"no field {field_id} in the schema")
            return _bound_leaf(_OPS[name], field, schema.name_of(field_id), rest)
        case _:
            raise MalformedExpression(f"{_shown(raw)} is not a bound filter")


def _bound_leaf(op: Op, field: NestedField, name: str, rest: list[Json]) -> BoundExpression:
    type_ = field.type
    if isinstance(type_, StructType | ListType | MapType | VariantType):
        if op not in (Op.IS_NULL, Op.NOT_NULL) or rest:
            raise MalformedExpression(f"{op} on {name!r}, which is not primitive")
        return BoundNullTest(field.field_id, name, type_, negated=op is Op.NOT_NULL)
    if len(rest) != (0 if op in UNARY else 1):
        raise MalformedExpression(f"{op} on {name!r} with {len(rest)} literals")
    if op in UNARY:
        return BoundPredicate(op, field.field_id, name, type_)
    raws = rest[0] if op in SETS else rest
    if not isinstance(raws, list) or isinstance(type_, UnknownType) or not raws:
        raise MalformedExpression(f"{op} on {name!r} without literals")
    literals: list[Value] = []
    for item in raws:
        try:
            value = values.from_json(_literal_type(op, type_), item)
        except ValueError as exc:
            raise MalformedExpression(f"{op} on {name!r}: {exc}") from exc
        if value is None or isinstance(value, dict | list) or value != value:
            raise MalformedExpression(f"{op} on {name!r} with {_shown(item)}")
        literals.append(value)
    if op in SETS:
        literals = sorted(set(literals))  # the order is what evaluation relies on
    return BoundPredicate(op, field.field_id, name, type_, tuple(literals))
