"""Whether a row passes a filter, worked out a row at a time: SQL's three-valued logic over the JSON
form.

A comparison with null is unknown (None), and so is its negation. NaN is IEEE's: not less than,
equal to or greater than anything, and `!=` to everything. A row is returned when its filter is
true.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal

from tests.support.plain import Json, Plain, Row, decimal_scale, from_json

_COMPARISONS: dict[str, Callable[[Plain, Plain], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def truth(filter_: Json, row: Row, schema: Json, case_sensitive: bool = True) -> bool | None:
    """Return true, false or None for unknown.

    `schema` is Iceberg's JSON, and says of which type a column and so a literal is.

    >>> schema = {"fields": [{"id": 1, "name": "a", "type": "int"}]}
    >>> [truth(["not", ["in", "a", [1, 2]]], {"a": a}, schema) for a in (1, 3, None)]
    [False, True, None]
    """
    operation: str = filter_[0]
    arguments: Sequence[Json] = filter_[1:]
    match operation:
        case "true" | "false":
            return operation == "true"
        case "and" | "or":
            parts = [truth(f, row, schema, case_sensitive) for f in arguments]
            decisive = operation == "or"
            if decisive in parts:
                return decisive
            return None if None in parts else not decisive
        case "not":
            inner = truth(arguments[0], row, schema, case_sensitive)
            return None if inner is None else not inner
    path, type_ = resolve(arguments[0], schema, case_sensitive)
    value = at(row, path)
    if operation in ("is-null", "not-null"):
        return (value is None) == (operation == "is-null")
    if value is None:
        return None
    match operation:
        case "is-nan" | "not-nan":
            is_nan: bool = value != value
            return is_nan == (operation == "is-nan")
        case "starts-with" | "not-starts-with":
            starts = value.startswith(_literal(type_, arguments[1]))
            return bool(starts) == (operation == "starts-with")
        case "in" | "not-in":
            found = any(value == _literal(type_, raw) for raw in arguments[1])
            return found == (operation == "in")
        case _:
            return _COMPARISONS[operation](value, _literal(type_, arguments[1]))


def _literal(type_: Json, raw: Json) -> Plain:
    """Return what a literal stands for; a decimal with more digits than the type has is exact."""
    return Decimal(str(raw)) if decimal_scale(type_) is not None else from_json(type_, raw)


def columns_of(filter_: Json) -> Iterator[str]:
    """Yield the names of the columns that a filter is about."""
    operation, *arguments = filter_
    if operation in ("and", "or", "not"):
        for inner in arguments:
            yield from columns_of(inner)
    elif operation not in ("true", "false"):
        yield arguments[0]


def resolve(name: str, schema: Json, case_sensitive: bool = True) -> tuple[list[str], Json]:
    """Return the path of names that a dotted name reaches, and the type there.

    A whole name wins over a path, so that `a.b` may be one column's. Lists have an `element`, maps
    `key` and `value`.
    """

    def same(a: str, b: str) -> bool:
        return a == b if case_sensitive else a.casefold() == b.casefold()

    def search(fields: Sequence[Json], rest: str) -> tuple[list[str], Json] | None:
        exact = [f for f in fields if f["name"] == rest]
        for f in exact or [f for f in fields if same(f["name"], rest)]:
            return [f["name"]], f["type"]
        for f in fields:
            head, dot, tail = (
                rest[: len(f["name"])],
                rest[len(f["name"]) :][:1],
                rest[len(f["name"]) + 1 :],
            )
            if dot == "." and same(f["name"], head) and isinstance(f["type"], Mapping):
                found = search(_below(f["type"]), tail)
                if found is not None:
                    return [f["name"], *found[0]], found[1]
        return None

    found = search(schema["fields"], name)
    if found is None:
        raise KeyError(f"no column {name!r}")
    return found


def _below(type_: Mapping[str, Json]) -> Sequence[Json]:
    if "fields" in type_:
        return list(type_["fields"])
    return [{"name": n, "type": type_[n]} for n in ("element", "key", "value") if n in type_]


def at(row: Plain, path: Sequence[str]) -> Plain:
    """Return the value at a path of names; below a null struct everything is null."""
    for name in path:
        if row is None:
            return None
        row = row[name]
    return row
