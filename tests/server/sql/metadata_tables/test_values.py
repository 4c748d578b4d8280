from __future__ import annotations

from decimal import Decimal
from typing import Any

import duckdb
import pytest

from floeberg.protocol.arrow import arrow_type
from floeberg.protocol.errors import CorruptManifest
from floeberg.protocol.files import DataFile, FileFormat, ManifestFile, Metrics
from floeberg.protocol.manifests import Segment
from floeberg.protocol.manifests.packing import pack_entries
from floeberg.protocol.manifests.reading import EntryStatus, ManifestEntry
from floeberg.protocol.manifests.segment import LOWER_BOUNDS
from floeberg.protocol.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntType,
    LongType,
    StringType,
    TimestampType,
    TimeType,
    Type,
    UuidType,
    Value,
)
from floeberg.protocol.values import to_bytes
from floeberg.server.sql.metadata_tables.values import array_of, bounds
from tests.support.all_types import write_all_types
from tests.support.lake import TableWriter, required, schema
from tests.support.metadata_tables import told
from tests.support.scans import scan_of

PAIRS: list[tuple[Type, Value, Value]] = [
    (BooleanType(), False, True),
    (IntType(), -5, 2**31 - 1),
    (LongType(), -(2**63), 7),
    (FloatType(), -0.5, float("inf")),
    (DoubleType(), -0.25, 1e300),
    (DecimalType(9, 2), Decimal("-0.05"), Decimal("1234567.89")),
    (DateType(), -1, 20_000),
    (TimeType(), 0, 86_399_999_999),
    (TimestampType(), -1, 1_510_871_468_123_456),
    (TimestampType(zoned=True, nanos=True), -1, 1_510_871_468_123_456_789),
    (StringType(), "", "ünï"),
    (UuidType(), bytes(16), bytes(range(16))),
    (FixedType(3), b"abc", b"\x00\x00\xff"),
    (BinaryType(), b"", b"\xff"),
]


def segment_of(*stored: bytes | None) -> Segment:
    """Return a segment with a file for each bound of column 1, and none for None."""
    entries = [
        ManifestEntry(
            EntryStatus.ADDED,
            1,
            DataFile(
                f"f{number}",
                FileFormat.PARQUET,
                1,
                1,
                0,
                metrics=Metrics(lower_bounds={} if raw is None else {1: raw}),
            ),
        )
        for number, raw in enumerate(stored)
    ]
    return pack_entries(entries, ManifestFile("m", 1, 0))


def read(type_: Type, *stored: bytes | None, rows: slice | None = None) -> Any:
    segment = segment_of(*stored)
    rows = rows or slice(0, len(segment))
    found = bounds(segment.bounds(LOWER_BOUNDS, 1), type_, rows, len(segment))
    found.validate(full=True)
    assert found.type == arrow_type(type_)
    return found


@pytest.mark.parametrize(("type_", "low", "high"), PAIRS, ids=lambda x: str(x))
def test_bounds_of_every_type_are_its_values(type_, low, high):
    raw = [to_bytes(type_, low), None, to_bytes(type_, high), to_bytes(type_, low)]
    expected = array_of([low, None, high, low], type_)

    assert read(type_, *raw).equals(expected)
    assert read(type_, *raw, rows=slice(1, 3)).equals(expected.slice(1, 2))
    assert read(type_, None, None).null_count == 2


@pytest.mark.parametrize(
    ("type_", "older", "low"),
    [
        (LongType(), IntType(), 4),
        (DoubleType(), FloatType(), 0.5),
        (TimestampType(), DateType(), 1),
    ],
)
def test_bounds_of_a_type_that_the_column_had_are_read_as_that(type_, older, low):
    raw = to_bytes(older, low)
    promoted = low * 86_400_000_000 if isinstance(older, DateType) else low

    assert read(type_, raw, raw).equals(array_of([promoted, promoted], type_))
    assert read(type_, raw, to_bytes(type_, low)).equals(array_of([promoted, low], type_))


@pytest.mark.parametrize("type_", [t for t, _, _ in PAIRS if not isinstance(t, BinaryType)])
def test_bounds_that_are_none_of_the_type_are_null(type_):
    assert read(type_, b"\xff" * 65).to_pylist() == [None]


def test_text_that_is_none_hides_no_other():
    assert read(StringType(), b"a", b"\xff", b"bc").to_pylist() == ["a", None, "bc"]


def test_files_of_every_type_can_be_told_to_an_engine(tmp_path):
    metadata = scan_of(write_all_types(tmp_path / "t")).metadata
    files = told("files", metadata)

    with duckdb.connect() as connection:
        connection.register("files", files)
        found = connection.sql(
            'SELECT readable_metrics."struct.b.day".lower_bound AS day,'
            ' readable_metrics."uuid".lower_bound AS id, lower_bounds[4] IS NULL FROM files'
        ).fetchall()
    assert len(found) == files.num_rows
    metrics = files.schema.field("readable_metrics").type
    names = {metrics.field(i).name for i in range(metrics.num_fields)}
    assert {"int", "struct.a", "list.element", "map.key", "structs.element.x"} <= names
    assert not {"unknown", "struct", "list", "map"} & names


def test_a_partition_value_of_another_type_names_its_manifest(tmp_path):
    table = TableWriter.create(
        tmp_path / "t", schema({"id": required("long")}), [("id", "identity")]
    )
    table.append([{"id": 2**40}])

    def narrow(metadata: Any) -> None:
        metadata["schemas"][0]["fields"][0]["type"] = "int"

    table.edit(narrow)
    metadata = scan_of(table).metadata
    for kind in ("files", "partitions"):
        with pytest.raises(CorruptManifest, match=r"manifest file:.*\.avro"):
            told(kind, metadata)
