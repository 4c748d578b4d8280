"""Open a table in this process, without any server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from floeberg.embedded.scan import TableScan
from floeberg.process.storage import open_storage
from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.discovery import find_metadata, load_metadata
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.storage import Storage, StorageConfig


class _PyIcebergIO(Protocol):
    @property
    def properties(self) -> Mapping[str, str]: ...


class _PyIcebergModel(Protocol):
    def model_dump_json(self) -> str: ...


class PyIcebergTable(Protocol):
    """As much of PyIceberg's `Table` as is needed to read it here."""

    @property
    def metadata_location(self) -> str: ...
    @property
    def metadata(self) -> _PyIcebergModel: ...
    @property
    def io(self) -> _PyIcebergIO: ...


@dataclass(frozen=True)
class Table:
    """One version of a table: its metadata, and the storage that its files are read from.

    A `Table` does not follow later commits; open it again for those.
    """

    metadata: TableMetadata
    storage: Storage = field(repr=False)
    config: StorageConfig = field(repr=False)
    metadata_location: str | None = None

    def scan(self) -> TableScan:
        """Return a scan of every row and column of the table as it is."""
        return TableScan(self.metadata, self.storage, self.config)

    def schema(self) -> pa.Schema:
        """Return the table's current schema, as its rows are read."""
        return arrow_schema(self.metadata.schema())


def open_table(
    source: str | TableMetadata | PyIcebergTable,
    properties: Mapping[str, str] | None = None,
    rebase: Mapping[str, str] | None = None,
    *,
    storage: Storage | None = None,
) -> Table:
    """Return the table that `source` names.

    `source` is the location of a metadata file, or of a table's directory (then `version-hint.text`
    decides, else the newest metadata), or a `TableMetadata`, or a PyIceberg `Table` (read with its
    own FileIO properties, under those given here). `properties` are Iceberg's FileIO properties,
    such as `s3.endpoint`; what they leave out comes from the environment. `rebase` maps location
    prefixes to where they are now, for a warehouse that was copied. `storage` replaces the storage
    that `properties` would give.

    Raises `NotATable` when there is no metadata, `CorruptMetadata` and `UnsupportedVersion` for
    what it holds, `MissingFile`, `AccessDenied` and `StorageUnavailable` for storage.
    """
    given = dict(properties or {})
    if not isinstance(source, str | TableMetadata):
        given = {**source.io.properties, **given}
    config = StorageConfig({k: str(v) for k, v in given.items()}, dict(rebase or {}))
    opened = storage or open_storage(config)
    match source:
        case TableMetadata():
            return Table(source, opened, config)
        case str():
            location = find_metadata(opened, source)
            return Table(load_metadata(opened, location), opened, config, location)
        case _ if source.metadata_location:
            location = source.metadata_location
            return Table(load_metadata(opened, location), opened, config, location)
        case _:  # a staged table: its metadata was never written
            raw = source.metadata.model_dump_json()
            return Table(TableMetadata.parse(raw, "a PyIceberg table"), opened, config)
