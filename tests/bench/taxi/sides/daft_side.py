"""Daft: `read_iceberg(…)` of a PyIceberg table, and an aggregation by its engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import daft
from pyiceberg.table import StaticTable

from tests.bench.taxi.answers import Answer, aggregated
from tests.bench.taxi.queries import TIMES
from tests.bench.taxi.sides.serving import Question, Refuses, serve

_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": lambda column, value: column == value,
    "<": lambda column, value: column < value,
    ">": lambda column, value: column > value,
    ">=": lambda column, value: column >= value,
}


class DaftSide:
    def __init__(self) -> None:
        self._tables: dict[str, StaticTable] = {}

    def answer(self, question: Question) -> Answer:
        query = question.asked
        try:
            rows = daft.read_iceberg(self._table(question))
            for column, operation, literal in query.conditions:
                value = datetime.fromisoformat(str(literal)) if column in TIMES else literal
                rows = rows.where(_COMPARISONS[operation](daft.col(column), value))
            sums = [daft.col(c).sum() for c in query.sums]
            if query.rows:
                found = rows.select(*query.columns) if query.columns else rows
            elif query.by is not None:
                wanted = sums or [daft.col(query.by).count("all").alias("n")]
                found = rows.groupby(query.by).agg(*wanted)
            elif sums:
                found = rows.agg(*sums)
            else:
                return {"": [float(rows.count_rows())]}
            return aggregated(query, found.to_arrow())
        except (NotImplementedError, ValueError, daft.exceptions.DaftCoreException) as refusal:
            raise Refuses(str(refusal)) from refusal

    def _table(self, question: Question) -> StaticTable:
        found = self._tables.get(question.metadata_file)
        if found is None:
            found = StaticTable.from_metadata(question.metadata_file, dict(question.properties))
            self._tables[question.metadata_file] = found
        return found


if __name__ == "__main__":
    daft.set_runner_native()
    serve(DaftSide())
