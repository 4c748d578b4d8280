"""A table with a column of every type that a file can hold, for what has to show values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.lake import TableWriter, list_of, map_of, required, schema, struct

COLUMNS: dict[str, Any] = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "decimal": "decimal(9, 2)",
    "large decimal": "decimal(38, 10)",
    "date": "date",
    "time": "time",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
    "timestamp_ns": "timestamp_ns",
    "timestamptz_ns": "timestamptz_ns",
    "string": "string",
    "uuid": "uuid",
    "fixed": "fixed[3]",
    "binary": "binary",
    "unknown": "unknown",
    "geometry": "geometry",
    "struct": struct({"a": "int", "b": struct({"day": "date"})}),
    "list": list_of("decimal(3, 1)"),
    "map": map_of("string", "timestamptz"),
    "structs": list_of(struct({"x": required("int"), "y": "binary"})),
}

POINT = bytes.fromhex("0101000000000000000000f03f0000000000000040")

VALUES: dict[str, Any] = {
    "boolean": True,
    "int": -1,
    "long": 2**63 - 1,
    "float": 0.10000000149011612,
    "double": -1e-300,
    "decimal": "-0.05",
    "large decimal": "1234567890123456789012345678.0000000001",
    "date": -800_000,  # far before the year 1
    "time": 81_068_123_456,
    "timestamp": 1_510_871_468_123_456,
    "timestamptz": -1,
    "timestamp_ns": 1_510_871_468_123_456_789,
    "timestamptz_ns": -1,
    "string": "a,\"b\"\n'ü'",
    "uuid": bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7"),
    "fixed": b"\x00\x01\xff",
    "binary": b"",
    "unknown": None,
    "geometry": POINT,
    "struct": {"a": 1, "b": {"day": 0}},
    "list": ["1.5", None],
    "map": [("k", 0)],
    "structs": [{"x": 1, "y": b"\xab"}, None],
}
"""One row as it is written, in Iceberg's units."""

JSON: dict[str, Any] = {
    "boolean": True,
    "int": -1,
    "long": 9223372036854775807,
    "float": 0.1,
    "double": -1e-300,
    "decimal": "-0.05",
    "large decimal": "1234567890123456789012345678.0000000001",
    "date": "-0221-09-04",
    "time": "22:31:08.123456",
    "timestamp": "2017-11-16T22:31:08.123456",
    "timestamptz": "1969-12-31T23:59:59.999999+00:00",
    "timestamp_ns": "2017-11-16T22:31:08.123456789",
    "timestamptz_ns": "1969-12-31T23:59:59.999999999+00:00",
    "string": "a,\"b\"\n'ü'",
    "uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
    "fixed": "0001ff",
    "binary": "",
    "unknown": None,
    "geometry": "POINT (1 2)",
    "struct": {"a": 1, "b": {"day": "1970-01-01"}},
    "list": ["1.5", None],
    "map": {"keys": ["k"], "values": ["1970-01-01T00:00:00.000000+00:00"]},
    "structs": [{"x": 1, "y": "ab"}, None],
}
"""The same row in Appendix D's JSON, written down by hand."""


def write_all_types(directory: Path) -> TableWriter:
    """Write a table of two rows: `VALUES`, and one of nulls."""
    table = TableWriter.create(directory, schema(COLUMNS), format_version=3)
    table.append([VALUES, {}])
    return table
