"""PyIceberg: `scan(…)` of a table that is loaded once, its batches folded as they come."""

from __future__ import annotations

from pyiceberg.expressions import AlwaysTrue
from pyiceberg.table import StaticTable

from tests.bench.taxi.answers import Answer, folded
from tests.bench.taxi.sides.serving import Question, Refuses, serve


class PyIcebergSide:
    def __init__(self) -> None:
        self._tables: dict[str, StaticTable] = {}

    def answer(self, question: Question) -> Answer:
        query = question.asked
        selected = ("*",) if query.selected is None else query.selected
        # `count()` takes a multiple of the time
        selected = selected or tuple(column for column, _, _ in query.conditions)
        scan = self._table(question).scan(query.filter_text() or AlwaysTrue(), selected)
        try:
            # its reader of batches reads one file after the other
            return folded(query, scan.to_arrow().to_batches())
        except ValueError as refusal:
            raise Refuses(str(refusal)) from refusal

    def _table(self, question: Question) -> StaticTable:
        found = self._tables.get(question.metadata_file)
        if found is None:
            found = StaticTable.from_metadata(question.metadata_file, dict(question.properties))
            self._tables[question.metadata_file] = found
        return found


if __name__ == "__main__":
    serve(PyIcebergSide())
