"""floeberg in this process: `open_table(…).scan()`, its batches folded as they come."""

from __future__ import annotations

import os

from pyiceberg.table import StaticTable

from floeberg.embedded import ScanOptions, Table, open_table
from tests.bench.taxi.answers import Answer, folded
from tests.bench.taxi.sides.serving import Question, serve


class InProcessSide:
    def __init__(self) -> None:
        self._tables: dict[str, Table] = {}
        self._options = ScanOptions(num_workers=os.cpu_count() or 1)

    def answer(self, question: Question) -> Answer:
        query = question.asked
        scan = self._table(question).scan()
        filter_ = query.filter_text()
        if filter_ is not None:
            scan = scan.filter(filter_)
        if query.selected is not None:
            scan = scan.select(query.selected)
        with scan.to_batch_reader(self._options) as reader:
            return folded(query, reader)

    def _table(self, question: Question) -> Table:
        found = self._tables.get(question.metadata_file)
        if found is None:
            properties = dict(question.properties)
            found = open_table(StaticTable.from_metadata(question.metadata_file, properties))
            self._tables[question.metadata_file] = found
        return found


if __name__ == "__main__":
    serve(InProcessSide())
