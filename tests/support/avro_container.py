"""Avro object containers put together by hand: any codec, any header, any number of blocks."""

from __future__ import annotations

import bz2
import json
import lzma
import zlib
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

import fastavro
import pyarrow as pa

SYNC = bytes(range(16))


def container(
    schema: Any,
    records: Sequence[Mapping[str, Any]],
    *,
    codec: str = "null",
    metadata: Mapping[str, str] | None = None,
    records_per_block: int = 1000,
) -> bytes:
    """Return a container of `records`. The header holds `schema` as given, ids and all."""
    header = {"avro.schema": json.dumps(schema), "avro.codec": codec, **(metadata or {})}
    parsed = fastavro.parse_schema(schema)
    out = [b"Obj\x01", long(len(header))]
    for name, value in header.items():
        out += [prefixed(name.encode()), prefixed(value.encode())]
    out += [long(0), SYNC]
    for start in range(0, len(records), records_per_block):
        block = records[start : start + records_per_block]
        body = BytesIO()
        for record in block:
            fastavro.schemaless_writer(body, parsed, record)
        out += [long(len(block)), prefixed(compress(codec, body.getvalue())), SYNC]
    return b"".join(out)


def long(value: int) -> bytes:
    """Return Avro's zig-zag coding of an integer that is not negative."""
    value <<= 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def prefixed(data: bytes) -> bytes:
    return long(len(data)) + data


def compress(codec: str, data: bytes) -> bytes:
    match codec:
        case "deflate":
            deflater = zlib.compressobj(wbits=-15)
            return deflater.compress(data) + deflater.flush()
        case "snappy":
            packed = pa.compress(data, codec="snappy", asbytes=True)
            return bytes(packed) + zlib.crc32(data).to_bytes(4, "big")
        case "zstandard":
            # a stream states no content size
            sink = pa.BufferOutputStream()
            with pa.CompressedOutputStream(sink, "zstd") as stream:
                stream.write(data)
            return sink.getvalue().to_pybytes()
        case "bzip2":
            return bz2.compress(data)
        case "xz":
            return lzma.compress(data)
        case _:
            return data
