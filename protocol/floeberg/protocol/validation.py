"""Why pydantic refused a value, in words that a caller knows: texts, lists and whole numbers, and
never a "tuple" or an "Input"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_REASONS = {
    "string_type": "is not text",
    "bool_type": "is neither true nor false",
    "int_type": "is not a whole number",
    "int_parsing": "is not a whole number",
    "int_parsing_size": "is not a number of a sensible size",
    "int_from_float": "is not a whole number",
    "float_type": "is not a number",
    "float_parsing": "is not a number",
    "list_type": "is not a list",
    "tuple_type": "is not a list",
    "dict_type": "is not an object",
    "model_type": "is not an object",
    "model_attributes_type": "is not an object",
    "missing": "is missing",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
}


def plain_reason(error: Mapping[str, Any]) -> str:
    """Return what is wrong with a value, without the value: the caller knows whether it may be
    shown.

    `error` is one of `ValidationError.errors()`, with its context where the reason is a bound.

    >>> plain_reason({"type": "int_type", "msg": "Input should be a valid integer"})
    'is not a whole number'
    """
    if error["type"] == "string_too_short" and error.get("input") == "":
        return "is empty"
    known = _REASONS.get(error["type"])
    if known is not None:
        return known.format(**error.get("ctx", {}))
    # what our own validators say comes with a prefix
    message: str = error["msg"]
    return message.removeprefix("Value error, ").replace("Input should be", "must be", 1)
