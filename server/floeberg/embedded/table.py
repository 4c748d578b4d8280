"""Open a table in this process, without any server."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from floeberg.embedded.kept import KeptOfTable
from floeberg.embedded.scan import TableScan
from floeberg.process.storage import open_storage
from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.commands import ScanCommand, TableName
from floeberg.protocol.discovery import find_metadata, load_metadata
from floeberg.protocol.errors import BadRequest
from floeberg.protocol.expressions.model import Expression
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.storage import Storage, StorageConfig

# a table that was opened by its location has no name, and a command needs one
_THIS_TABLE = TableName(("table",))

# --- as much of PyIceberg's classes as is needed to read their tables here ------------------------


@runtime_checkable
class PyIcebergIO(Protocol):
    """A FileIO of PyIceberg's; its files are read with floeberg's own storage."""

    @property
    def properties(self) -> Mapping[str, str]: ...


@runtime_checkable
class PyIcebergMetadata(Protocol):
    """A TableMetadata of PyIceberg's."""

    def model_dump_json(self) -> str: ...


@runtime_checkable
class PyIcebergTable(Protocol):
    """A Table of PyIceberg's."""

    @property
    def metadata_location(self) -> str | None: ...
    @property
    def metadata(self) -> PyIcebergMetadata: ...
    @property
    def io(self) -> PyIcebergIO: ...


@dataclass(frozen=True)
class Table:
    """One version of a table: its metadata, and the storage that its files are read from.

    A `Table` does not follow later commits; open it again for those. Its scans share what they have
    decoded of manifests, footers and delete files, `kept`, as long as it lives.
    """

    metadata: TableMetadata
    storage: Storage = field(repr=False)
    config: StorageConfig = field(repr=False)
    metadata_location: str | None = None
    kept: KeptOfTable = field(default_factory=KeptOfTable, repr=False, compare=False)

    def scan(
        self,
        *,
        filter: str | list[Any] | Expression | None = None,
        select: Iterable[str] | None = None,
        snapshot_id: int | None = None,
        ref: str | None = None,
        as_of: int | str | datetime | None = None,
        limit: int | None = None,
        ordered: bool = False,
        case_sensitive: bool = True,
        split_size: int | None = None,
    ) -> TableScan:
        """Return a scan of the rows of which `filter` is true: without arguments, of every row and
        column of the table as it is.

        The arguments are those of a scan over Flight, and `BadCommand`, `BadFilter` and
        `ConflictingSnapshot` are raised for the same mistakes. Here rows always come in plan order,
        `ordered` or not. The scan's setters narrow it further.
        """
        command = ScanCommand.from_arguments(
            _THIS_TABLE,
            filter=filter,
            select=select,
            snapshot_id=snapshot_id,
            ref=ref,
            as_of=as_of,
            limit=limit,
            ordered=ordered,
            case_sensitive=case_sensitive,
            split_size=split_size,
        )
        request = command.to_request()
        return TableScan(self.metadata, self.storage, self.config, request, kept=self.kept)

    def schema(self) -> pa.Schema:
        """Return the table's current schema, as its rows are read."""
        return arrow_schema(self.metadata.schema())


def open_table(
    source: str | os.PathLike[str] | TableMetadata | PyIcebergMetadata | PyIcebergTable,
    properties: Mapping[str, str] | None = None,
    rebase: Mapping[str, str] | None = None,
    *,
    io: Storage | PyIcebergIO | None = None,
) -> Table:
    """Return the table that `source` names.

    `source` is the location of a metadata file, or of a table's directory (then `version-hint.text`
    decides, else the newest metadata), or a `TableMetadata`, PyIceberg's as well, or a PyIceberg
    `Table` (read with its own FileIO properties, under those given here). `properties` are
    Iceberg's FileIO properties, such as `s3.endpoint`; what they leave out comes from the
    environment. `rebase` maps location prefixes to where they are now, for a warehouse that was
    copied. `io` replaces the storage that `properties` would give; of a PyIceberg FileIO only its
    properties are taken.

    Raises `NotATable` when there is no metadata, `CorruptMetadata` and `UnsupportedVersion` for
    what it holds, `MissingFile`, `AccessDenied` and `StorageUnavailable` for storage.
    """
    given = {**_io_properties(source, io), **(properties or {})}
    config = StorageConfig({k: str(v) for k, v in given.items()}, dict(rebase or {}))
    storage = io if isinstance(io, Storage) else open_storage(config)
    match source:
        case TableMetadata():
            return Table(source, storage, config)
        case str() | os.PathLike():
            location = find_metadata(storage, os.fspath(source))
            return Table(load_metadata(storage, location), storage, config, location)
        case PyIcebergTable():
            location = source.metadata_location or ""
            if location:
                return Table(load_metadata(storage, location), storage, config, location)
            # a staged table: its metadata was never written
            return Table(_parsed(source.metadata), storage, config)
        case PyIcebergMetadata():
            return Table(_parsed(source), storage, config)
        case _:
            raise BadRequest(
                f"a {type(source).__name__} is not a table: give a location, a TableMetadata or a"
                " PyIceberg table"
            )


def _io_properties(source: object, io: object) -> Mapping[str, str]:
    if isinstance(io, PyIcebergIO):
        return io.properties
    return source.io.properties if isinstance(source, PyIcebergTable) else {}


def _parsed(metadata: PyIcebergMetadata) -> TableMetadata:
    return TableMetadata.parse(metadata.model_dump_json(), "PyIceberg's table metadata")
