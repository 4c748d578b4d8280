"""Statistics drop row groups that hold nothing, and none that holds something."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from floeberg.protocol.errors import CorruptDataFile
from floeberg.protocol.types import (
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    LongType,
    StringType,
    TimestampType,
    Type,
    UuidType,
)
from floeberg.worker.files.row_groups import read_row_groups
from floeberg.worker.projection.conversion import CannotConvert
from floeberg.worker.reading.pruning import bound_value
from tests.support.lake import Column, FileLayout, TableWriter, schema
from tests.support.lake import struct as struct_of
from tests.support.plain import multiset, plain_rows
from tests.support.reads import plan_of, read
from tests.support.reference import read_table


@pytest.mark.parametrize(
    ("physical", "stored", "type_", "expected"),
    [
        (5, pa.int32(), LongType(), 5),
        (-3, pa.date32(), DateType(), -3),
        (-3, pa.date32(), TimestampType(), -3 * 86_400_000_000),
        (-1, pa.timestamp("ns"), TimestampType(), -1),
        (7, pa.timestamp("ms", "UTC"), TimestampType(zoned=True), 7000),
        (-125, pa.decimal128(9, 2), DecimalType(12, 2), Decimal("-1.25")),
        (b"\xff\x83", pa.decimal128(30, 2), DecimalType(38, 2), Decimal("-1.25")),
        (1.5, pa.float32(), DoubleType(), 1.5),
        ("é".encode(), pa.string(), StringType(), "é"),
        (b"a", pa.dictionary(pa.int32(), pa.string()), StringType(), "a"),
        (bytes(16), pa.uuid(), UuidType(), bytes(16)),
        (b"ab", pa.binary(2), FixedType(2), b"ab"),
    ],
)
def test_bounds_come_in_the_tables_type(
    physical: Any, stored: pa.DataType, type_: Type, expected: Any
) -> None:
    assert bound_value(physical, stored, type_) == expected


@pytest.mark.parametrize(
    ("physical", "stored", "type_"),
    [(b"\xff", pa.string(), StringType()), (-1, pa.uint32(), LongType())],
)
def test_a_bound_without_a_value_is_none(physical: Any, stored: pa.DataType, type_: Type) -> None:
    with pytest.raises(CannotConvert):
        bound_value(physical, stored, type_)


COLUMNS = schema(
    {
        "i": "long",
        "s": "string",
        "d": "double",
        "p": "decimal(20,2)",
        "t": "timestamptz",
        "st": struct_of({"x": "int"}),
    }
)
GROUPS = 10


@pytest.fixture(scope="module")
def sorted_table(tmp_path_factory: pytest.TempPathFactory) -> TableWriter:
    """Ten row groups, each with one value of every column and, in `d`, one NaN or null more."""
    table = TableWriter.create(tmp_path_factory.mktemp("sorted") / "t", COLUMNS)
    rows = [
        {
            "i": group,
            "s": f"g{group}",
            "d": (math.nan if group % 2 else None) if second else float(group),
            "p": Decimal(group) - Decimal("4.50"),
            "t": dt.datetime(1969, 12, 31, 23, 59, 50 + group, tzinfo=dt.UTC),
            "st": {"x": group} if group else None,
        }
        for group in range(GROUPS)
        for second in (False, True)
    ]
    table.append(rows, layout=FileLayout(row_group_size=2, metrics="none"))
    return table


@pytest.mark.parametrize(
    ("filter_", "groups"),
    [
        (["=", "i", 3], {3}),
        ([">", "i", 7], {8, 9}),
        (["in", "i", [0, 9, 20]], {0, 9}),
        (["=", "s", "g4"], {4}),
        (["starts-with", "s", "g4"], {4}),
        (["<", "p", "-3.5"], {0}),
        (["<", "t", "1969-12-31T23:59:52+00:00"], {0, 1}),
        (["=", "st.x", 2], {2}),
        (["is-null", "st.x"], {0}),
        (["=", "d", 5.0], {5}),
        # NaN is not 5.0, and statistics do not tell of it
        (["!=", "d", 5.0], set(range(GROUPS))),
        (["not", ["<", "d", 5.0]], set(range(GROUPS))),
    ],
)
def test_reads_the_row_groups_that_may_match(
    sorted_table: TableWriter,
    filter_: Any,
    groups: set[int],
) -> None:
    found = read(plan_of(sorted_table, filter_))

    assert multiset(plain_rows(found)) == multiset(
        read_table(sorted_table.directory, filter=filter_)
    )
    assert set(groups_read(sorted_table, filter_)) == groups


def groups_read(table: TableWriter, filter_: Any) -> list[int]:
    """Return the row groups whose pages are read: the others are made unreadable."""
    [file] = table.files()
    path = table.local(file.location)
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - length : -8]
    found = []
    for group in read_row_groups(footer, len(content), 6):
        damaged = bytearray(content)
        for start, size in group.ranges(range(6)):
            damaged[start : start + size] = bytes(size)
        path.write_bytes(damaged)
        try:
            read(plan_of(table, filter_))
        except CorruptDataFile:
            found.append(group.index)
        finally:
            path.write_bytes(content)
    return found


def test_a_default_is_not_taken_for_a_null_column(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", schema({"i": "long"}), format_version=3)
    table.append([{"i": 1}])
    table.add_column("n", Column("long", initial_default=5, write_default=5))

    assert plain_rows(read(plan_of(table, ["=", "n", 5]))) == [{"i": 1, "n": 5}]
    assert read(plan_of(table, ["=", "n", 6])).num_rows == 0
