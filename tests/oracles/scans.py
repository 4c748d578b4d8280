"""A scan as every engine can be asked for it: a filter, columns, a snapshot.

A filter is floeberg's JSON form as tuples, with typed Python values for literals:
`("and", (">", "amount", Decimal("1.50")), ("is-null", "region"))`.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

Filter: TypeAlias = tuple[Any, ...]

METADATA_COLUMNS = frozenset(
    ("_file", "_pos", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number")
)
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Scan:
    """What to read of a table. Of `snapshot_id`, `ref` and `as_of_ms` at most one is given."""

    filter: Filter | None = None
    select: tuple[str, ...] | None = None
    snapshot_id: int | None = None
    ref: str | None = None
    as_of_ms: int | None = None

    def __str__(self) -> str:
        parts = [
            "*" if self.select is None else ", ".join(self.select) or "no column",
            "" if self.filter is None else f"where {self.filter!r}",
            "" if self.snapshot_id is None else f"at {self.snapshot_id}",
            "" if self.ref is None else f"of {self.ref}",
            "" if self.as_of_ms is None else f"as of {self.as_of_ms}",
        ]
        return " ".join(part for part in parts if part)


def where(*filters: Filter) -> list[Scan]:
    """Return a scan of every column for each filter."""
    return [Scan(filter=f) for f in filters]


def sweep(column: str, *literals: Any) -> list[Scan]:
    """Return a scan for every operator that a column of this type has.

    The first literal meets them all, the others those that show a bound or a partition mistaken.
    """
    first, *others = literals
    out: list[Filter] = [("is-null", column), ("not-null", column)]
    out += [("in", column, list(literals)), ("not-in", column, list(literals))]
    out += [(op, column, first) for op in COMPARISONS]
    out += [(op, column, literal) for op in ("=", "<=", ">") for literal in others]
    out += [("not", ("=", column, first)), ("not", ("<", column, first))]
    if isinstance(first, float):
        out += [("is-nan", column), ("not-nan", column)]
    if isinstance(first, str):
        out += [("starts-with", column, first[:2]), ("not-starts-with", column, first[:2])]
    return where(*out)


def filtered_columns(filter_: Filter | None) -> Iterator[str]:
    """Yield the names of the columns that a filter looks at."""
    if filter_ is None:
        return
    operation, *arguments = filter_
    if operation in ("and", "or", "not"):
        for argument in arguments:
            yield from filtered_columns(argument)
    else:
        yield arguments[0]


def operations(filter_: Filter | None) -> Iterator[str]:
    """Yield the operator of every test of a column."""
    if filter_ is None:
        return
    operation, *arguments = filter_
    if operation in ("and", "or", "not"):
        for argument in arguments:
            yield from operations(argument)
    else:
        yield operation


# --- floeberg's JSON ------------------------------------------------------------------------------


def to_json(filter_: Filter) -> list[Any]:
    """Return the filter as floeberg takes it."""
    operation, *arguments = filter_
    if operation in ("and", "or", "not"):
        return [operation, *map(to_json, arguments)]
    return [operation, *(_json_literal(a) for a in arguments)]


def _json_literal(value: Any) -> Any:
    match value:
        case list():
            return [_json_literal(v) for v in value]
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case Decimal() | uuid.UUID():
            return str(value)
        case bytes():
            return value.hex()
        case float() if value != value or value in (float("inf"), float("-inf")):
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
        case _:
            return value


# --- SQL ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dialect:
    """How one engine's SQL names a column, writes a literal and tests a prefix."""

    quote: str
    starts_with: str
    literal: Callable[[Any], str]

    def column(self, dotted: str) -> str:
        q = self.quote
        return ".".join(f"{q}{part.replace(q, q + q)}{q}" for part in dotted.split("."))

    def where(self, filter_: Filter) -> str:
        operation, *arguments = filter_
        match operation:
            case "and" | "or":
                return "(" + f" {operation} ".join(map(self.where, arguments)) + ")"
            case "not":
                return f"(not {self.where(arguments[0])})"
        column = self.column(arguments[0])
        match operation:
            case "is-null" | "not-null":
                return f"{column} is {'not ' if operation == 'not-null' else ''}null"
            case "is-nan":
                return f"isnan({column})"
            case "not-nan":
                # Spark's isnan of null is false
                return f"(not isnan({column}) and {column} is not null)"
            case "in" | "not-in":
                items = ", ".join(map(self.literal, arguments[1]))
                return f"{column} {'not ' if operation == 'not-in' else ''}in ({items})"
            case "starts-with":
                return f"{self.starts_with}({column}, {self.literal(arguments[1])})"
            case "not-starts-with":
                return f"(not {self.starts_with}({column}, {self.literal(arguments[1])}))"
            case _:
                return f"{column} {operation} {self.literal(arguments[1])}"


def _spark_literal(value: Any) -> str:
    match value:
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case dt.datetime():
            kind = "timestamp" if value.tzinfo else "timestamp_ntz"
            return f"{kind} '{value.isoformat(sep=' ')}'"
        case float():
            return f"cast('{value!r}' as double)"
        case uuid.UUID():
            return f"'{value}'"
        case _:
            return _literal(value)


def _duckdb_literal(value: Any) -> str:
    match value:
        case str():
            return "'" + value.replace("'", "''") + "'"
        case dt.datetime():
            kind = "timestamptz" if value.tzinfo else "timestamp"
            return f"{kind} '{value.isoformat(sep=' ')}'"
        case float():
            return f"cast('{value!r}' as double)"
        case uuid.UUID():
            return f"uuid '{value}'"
        case dt.time():
            return f"time '{value.isoformat()}'"
        case bytes():
            return "'" + "".join(f"\\x{b:02X}" for b in value) + "'::blob"
        case _:
            return _literal(value)


def _literal(value: Any) -> str:
    match value:
        case bool() | int():
            return str(value).lower()
        case Decimal():
            _, digits, exponent = value.as_tuple()
            scale = -int(exponent)
            return f"cast('{value}' as decimal({max(len(digits), scale)}, {scale}))"
        case dt.date():
            return f"date '{value.isoformat()}'"
        case bytes():
            return f"X'{value.hex()}'"
        case _:
            raise TypeError(f"no SQL literal for {value!r}")


SPARK = Dialect("`", "startswith", _spark_literal)
DUCKDB = Dialect('"', "starts_with", _duckdb_literal)
