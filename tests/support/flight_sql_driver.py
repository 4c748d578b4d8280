"""The descriptors of Flight's and Flight SQL's messages that a stock driver was built with."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import adbc_driver_flightsql
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError


@cache
def driver_file(name: str) -> FileDescriptorProto:
    """Return a `.proto` file as the ADBC driver's library has it within: `FlightSql.proto` or
    `Flight.proto`."""
    library = Path(adbc_driver_flightsql._driver_path()).read_bytes()
    opening = b"\x0a" + bytes([len(name)]) + name.encode()
    at = library.find(opening)
    while at >= 0:
        found = _parse(library, at)
        if found is not None and found.message_type:
            return found
        at = library.find(opening, at + 1)
    raise LookupError(f"the driver holds no {name}")


def _parse(library: bytes, first: int) -> FileDescriptorProto | None:
    """Return the file whose serialized form begins at `first`; its last field is the syntax."""
    at = first
    while at < len(library):
        tag, at = _varint(library, at)
        size, at = _varint(library, at)
        at += size
        if tag >> 3 == FileDescriptorProto.SYNTAX_FIELD_NUMBER:
            break
        if tag & 7 != 2 or size > 1 << 16:
            return None
    try:
        return FileDescriptorProto.FromString(library[first:at])
    except DecodeError:
        return None


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(raw):
        byte = raw[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
    return number, at
