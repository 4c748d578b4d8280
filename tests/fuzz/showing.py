"""A case as Python source, without what is as it is by default, to be pasted into a test."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

_WIDTH = 96


def source_of(value: Any, indent: int = 0) -> str:
    """Return an expression that makes `value` again, broken into lines where it is long.

    >>> from tests.fuzz.cases import Not, Test
    >>> source_of(Not(Test("=", 3, 1.5)))
    "Not(part=Test(op='=', field_id=3, literal=1.5))"
    """
    opening, parts, closing = _parts(value, indent + 4)
    flat = opening + ", ".join(parts) + closing
    if not parts or ("\n" not in flat and indent + len(flat) <= _WIDTH):
        if isinstance(value, tuple) and len(parts) == 1:
            return f"({parts[0]},)"
        return flat
    lines = "".join(f"\n{' ' * (indent + 4)}{part}," for part in parts)
    return f"{opening}{lines}\n{' ' * indent}{closing}"


def _parts(value: Any, indent: int) -> tuple[str, list[str], str]:
    match value:
        case float() if value != value or abs(value) == float("inf"):
            return f"float('{value}')", [], ""
        case tuple():
            return "(", [source_of(v, indent) for v in value], ")"
        case list():
            return "[", [source_of(v, indent) for v in value], "]"
        case Mapping():
            pairs = [f"{k!r}: {source_of(v, indent)}" for k, v in value.items()]
            return "{", pairs, "}"
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            parts = [f"{name}={source_of(v, indent)}" for name, v in _changed(value)]
            return f"{type(value).__name__}(", parts, ")"
        case _:
            return repr(value), [], ""


def _changed(value: Any) -> Iterator[tuple[str, Any]]:
    for field in dataclasses.fields(value):
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if default is dataclasses.MISSING or getattr(value, field.name) != default:
            yield field.name, getattr(value, field.name)
