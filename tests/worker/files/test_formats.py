"""The three formats offer one thing: rows by chunks, at their places, for any share of the file."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from floeberg.process.storage import open_storage
from floeberg.protocol.errors import CorruptDataFile, CorruptDeletes, MissingFile, Unsupported
from floeberg.protocol.files import Content, DataFile, DeleteFile, FileFormat
from floeberg.protocol.name_mapping import NameMapping
from floeberg.worker.files.avro_types import read_schema
from floeberg.worker.files.opening import open_rows
from floeberg.worker.files.rows import Later, Share, StoredFile
from floeberg.worker.files.stored import walk
from tests.support.avro_container import container
from tests.support.decoded import tuples_of

ROWS = 1000
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS)),
        "s": pa.array([f"t{i % 10}" if i % 3 else None for i in range(ROWS)]),
        "l": pa.array([[i, None] if i % 2 else None for i in range(ROWS)], pa.list_(pa.int32())),
    }
)


def as_parquet() -> bytes:
    sink = io.BytesIO()
    fields = [
        pa.field(f.name, f.type, metadata={"PARQUET:field_id": str(i + 1)})
        for i, f in enumerate(TABLE.schema)
    ]
    pq.write_table(TABLE.cast(pa.schema(fields)), sink, row_group_size=130)
    return sink.getvalue()


def as_avro(codec: str = "deflate") -> bytes:
    fields = [
        {"name": "id", "type": "long", "field-id": 1},
        {"name": "s", "type": ["null", "string"], "field-id": 2},
        {
            "name": "l",
            "type": ["null", {"type": "array", "items": ["null", "int"], "element-id": 4}],
            "field-id": 3,
        },
    ]
    schema = {"type": "record", "name": "r", "fields": fields}
    return container(schema, TABLE.to_pylist(), codec=codec, records_per_block=40)


def as_orc() -> bytes:
    sink = io.BytesIO()
    orc.write_table(TABLE, sink, stripe_size=1024, batch_size=128)
    return sink.getvalue()


WRITERS: dict[FileFormat, Callable[[], bytes]] = {
    FileFormat.PARQUET: as_parquet,
    FileFormat.AVRO: as_avro,
    FileFormat.ORC: as_orc,
}
# pyarrow writes ORC without ids
MAPPING = NameMapping.parse(
    '[{"names": ["id"], "field-id": 1}, {"names": ["s"], "field-id": 2},'
    ' {"names": ["l"], "field-id": 3}]'
)
formats = pytest.mark.parametrize("format_", list(WRITERS))


def data_file(path: Path, format_: FileFormat, **changes: Any) -> DataFile:
    size = path.stat().st_size if path.exists() else 100
    facts = {"record_count": ROWS, "size_bytes": size, "spec_id": 0}
    return DataFile(str(path), format_, **(facts | changes))


def opened(
    directory: Path, format_: FileFormat, content: bytes | None = None, num_rows: int = ROWS
) -> StoredFile:
    path = directory / f"f.{format_}"
    path.write_bytes(WRITERS[format_]() if content is None else content)
    file = data_file(path, format_, record_count=num_rows)
    return open_rows(open_storage(), file, mapping=MAPPING)


def rows_of(file: StoredFile, leaves: Sequence[int], share: Share) -> list[tuple[int, Any]]:
    """Return each row with its position, and check what chunks promise."""
    found: list[tuple[int, Any]] = []
    chunks = list(file.chunks(frozenset(leaves), share))
    for chunk in chunks:
        assert len(chunk.rows.columns) == len(file.decoded(frozenset(leaves)))
        values = tuples_of(chunk.rows)
        found += zip(range(chunk.first_row, chunk.first_row + len(chunk.rows)), values, strict=True)
    assert [c.is_last for c in chunks] == [False] * (len(chunks) - 1) + [True] * bool(chunks)
    return found


@formats
def test_tells_its_columns(tmp_path: Path, format_: FileFormat) -> None:
    with opened(tmp_path, format_) as file:
        assert [c.field_id for c in file.columns] == [1, 2, 3]
        assert [(f.name, f.first_leaf) for f in walk(file.columns) if not f.children] == [
            ("id", 0),
            ("s", 1),
            ("element", 2),
        ]
        assert file.num_rows == ROWS


@formats
@pytest.mark.parametrize("leaves", [(), (0,), (1,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("from_row", [0, 1, 129, 130, 777, ROWS - 1, ROWS, ROWS + 5])
def test_reads_rows_at_their_places(
    tmp_path: Path, format_: FileFormat, leaves: tuple[int, ...], from_row: int
) -> None:
    names = [TABLE.schema.names[i] for i in leaves]
    expected = [tuple(row[n] for n in names) for row in TABLE.to_pylist()]

    with opened(tmp_path, format_) as file:
        found = rows_of(file, leaves, Share(from_row=from_row))

    assert found == list(enumerate(expected))[from_row:]


@formats
def test_shares_that_tile_a_file_hold_each_row_once(tmp_path: Path, format_: FileFormat) -> None:
    with opened(tmp_path, format_) as file:
        size = len(WRITERS[format_]())
        for step in (1000, 777, size // 2):
            shares = [Share(start, step) for start in range(0, size, step)]
            found = [row for share in shares for row in rows_of(file, (0,), share)]
            assert found == [(i, (i,)) for i in range(ROWS)]


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"])
def test_reads_every_codec_of_avro(tmp_path: Path, codec: str) -> None:
    with opened(tmp_path, FileFormat.AVRO, as_avro(codec)) as file:
        assert rows_of(file, (0,), Share()) == [(i, (i,)) for i in range(ROWS)]


@formats
@pytest.mark.parametrize(
    ("first", "later"), [((), (0,)), ((0,), (1, 2)), ((2,), (0,)), ((1,), (1,))]
)
@pytest.mark.parametrize("from_row", [0, 129, 777, ROWS])
@pytest.mark.parametrize("every", [1, 2, 5])
def test_rows_that_are_left_for_later_fit_the_others(
    tmp_path: Path,
    format_: FileFormat,
    first: tuple[int, ...],
    later: tuple[int, ...],
    from_row: int,
    every: int,
) -> None:
    rows = [tuple(row.values()) for row in TABLE.to_pylist()]
    seen = 0

    with opened(tmp_path, format_) as file:
        chunks = file.chunks(set(first), Share(from_row=from_row), None, Later(set(later)))
        for number, chunk in enumerate(chunks):
            seen += len(chunk.rows)
            if number % every:
                continue
            parts = list(chunk.later_rows())
            found = [row for part in parts for row in tuples_of(part)]
            here = rows[chunk.first_row : chunk.first_row + len(chunk.rows)]
            assert found == [tuple(row[leaf] for leaf in later) for row in here]
            assert tuples_of(chunk.rows) == [tuple(row[leaf] for leaf in first) for row in here]

    assert seen == ROWS - from_row


@formats
def test_a_cut_file_is_refused_by_name(tmp_path: Path, format_: FileFormat) -> None:
    content = WRITERS[format_]()

    for length in (0, 3, 20, len(content) // 2, len(content) - 1):
        with (
            pytest.raises(CorruptDataFile, match=rf"f\.{format_}"),
            opened(tmp_path, format_, content[:length]) as file,
        ):
            rows_of(file, (0, 1, 2), Share())


@formats
def test_a_missing_file_is_named_with_its_role(tmp_path: Path, format_: FileFormat) -> None:
    gone = data_file(tmp_path / "gone", format_)
    deletes = DeleteFile(str(tmp_path / "gone"), Content.EQUALITY_DELETES, format_, 1, 100, 0)

    with pytest.raises(MissingFile, match=r"data file .*gone"):
        open_rows(open_storage(), gone)
    with pytest.raises(MissingFile, match=r"delete file .*gone"):
        open_rows(open_storage(), deletes)


@formats
def test_a_wrong_size_in_the_manifest_does_no_harm(tmp_path: Path, format_: FileFormat) -> None:
    path = tmp_path / "f"
    path.write_bytes(WRITERS[format_]())

    for size in (path.stat().st_size + 9, path.stat().st_size - 9):
        with open_rows(open_storage(), data_file(path, format_, size_bytes=size)) as file:
            assert len(rows_of(file, (), Share())) == ROWS


def test_encrypted_files_are_unsupported(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(as_parquet()[:-4] + b"PARE")

    with pytest.raises(Unsupported, match="encrypted"):
        open_rows(open_storage(), data_file(path, FileFormat.PARQUET))
    with pytest.raises(Unsupported, match="key metadata"):
        open_rows(open_storage(), data_file(path, FileFormat.PARQUET, key_metadata=b"k"))


def test_times_that_pyarrow_cannot_read_from_orc_are_unsupported(tmp_path: Path) -> None:
    """Spark writes them to ORC without ado; the file is sound."""
    sink = io.BytesIO()
    orc.write_table(pa.table({"t": pa.array([-(10**16) * 6], pa.timestamp("us"))}), sink)

    with (
        opened(tmp_path, FileFormat.ORC, sink.getvalue(), num_rows=1) as file,
        pytest.raises(Unsupported, match="not read from ORC"),
    ):
        list(file.chunks({0}))


def test_a_puffin_file_holds_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"PFA1")

    with pytest.raises(CorruptDeletes, match="Puffin"):
        open_rows(open_storage(), data_file(path, FileFormat.PUFFIN), corrupt=CorruptDeletes)


def test_a_flipped_bit_in_a_page_is_found_by_its_checksum(tmp_path: Path) -> None:
    sink = io.BytesIO()
    pq.write_table(
        TABLE.select(["id"]),
        sink,
        write_page_checksum=True,
        compression="none",
        use_dictionary=False,
    )
    content = bytearray(sink.getvalue())
    content[4000] ^= 1
    path = tmp_path / "f"
    path.write_bytes(content)
    file = data_file(path, FileFormat.PARQUET)

    with pytest.raises(CorruptDataFile, match=r"/f "), open_rows(open_storage(), file) as rows:
        rows_of(rows, (0,), Share())
    with open_rows(open_storage(), file, verify_crc=False) as rows:
        assert len(rows_of(rows, (0,), Share())) == ROWS


# --- Avro's types ---------------------------------------------------------------------------------

LOGICAL: list[tuple[Any, Any, pa.DataType, Any]] = [
    ({"type": "int", "logicalType": "date"}, -5, pa.date32(), -5),
    ({"type": "int", "logicalType": "time-millis"}, 5, pa.time32("ms"), 5),
    ({"type": "long", "logicalType": "time-micros"}, 5, pa.time64("us"), 5),
    ({"type": "long", "logicalType": "timestamp-micros"}, -7, pa.timestamp("us"), -7),
    (
        {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
        2**60,
        pa.timestamp("us", "UTC"),
        2**60,
    ),
    ({"type": "long", "logicalType": "timestamp-nanos"}, -7, pa.timestamp("ns"), -7),
    ({"type": "long", "logicalType": "local-timestamp-millis"}, 7, pa.timestamp("ms"), 7),
    ({"type": "long", "logicalType": "what-is-this"}, 7, pa.int64(), 7),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        b"\xff",
        pa.decimal128(9, 2),
        Decimal("-0.01"),
    ),
    (
        {
            "type": "fixed",
            "name": "d",
            "size": 2,
            "logicalType": "decimal",
            "precision": 4,
            "scale": 1,
        },
        b"\x01\x00",
        pa.decimal128(4, 1),
        Decimal("25.6"),
    ),
    (
        {"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid"},
        bytes(16),
        pa.binary(16),
        bytes(16),
    ),
    (
        {"type": "string", "logicalType": "uuid"},
        "00000000-0000-0000-0000-000000000001",
        pa.binary(16),
        bytes(15) + b"\x01",
    ),
    ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "B", pa.string(), "B"),
    ({"type": "map", "values": "int"}, {"k": 1}, pa.map_(pa.string(), pa.int32()), [("k", 1)]),
    (
        {
            "type": "array",
            "logicalType": "map",
            "items": {
                "type": "record",
                "name": "kv",
                "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "string"}],
            },
        },
        [{"key": 1, "value": "a"}],
        pa.map_(pa.int32(), pa.string()),
        [(1, "a")],
    ),
]


@pytest.mark.parametrize(("type_", "value", "arrow", "expected"), LOGICAL)
def test_reads_avros_types(
    tmp_path: Path, type_: Any, value: Any, arrow: pa.DataType, expected: Any
) -> None:
    again = type_.get("name", json.loads(json.dumps(type_).replace('"kv"', '"kv2"')))
    fields = [
        {"name": "plain", "type": type_, "field-id": 1},
        {"name": "optional", "type": ["null", again]},
    ]
    schema = {"type": "record", "name": "r", "fields": fields}
    content = container(schema, [{"plain": value, "optional": None}])

    with opened(tmp_path, FileFormat.AVRO, content, num_rows=1) as file:
        [chunk] = file.chunks(frozenset(range(4)))
    column, optional = chunk.rows.columns

    assert column.type == arrow
    if pa.types.is_temporal(arrow):
        column = column.view(pa.int32() if arrow.bit_width == 32 else pa.int64())
    assert column.to_pylist() == [expected]
    assert optional.to_pylist() == [None]


@pytest.mark.parametrize(
    "type_",
    [
        ["int", "string"],
        "unheard-of",
        {"type": "array"},
        {"type": "record", "name": "x"},
        {"type": "array", "logicalType": "map", "items": "int"},
        {"type": "record", "name": "r", "fields": [{"name": "again", "type": "r"}]},
        7,
    ],
)
def test_an_avro_schema_that_no_table_has_is_refused(type_: Any) -> None:
    fields = [{"name": "x", "type": type_}]

    with pytest.raises(ValueError, match="schema"):
        read_schema({"type": "record", "name": "table", "fields": fields})


def test_an_avro_schema_is_a_record() -> None:
    with pytest.raises(ValueError, match="not a record"):
        read_schema("int")
