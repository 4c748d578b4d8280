"""A scan in the words of Iceberg's Java API."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable
from typing import Any

from tests.oracles.scans import Filter, Scan

_NAMES = {
    "=": "equal",
    "!=": "notEqual",
    "<": "lessThan",
    "<=": "lessThanOrEqual",
    ">": "greaterThan",
    ">=": "greaterThanOrEqual",
    "in": "in",
    "not-in": "notIn",
    "is-null": "isNull",
    "not-null": "notNull",
    "is-nan": "isNaN",
    "not-nan": "notNaN",
    "starts-with": "startsWith",
    "not-starts-with": "notStartsWith",
    "and": "and",
    "or": "or",
    "not": "not",
    "true": "alwaysTrue",
    "false": "alwaysFalse",
}


class JavaScans:
    """Makes objects of the JVM, through py4j."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm

    def of_snapshot(self, table: Any, scan: Scan) -> Any:
        """Return a `TableScan` of what the scan says to read, without its filter and columns."""
        planned = table.newScan()
        if scan.snapshot_id is not None:
            return planned.useSnapshot(scan.snapshot_id)
        if scan.as_of_ms is not None:
            return planned.asOfTime(scan.as_of_ms)
        return planned if scan.ref is None else planned.useRef(scan.ref)

    def expression(self, filter_: Filter) -> Any:
        operation, *arguments = filter_
        make = getattr(self._jvm.org.apache.iceberg.expressions.Expressions, _NAMES[operation])
        if operation in ("and", "or"):
            first, *others = map(self.expression, arguments)
            for other in others:
                first = make(first, other)
            return first
        if operation == "not":
            return make(self.expression(arguments[0]))
        return make(*(self._literal(a) for a in arguments))

    def list_of(self, values: Iterable[Any]) -> Any:
        out = self._jvm.java.util.ArrayList()
        for value in values:
            out.add(value)
        return out

    def _literal(self, value: Any) -> Any:
        match value:
            case list():
                return self.list_of(self._literal(v) for v in value)
            case dt.datetime() | dt.date() | dt.time():
                return value.isoformat()
            case uuid.UUID():
                return str(value)
            case bytes():
                return self._jvm.java.nio.ByteBuffer.wrap(value)
            case _:
                return value
