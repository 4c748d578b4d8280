"""Decode a manifest into a segment: one interface, a fast way, and the plain way behind it.

`decode_manifest` is what everybody uses. It walks a manifest where that is worth the while and
reads it plainly where it is not: for schemas that no walker is written for, for bytes that make a
walker stray (so that there is one place that says what is wrong with a damaged manifest), and while
too few entries of a schema were seen to pay for compiling. Whichever way, the segment is the same
to the byte.
"""

from __future__ import annotations

import threading
from typing import Protocol

from floeberg.protocol.errors import CorruptManifest
from floeberg.protocol.files import ManifestFile
from floeberg.protocol.manifests.avro import AvroFile, InOrder, in_turn, read_avro
from floeberg.protocol.manifests.named_schema import NotWalkable
from floeberg.protocol.manifests.packing import pack_entries
from floeberg.protocol.manifests.reading import (
    check_header,
    check_whole,
    read_deleted_entries,
    read_manifest,
)
from floeberg.protocol.manifests.segment import Segment

# Importing wasmtime and compiling take about 50 ms, as long as some 250 entries read plainly.
_ENTRIES_THAT_PAY = 256


class DecodeManifest(Protocol):
    def __call__(self, raw: bytes, manifest: ManifestFile) -> Segment:
        """Return the live entries of `manifest`, whose file is `raw`.

        Raises what `read_manifest` raises. May be called by several threads at a time.
        """
        ...


def decode_plainly(raw: bytes, manifest: ManifestFile) -> Segment:
    """The plain implementation: objects first, by fastavro."""
    return pack_entries(read_manifest(raw, manifest), manifest)


def decode_deleted(raw: bytes, manifest: ManifestFile) -> Segment:
    """Return the entries that `read_deleted_entries` gives, as a segment of these alone."""
    return pack_entries(read_deleted_entries(raw, manifest), manifest)


def decode_by_walking(raw: bytes, manifest: ManifestFile) -> Segment:
    """The fast implementation, whatever the manifest's size."""
    file = read_avro(raw, f"manifest {manifest.location}")
    return _walked(file, raw, manifest)


def decode_manifest(raw: bytes, manifest: ManifestFile, *, in_order: InOrder = in_turn) -> Segment:
    """The default: the fast implementation where it pays, and the plain one elsewhere.

    The fast one has its blocks inflated by `in_order`, see `AvroFile.blocks`.
    """
    file = read_avro(raw, f"manifest {manifest.location}")
    if _entries_seen.are_enough(file):
        return _walked(file, raw, manifest, in_order)
    return decode_plainly(raw, manifest)


def _walked(
    file: AvroFile, raw: bytes, manifest: ManifestFile, in_order: InOrder = in_turn
) -> Segment:
    # not before it is needed: importing wasmtime takes as long as planning a small table
    from floeberg.protocol.manifests.found import Strayed
    from floeberg.protocol.manifests.walked import pack_walk
    from floeberg.protocol.manifests.walking import walked

    check_header(file, manifest)
    try:
        with walked(file, in_order) as walk:
            segment = pack_walk(walk, file, manifest)
    except (Strayed, NotWalkable, CorruptManifest):
        # the plain decoder says what is wrong, if anything is, and says first what is wrong first
        return decode_plainly(raw, manifest)
    check_whole(raw, manifest, len(segment))
    return segment


class _EntriesSeen:
    """Counts the entries that were decoded of each schema."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_schema: dict[bytes, int] = {}

    def are_enough(self, file: AvroFile) -> bool:
        with self._lock:
            seen = self._by_schema.pop(file.schema_text, 0) + file.count
            self._by_schema[file.schema_text] = seen
            if len(self._by_schema) > _SCHEMAS_REMEMBERED:
                self._by_schema.pop(next(iter(self._by_schema)))
            return seen >= _ENTRIES_THAT_PAY


_SCHEMAS_REMEMBERED = 256
_entries_seen = _EntriesSeen()
