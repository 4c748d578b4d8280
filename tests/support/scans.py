"""Scans of written tables, and storage that remembers what was asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from floeberg.process.storage import open_storage
from floeberg.protocol.errors import FloebergError
from floeberg.protocol.expressions.json_form import expression_from_json
from floeberg.protocol.expressions.model import TRUE
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.scans import ResolvedScan, ScanRequest, resolve
from tests.support.lake import TableWriter


def scan_of(table: TableWriter, filter_: Any = None, **request: Any) -> ResolvedScan:
    """Return a scan of every column. `filter_` is in the JSON form; `request` is ScanRequest's."""
    path = table.metadata_path
    metadata = TableMetadata.parse(path.read_bytes(), str(path))
    return scan_of_metadata(metadata, filter_, **request)


def scan_of_metadata(metadata: TableMetadata, filter_: Any = None, **request: Any) -> ResolvedScan:
    expression = TRUE if filter_ is None else expression_from_json(filter_)
    return resolve(metadata, ScanRequest(filter=expression, **request))


class RecordingStorage:
    """Reads local files and keeps the locations that were read, in order."""

    def __init__(self) -> None:
        self._inner = open_storage()
        self.read_locations: list[str] = []

    def read(self, location: str) -> bytes:
        self.read_locations.append(location)
        return self._inner.read(location)

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return self._inner.read_ranges(location, ranges)

    def read_many(
        self, requests: Sequence[tuple[str, Sequence[tuple[int, int]]]]
    ) -> list[list[bytes] | FloebergError]:
        return self._inner.read_many(requests)

    def size(self, location: str) -> int:
        return self._inner.size(location)

    def open(self, location: str) -> pa.NativeFile:
        return self._inner.open(location)

    def list(self, location: str) -> Sequence[str]:
        return self._inner.list(location)

    def is_directory(self, location: str) -> bool:
        return self._inner.is_directory(location)

    def is_local(self, location: str) -> bool:
        return self._inner.is_local(location)
