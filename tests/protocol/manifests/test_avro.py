from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.errors import CorruptManifest, FloebergError, Unsupported
from floeberg.protocol.manifests.avro import key, read_avro
from tests.support.avro_container import SYNC, compress, container, long, prefixed

CODECS = ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"]

SCHEMA = {
    "type": "record",
    "name": "thing",
    "fields": [
        {"name": "path", "type": "string", "field-id": 100},
        {"name": "size", "type": ["null", "long"], "field-id": 104},
    ],
}
RECORDS = [{"path": f"s3://b/{i:04}", "size": i} for i in range(50)]


def records(raw: bytes) -> list[dict[str, Any]]:
    return list(read_avro(raw, "manifest m.avro").records())


def schema_of(field_type: Any) -> dict[str, Any]:
    field = {"name": "x", "type": field_type, "field-id": 7}
    return {"type": "record", "name": "thing", "fields": [field]}


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_of_avro_is_read(codec):
    raw = container(SCHEMA, RECORDS, codec=codec, records_per_block=7)

    assert records(raw) == [{key(100): r["path"], key(104): r["size"]} for r in RECORDS]


def test_an_unknown_codec_is_named():
    with pytest.raises(Unsupported, match="brotli"):
        read_avro(container(SCHEMA, RECORDS, codec="brotli"), "manifest m.avro")


@pytest.mark.parametrize("codec", CODECS)
def test_a_file_cut_anywhere_but_between_blocks_is_refused(codec):
    raw = container(SCHEMA, RECORDS[:5], codec=codec)

    whole = container(SCHEMA, [], codec=codec)
    for size in range(len(raw)):
        if size == len(whole):
            continue
        with pytest.raises(CorruptManifest, match=r"manifest m\.avro"):
            records(raw[:size])


@pytest.mark.parametrize("codec", CODECS)
@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_a_flipped_bit_gives_records_or_a_named_error(codec, at, bit):
    raw = bytearray(container(SCHEMA, RECORDS, codec=codec))
    raw[at % len(raw)] ^= 1 << bit

    with contextlib.suppress(FloebergError):
        records(bytes(raw))


def test_a_wrong_checksum_is_noticed():
    raw = container(SCHEMA, RECORDS, codec="snappy").removesuffix(SYNC)

    with pytest.raises(CorruptManifest, match="checksum"):
        records(raw[:-1] + bytes([raw[-1] ^ 1]) + SYNC)


def test_a_block_that_holds_more_than_its_records_is_refused():
    raw = container(SCHEMA, [])
    record = prefixed(b"p") + b"\x00"

    with pytest.raises(CorruptManifest, match="more than its 1 records"):
        records(raw + long(1) + prefixed(record * 2) + SYNC)


def test_a_snappy_block_that_claims_to_be_huge_is_refused_before_it_is_inflated():
    raw = container(SCHEMA, [], codec="snappy")
    body = b"\xff\xff\xff\xff\x0f" + compress("snappy", b"x")

    with pytest.raises(CorruptManifest, match="impossible size"):
        records(raw + long(1) + prefixed(body) + SYNC)


def test_a_header_in_blocks_with_sizes_is_read():
    plain = container(SCHEMA, RECORDS)
    count, rest = plain[4:5], plain[5:]
    assert count == long(2)
    # a negative count is followed by the block's size in bytes
    raw = b"Obj\x01" + b"\x03" + long(999) + rest

    assert len(records(raw)) == len(RECORDS)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "empty"),
        (b"PAR1 and so on", "does not start"),
        (b"Obj\x01", "cut short"),
        (b"Obj\x01" + long(0) + SYNC, "avro.schema"),
        (container(SCHEMA, []).replace(b"record", b"rekord"), "type 'rekord' that is not defined"),
    ],
)
def test_what_is_no_container_is_refused(raw, reason):
    with pytest.raises(CorruptManifest, match=reason):
        records(raw)


EMPTY_RECORD = {"type": "record", "name": "e", "fields": []}


@pytest.mark.parametrize(
    "items",
    [
        "null",
        EMPTY_RECORD,
        {"type": "fixed", "name": "z", "size": 0},
        {"type": "record", "name": "o", "fields": [{"name": "e", "type": EMPTY_RECORD}]},
    ],
)
def test_an_array_that_could_be_endless_is_refused(items):
    raw = container(schema_of({"type": "array", "items": items}), [])
    endless = long(1 << 61)

    with pytest.raises(CorruptManifest, match="take no bytes"):
        records(raw + long(1) + prefixed(endless) + SYNC)


def test_fields_are_found_by_id_whatever_their_names():
    raw = container(SCHEMA, RECORDS[:1]).replace(b'"path"', b'"a-b."')

    assert records(raw) == [{key(100): "s3://b/0000", key(104): 0}]


def test_two_types_of_one_name_in_two_namespaces_stay_apart():
    def inner(namespace: str, type_: str) -> dict[str, Any]:
        fields = [{"name": "v", "type": type_, "field-id": 1}]
        return {"type": "record", "name": "t", "namespace": namespace, "fields": fields}

    schema = {
        "type": "record",
        "name": "outer",
        "fields": [
            {"name": "a", "type": inner("x", "int"), "field-id": 2},
            {"name": "b", "type": inner("y", "string"), "field-id": 3},
            {"name": "c", "type": "x.t", "field-id": 4},
            {"name": "d", "type": ["null", "y.t"], "field-id": 5},
        ],
    }
    record = {"a": {"v": 1}, "b": {"v": "one"}, "c": {"v": 2}, "d": {"v": "two"}}

    (found,) = records(container(schema, [record]))

    assert found == {
        key(2): {key(1): 1},
        key(3): {key(1): "one"},
        key(4): {key(1): 2},
        key(5): {key(1): "two"},
    }


@pytest.mark.parametrize("is_optional", [False, True])
@pytest.mark.parametrize("with_ids", [False, True])
def test_entries_of_a_map_are_known_by_their_place(is_optional, with_ids):
    ids = [{"field-id": 117}, {"field-id": 118}] if with_ids else [{}, {}]
    fields = [{"name": "k", "type": "int", **ids[0]}, {"name": "v", "type": "long", **ids[1]}]
    entry: Any = {"type": "record", "name": "e", "fields": fields}
    items = ["null", entry] if is_optional else entry
    schema = schema_of({"type": "array", "items": items, "logicalType": "map"})

    (found,) = records(container(schema, [{"x": [{"k": 3, "v": 40}]}]))

    assert found == {key(7): [{"key": 3, "value": 40}]}


def test_logical_types_come_as_iceberg_stores_them():
    schema = schema_of({"type": "int", "logicalType": "date"})

    assert records(container(schema, [{"x": 19723}])) == [{key(7): 19723}]
