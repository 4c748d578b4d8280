"""Polars: `scan_iceberg(…)` and an aggregation by its engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import polars as pl

from tests.bench.taxi.answers import Answer, aggregated
from tests.bench.taxi.queries import TIMES
from tests.bench.taxi.sides.serving import Question, Refuses, serve

_COMPARISONS: Mapping[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "=": pl.Expr.eq,
    "<": pl.Expr.lt,
    ">": pl.Expr.gt,
    ">=": pl.Expr.ge,
}


class PolarsSide:
    def answer(self, question: Question) -> Answer:
        query = question.asked
        rows = pl.scan_iceberg(question.metadata_file, storage_options=dict(question.properties))
        for column, operation, literal in query.conditions:
            value = datetime.fromisoformat(str(literal)) if column in TIMES else literal
            rows = rows.filter(_COMPARISONS[operation](pl.col(column), pl.lit(value)))
        wanted: list[Any] = [pl.col(c).sum() for c in query.sums] or [pl.len().alias("n")]
        if query.rows:
            found = rows.select(query.columns) if query.columns else rows
        elif query.by is not None:
            found = rows.group_by(query.by).agg(wanted)
        else:
            found = rows.select(wanted)
        try:
            return aggregated(query, found.collect(engine="streaming").to_arrow())
        except (NotImplementedError, ValueError, pl.exceptions.ComputeError) as refusal:
            raise Refuses(str(refusal)) from refusal


if __name__ == "__main__":
    serve(PolarsSide())
