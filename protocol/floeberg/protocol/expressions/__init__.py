"""Filters: how they are written, bound to a schema, projected onto partitions and evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from floeberg.protocol.errors import BadFilter
from floeberg.protocol.expressions.json_form import expression_from_json, parse_json_text
from floeberg.protocol.expressions.model import (
    FALSE,
    TRUE,
    And,
    Constant,
    Expression,
    Not,
    Or,
    Predicate,
)
from floeberg.protocol.expressions.text import parse_filter

__all__ = ["FALSE", "TRUE", "Expression", "Filter", "as_expression"]

Filter: TypeAlias = str | Sequence[Any] | Expression | None
"""What callers may give as a filter: text, the JSON form, or an `Expression`; None is every row."""


def as_expression(filter: Filter) -> Expression:
    """Return the filter that a caller gave; text that starts with `[` is the JSON form as text.

    Raises `BadFilter` for what is none of them. Columns and literals are looked at later, in
    binding.

    >>> as_expression("id = 7") == as_expression(["=", "id", 7]) == as_expression('["=", "id", 7]')
    True
    """
    match filter:
        case None:
            return TRUE
        case Constant() | Predicate() | And() | Or() | Not():
            return filter
        case str():
            is_json = filter.lstrip().startswith("[")
            return parse_json_text(filter) if is_json else parse_filter(filter)
        case list() | tuple():
            return expression_from_json(filter)
        case _:
            raise BadFilter(
                f"a filter is text, a list or an expression, and not {type(filter).__name__}"
            )
