"""PyIceberg: `scan(…).plan_files()` of a table that is loaded once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import pyiceberg.expressions as ex
from pyiceberg.table import StaticTable

from tests.bench.planning.questions import Filter
from tests.bench.planning.sides.serving import Refuses, serve

_PREDICATES: Mapping[str, Callable[[str, Any], ex.BooleanExpression]] = {
    "=": ex.EqualTo,
    "<": ex.LessThan,
    ">": ex.GreaterThan,
    ">=": ex.GreaterThanOrEqual,
}


class PyIcebergSide:
    def __init__(self) -> None:
        self._tables: dict[str, StaticTable] = {}

    def plan(self, metadata_file: str, filter_: Filter) -> int:
        table = self._tables.get(metadata_file)
        if table is None:
            table = self._tables[metadata_file] = StaticTable.from_metadata(metadata_file)
        expression: ex.BooleanExpression = ex.AlwaysTrue()
        for operation, column, literal in filter_:
            expression = ex.And(expression, _PREDICATES[operation](column, literal))
        try:
            return sum(1 for _ in table.scan(expression).plan_files())
        except ValueError as refusal:
            raise Refuses(str(refusal)) from refusal

    def forget(self) -> None:
        self._tables.clear()

    def cpu_seconds(self) -> float:
        return time.process_time()

    def process_id(self) -> int:
        return os.getpid()

    def cached_bytes(self) -> int:
        return 0


if __name__ == "__main__":
    serve(PyIcebergSide())
