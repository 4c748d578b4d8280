"""The codecs of Avro's object containers, each as fast as it is to be had.

Spec: the Avro specification, "Required Codecs" and "Optional Codecs".
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import cast

import deflate
import pyarrow as pa
from isal import isal_zlib

_MOST_LIKELY_BYTES = 1 << 30

# its type information takes the class for an instance
_ISAL_ERROR = cast(type[Exception], isal_zlib.error)


def _inflate_zstandard(data: bytes) -> bytes:
    # streamed, since a frame may leave its content size out
    with pa.input_stream(BytesIO(data), compression="zstd") as stream:
        return stream.read()


def _inflate_snappy(data: bytes) -> bytes:
    """Snappy's raw format, then the big-endian CRC-32 of what it inflates to."""
    body, checksum = data[:-4], data[-4:]
    size = shift = 0
    for byte in body[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > len(body) * 64:
        # Snappy's densest element is 3 bytes for 64: a larger size is damage, and would be
        # allocated
        raise ValueError("a Snappy block states an impossible size")
    out = bytes(pa.decompress(body, decompressed_size=size, codec="snappy", asbytes=True))
    if zlib.crc32(out).to_bytes(4, "big") != checksum:
        raise ValueError("the checksum of a Snappy block is wrong")
    return out


def _inflate_deflate(data: bytes) -> bytes:
    # in half the time of zlib's
    try:
        return isal_zlib.decompress(data, wbits=-15)
    except _ISAL_ERROR as exc:
        raise ValueError(f"a deflated block is damaged: {exc}") from exc


CODECS: Mapping[str, Callable[[bytes], bytes]] = {
    "null": lambda data: data,
    "deflate": _inflate_deflate,
    "snappy": _inflate_snappy,
    "zstandard": _inflate_zstandard,
    "bzip2": bz2.decompress,
    "xz": lzma.decompress,
}
"""How to inflate a block, by the name that the header gives the codec. Each raises on damage."""


class DeflatedBlocks:
    """Inflates the blocks of one file, as `CODECS` does, in four fifths of the time.

    It takes libdeflate, which has to know before how much a block can be at most. Most blocks of a
    file are as long as the one before; others are inflated without knowing.
    """

    def __init__(self) -> None:
        self._likely_bytes = 0

    def __call__(self, data: bytes) -> bytes | bytearray:
        inflated = self._inflated_as_likely(data) or _inflate_deflate(data)
        self._likely_bytes = min(len(inflated) + len(inflated) // 8, _MOST_LIKELY_BYTES)
        return inflated

    def _inflated_as_likely(self, data: bytes) -> bytearray | None:
        try:
            return deflate.deflate_decompress(data, self._likely_bytes)
        except deflate.DeflateError:  # it is longer, or damaged
            return None
