"""What is the same in two answers, and what is not."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from tests.sql.fuzz.questions import Question

Row = tuple[Any, ...]

_GIVEN = re.compile(r"[\w ]+")
"""Names that are given. Those of expressions are text, in which an engine spells them its way."""


@dataclass(frozen=True)
class Answer:
    names: list[str]
    types: list[str]
    rows: list[Row]


def answer_of(relation: duckdb.DuckDBPyRelation) -> Answer:
    """Raises duckdb.Error where the rows can't be computed."""
    return Answer(relation.columns, list(map(str, relation.types)), relation.fetchall())


def arrow_answer(engine: duckdb.DuckDBPyConnection, table: pa.Table) -> Answer:
    """Return what a client got, in Python's values as DuckDB makes them."""
    names = table.column_names
    # an engine has no two columns of one name
    relation = engine.from_arrow(table.rename_columns([f"c{at}" for at in range(len(names))]))
    return Answer(names, list(map(str, relation.types)), relation.fetchall())


def difference(asked: Question, found: Answer, expected: Answer) -> str | None:
    """Return what is wrong with an answer, or None."""
    for mine, its in zip(found.names, expected.names, strict=True):
        if _GIVEN.fullmatch(its) and mine != its:
            return f"columns {found.names}, not {expected.names}"
    types = list(zip(map(_type, found.types), map(_type, expected.types), strict=True))
    if any(mine != its for mine, its in types):
        return f"types {found.types}, not {expected.types}"
    if asked.limit is not None:
        return _some(asked.limit, found.rows, expected.rows)
    if asked.has_order and not (
        len(found.rows) == len(expected.rows) and all(map(near, found.rows, expected.rows))
    ):
        return f"in order {found.rows}, not {expected.rows}"
    more, fewer = _unlike(found.rows, expected.rows)
    if more or fewer:
        return f"{len(more)} rows too many, {len(fewer)} too few: {more[:5]}, not {fewer[:5]}"
    return None


def _type(name: str) -> str:
    # Arrow has no integers of 128 bits; a column that is only null, DuckDB's tables make INTEGER
    return name.replace("HUGEINT", "DECIMAL(38,0)").replace('"NULL"', "INTEGER")


def _some(limit: int, found: Sequence[Row], among: Sequence[Row]) -> str | None:
    if len(found) != min(limit, len(among)):
        return f"{len(found)} rows of {len(among)} under a limit of {limit}"
    more, _ = _unlike(found, among)
    return f"{len(more)} rows that are not there: {more[:5]}" if more else None


def _unlike(found: Sequence[Row], expected: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Return the rows that only one of two has."""
    mine, its = Counter(map(repr, found)), Counter(map(repr, expected))
    more = _those(found, mine - its)
    fewer = _those(expected, its - mine)
    for row in list(more):
        for other in fewer:
            if near(row, other):
                more.remove(row)
                fewer.remove(other)
                break
    return more, fewer


def _those(rows: Sequence[Row], wanted: Counter[str]) -> list[Row]:
    left = Counter(wanted)
    kept = []
    for row in rows:
        if left[repr(row)] > 0:
            left[repr(row)] -= 1
            kept.append(row)
    return kept


def near(one: object, other: object) -> bool:
    """Say whether two values are the same, but for how sums of floats are rounded."""
    match one, other:
        case float(), float():
            return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-9)
        case (tuple() | list(), tuple() | list()):
            return len(one) == len(other) and all(map(near, one, other))
        case dict(), dict():
            return near(list(one.items()), list(other.items()))
        case _:
            return one == other
