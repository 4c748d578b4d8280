"""What PyIceberg calls a filter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyiceberg import expressions as e

_PREDICATES: dict[str, Callable[..., Any]] = {
    "=": e.EqualTo,
    "!=": e.NotEqualTo,
    "<": e.LessThan,
    "<=": e.LessThanOrEqual,
    ">": e.GreaterThan,
    ">=": e.GreaterThanOrEqual,
    "in": e.In,
    "not-in": e.NotIn,
    "is-null": e.IsNull,
    "not-null": e.NotNull,
    "is-nan": e.IsNaN,
    "not-nan": e.NotNaN,
    "starts-with": e.StartsWith,
    "not-starts-with": e.NotStartsWith,
}


def pyiceberg_expression(filter_: Sequence[Any]) -> Any:
    """Return a filter in floeberg's JSON form as an expression of PyIceberg's."""
    operation, *arguments = filter_
    match operation:
        case "and":
            return e.And(*map(pyiceberg_expression, arguments))
        case "or":
            return e.Or(*map(pyiceberg_expression, arguments))
        case "not":
            return e.Not(pyiceberg_expression(arguments[0]))
        case _:
            return _PREDICATES[operation](*arguments)
