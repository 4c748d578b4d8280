"""The questions, each as conditions that all hold, columns to read, and what is made of the rows.

Every contender is told the same, in its own words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Literals: TypeAlias = int | float | str
Condition: TypeAlias = tuple[str, Literal["=", "<", ">", ">="], Literals]
"""A column, an operation, and a literal; a time is its ISO text."""

TIMES = frozenset({"picked_up", "dropped_off"})


@dataclass(frozen=True)
class Query:
    """One question.

    - `sums`: the columns of which the sum is wanted, of all rows or by `by`; none: their number
    - `rows`: the rows themselves are wanted, all columns of `columns`, or of the table where that
      is empty; `sums` then tells whether they were the right ones
    """

    title: str
    conditions: tuple[Condition, ...] = ()
    sums: tuple[str, ...] = ()
    by: str | None = None
    rows: bool = False
    columns: tuple[str, ...] = field(default=())

    @property
    def selected(self) -> tuple[str, ...] | None:
        """The columns of the rows that the answer is made of; None: all."""
        if self.rows:
            return self.columns or None
        return (*self.sums, *((self.by,) if self.by else ()))

    def filter_text(self) -> str | None:
        """Return the conditions as floeberg and PyIceberg read them."""
        return " AND ".join(f"{c} {op} {_literal(v)}" for c, op, v in self.conditions) or None

    def sql(self, table: str) -> str:
        """Return the question as SQL."""
        filter_ = self._sql_filter()
        if self.rows:
            return f"SELECT {', '.join(self.columns) or '*'} FROM {table}{filter_}"
        wanted = [f"SUM({c}) AS {c}" for c in self.sums] or ["COUNT(*) AS n"]
        if self.by:
            return f"SELECT {self.by}, {wanted[0]} FROM {table}{filter_} GROUP BY {self.by}"
        return f"SELECT {', '.join(wanted)} FROM {table}{filter_}"

    def _sql_filter(self) -> str:
        parts = (
            f"{c} {op} {'TIMESTAMP ' if c in TIMES else ''}{_literal(v)}"
            for c, op, v in self.conditions
        )
        joined = " AND ".join(parts)
        return f" WHERE {joined}" if joined else ""


def _literal(value: Literals) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _picked_up(start: str, end: str) -> tuple[Condition, ...]:
    return (("picked_up", ">=", f"{start}T00:00:00"), ("picked_up", "<", f"{end}T00:00:00"))


TAXI: Mapping[str, Query] = {
    "Q1": Query("count where trip_distance > 0", (("trip_distance", ">", 0.0),)),
    "Q2": Query("sum of a quarter", _picked_up("2023-04-01", "2023-07-01"), sums=("total_amount",)),
    "Q3": Query("sum of one payment type", (("payment_type", "=", 2),), sums=("total_amount",)),
    "Q4": Query(
        "tip ratio over 10 miles by card",
        (("trip_distance", ">", 10.0), ("payment_type", "=", 1)),
        sums=("tip_amount", "fare_amount"),
    ),
    "Q5": Query("rows by pickup zone", by="pickup_zone"),
    "Q6": Query(
        "revenue by zone over 12 months",
        _picked_up("2024-01-01", "2025-01-01"),
        sums=("total_amount",),
        by="pickup_zone",
    ),
    "Q7": Query(
        "every column of one month",
        _picked_up("2024-03-01", "2024-04-01"),
        sums=("total_amount",),
        rows=True,
    ),
    "Q8": Query(
        "long cash trips from one zone",
        (("trip_distance", ">", 12.0), ("payment_type", "=", 2), ("pickup_zone", "=", 75)),
        sums=("total_amount",),
        rows=True,
        columns=("picked_up", "dropped_off", "trip_distance", "total_amount"),
    ),
}

WIDE: Mapping[str, Query] = {
    "W1": Query("every column", sums=("id",), rows=True),
    "W2": Query(
        "two texts of one kind",
        (("kind", "=", "kind 7"),),
        sums=("id",),
        rows=True,
        columns=("id", "text0", "text3"),
    ),
    "W3": Query("rows by kind", by="kind"),
}

QUERIES: Mapping[str, Query] = {**TAXI, **WIDE}
