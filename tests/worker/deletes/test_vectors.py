"""Deletion vectors: read back as written, and refused when a bit is wrong."""

from __future__ import annotations

import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from floeberg.process.storage import open_storage
from floeberg.protocol.errors import CorruptDeletes, MissingFile
from floeberg.protocol.files import Content, DeleteFile, FileFormat
from floeberg.worker.deletes.vectors import decode_vector, load_deletion_vector

MAGIC = bytes.fromhex("d1d33964")


def blob_of(positions: list[int]) -> bytes:
    content = MAGIC + BitMap64(positions).serialize()
    return len(content).to_bytes(4, "big") + content + zlib.crc32(content).to_bytes(4, "big")


def vector(path: Path, **changes: Any) -> DeleteFile:
    facts: dict[str, Any] = {
        "location": str(path),
        "content": Content.POSITION_DELETES,
        "format": FileFormat.PUFFIN,
        "record_count": 2,
        "size_bytes": 0,
        "spec_id": 0,
        "content_offset": 4,
        "content_size_bytes": len(blob_of([1, 2])),
    }
    return DeleteFile(**(facts | changes))


@given(st.sets(st.integers(0, 2**34) | st.integers(0, 100)))
def test_reads_back_what_was_written(positions: set[int]) -> None:
    decoded = decode_vector(blob_of(sorted(positions)), "v", verify_crc=True)

    assert decoded.tolist() == sorted(positions)


@given(st.integers(0, len(blob_of([1, 5, 900])) - 1))
def test_every_truncation_is_refused(length: int) -> None:
    with pytest.raises(CorruptDeletes):
        decode_vector(blob_of([1, 5, 900])[:length], "v", verify_crc=True)


@settings(max_examples=300)
@given(st.integers(0, 8 * len(blob_of([1, 5, 900])) - 1))
def test_every_flipped_bit_is_refused(bit: int) -> None:
    blob = bytearray(blob_of([1, 5, 900]))
    blob[bit // 8] ^= 1 << bit % 8

    with pytest.raises(CorruptDeletes):
        decode_vector(bytes(blob), "v", verify_crc=True)


def test_a_wrong_checksum_passes_when_it_is_not_to_be_checked() -> None:
    blob = blob_of([1])[:-1] + b"\x00"

    assert decode_vector(blob, "v", verify_crc=False).tolist() == [1]


@given(st.binary(max_size=60))
def test_garbage_after_the_magic_number_is_refused_or_harmless(garbage: bytes) -> None:
    content = MAGIC + garbage
    blob = len(content).to_bytes(4, "big") + content + bytes(4)

    with suppress(CorruptDeletes):
        decode_vector(blob, "v", verify_crc=False)


def test_reads_a_vector_from_its_place_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "d.puffin"
    path.write_bytes(b"PFA1" + blob_of([1, 2]) + b"footer")

    loaded = load_deletion_vector(open_storage(), vector(path), verify_crc=True)

    assert loaded.positions.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"record_count": 3}, "deletes 2 rows; its manifest says 3"),
        ({"content_size_bytes": 1000}, "its manifest says 1000"),
        ({"content_offset": None}, "no content offset"),
    ],
)
def test_a_vector_that_contradicts_its_manifest_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = tmp_path / "d.puffin"
    path.write_bytes(b"PFA1" + blob_of([1, 2]))

    with pytest.raises(CorruptDeletes, match=message):
        load_deletion_vector(open_storage(), vector(path, **changes), verify_crc=True)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match=r"deletion vector file .*gone\.puffin"):
        load_deletion_vector(open_storage(), vector(tmp_path / "gone.puffin"), verify_crc=True)
