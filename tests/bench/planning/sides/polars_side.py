"""Polars: `scan_iceberg(…).filter(…)` up to the plan that it explains, through its own planner.

That opens no data file, and knows the files that are left of the filter.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import polars as pl

from tests.bench.planning.questions import Filter
from tests.bench.planning.sides.serving import Refuses, serve
from tests.bench.planning.tables import COLUMNS

_COMPARISONS: Mapping[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "=": pl.Expr.eq,
    "<": pl.Expr.lt,
    ">": pl.Expr.gt,
    ">=": pl.Expr.ge,
}
_SOURCES = re.compile(r"SCAN \[(?P<named>[^]]*?)(?:, \.\.\. (?P<others>\d+) other sources?)?\]")


class PolarsSide:
    def plan(self, metadata_file: str, filter_: Filter) -> int:
        scanned = pl.scan_iceberg(metadata_file)
        for operation, column, literal in filter_:
            test = _COMPARISONS[operation](pl.col(column), _literal(column, literal))
            scanned = scanned.filter(test)
        try:
            explained = scanned.explain()
        except NotImplementedError as refusal:
            raise Refuses(str(refusal)) from refusal
        found = _SOURCES.search(explained)
        assert found is not None, explained[:500]
        named = len(found["named"].split(", ")) if found["named"] else 0
        return named + int(found["others"] or 0)

    def forget(self) -> None:
        """It keeps the bytes of manifests, and decodes them anew for each plan."""

    def cpu_seconds(self) -> float:
        return time.process_time()

    def process_id(self) -> int:
        return os.getpid()

    def cached_bytes(self) -> int:
        return 0


def _literal(column: str, literal: Any) -> pl.Expr:
    match COLUMNS[column]:
        case "timestamptz":
            return pl.lit(datetime.fromisoformat(literal))
        case "decimal(12, 2)":
            return pl.lit(literal).cast(pl.Decimal(12, 2))
        case _:
            return pl.lit(literal)


if __name__ == "__main__":
    # without it, PyIceberg would plan where the plugin can't
    os.environ["POLARS_ICEBERG_PLANNER"] = "plugin"
    serve(PolarsSide())
