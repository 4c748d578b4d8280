"""Read with PyIceberg, from the metadata file alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyiceberg import expressions as e
from pyiceberg.table import StaticTable

from tests.oracles.scans import Filter, Scan
from tests.oracles.workshop import Made

_PREDICATES: dict[str, Callable[..., Any]] = {
    "=": e.EqualTo,
    "!=": e.NotEqualTo,
    "<": e.LessThan,
    "<=": e.LessThanOrEqual,
    ">": e.GreaterThan,
    ">=": e.GreaterThanOrEqual,
    "in": e.In,
    "not-in": e.NotIn,
    "is-null": e.IsNull,
    "not-null": e.NotNull,
    "is-nan": e.IsNaN,
    "not-nan": e.NotNaN,
    "starts-with": e.StartsWith,
    "not-starts-with": e.NotStartsWith,
}


class PyIcebergReader:
    name = "pyiceberg"

    def read(self, made: Made, scan: Scan) -> pa.Table:
        table = StaticTable.from_metadata(str(made.metadata_file))
        options: dict[str, Any] = {}
        if scan.filter is not None:
            options["row_filter"] = _expression(scan.filter)
        if scan.select is not None:
            options["selected_fields"] = scan.select
        if scan.snapshot_id is not None:
            options["snapshot_id"] = scan.snapshot_id
        if scan.as_of_ms is not None:
            snapshot = table.snapshot_as_of_timestamp(scan.as_of_ms)
            assert snapshot is not None
            options["snapshot_id"] = snapshot.snapshot_id
        planned = table.scan(**options)
        if scan.ref is not None:
            planned = planned.use_ref(scan.ref)
        return planned.to_arrow()


def _expression(filter_: Filter) -> Any:
    operation, *arguments = filter_
    match operation:
        case "and":
            return e.And(*map(_expression, arguments))
        case "or":
            return e.Or(*map(_expression, arguments))
        case "not":
            return e.Not(_expression(arguments[0]))
        case _:
            return _PREDICATES[operation](*arguments)
