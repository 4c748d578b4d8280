"""The tables that a statement names, found in the caller's catalogs, and what is read of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import pyarrow as pa

from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.scans import ScanRequest
from floeberg.protocol.schema import Schema
from floeberg.protocol.snapshots import Snapshot
from floeberg.server.catalogs import LoadedTable
from floeberg.server.flight.queries import Query
from floeberg.server.flight.scans import TableScan
from floeberg.server.sql.information_schema import (
    AskedNames,
    information_schema,
    information_schema_table,
)
from floeberg.server.sql.lookup import Found, find_table
from floeberg.server.sql.metadata_tables import metadata_schema, metadata_table
from floeberg.server.sql.names import TableReference, Version
from floeberg.server.sql.plain_scan import PlainScan
from floeberg.server.sql.splitting import Input


@dataclass(frozen=True, slots=True)
class MetadataRows:
    """Columns of a metadata table of `table`, as of `snapshot`."""

    kind: str
    table: LoadedTable
    snapshot: Snapshot | None
    columns: Schema

    @property
    def label(self) -> str:
        return f"{self.kind} of {self.table.name}"

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self.columns)

    def read(self, query: Query) -> pa.Table:
        """Return the rows. Raises what reading the table's manifests does."""
        names = [column.name for column in self.columns.fields]
        source = query.manifests(self.table)
        return metadata_table(self.kind, self.table.metadata, self.snapshot, source, names)


@dataclass(frozen=True, slots=True)
class InformationRows:
    """Columns of a view of the information schema, of those names at least that are `asked` for."""

    view: str
    columns: Schema
    asked: AskedNames

    @property
    def label(self) -> str:
        return f"information_schema.{self.view}"

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self.columns)

    def read(self, query: Query) -> pa.Table:
        """Return the rows. Raises what listing tables does."""
        names = [column.name for column in self.columns.fields]
        return information_schema_table(
            self.view, query.caller, query.is_cancelled, self.asked, names
        )


ToldRows: TypeAlias = MetadataRows | InformationRows
"""What a coordinator tells by itself."""


@dataclass(frozen=True)
class Tables:
    """The tables of one query, each looked up once. Not safe to use from several threads."""

    query: Query
    _found: dict[TableReference, Found] = field(default_factory=dict)

    def find(self, reference: TableReference) -> Found:
        """Return the table that is meant. Raises `UnknownTable`."""
        found = self._found.get(reference)
        if found is None:
            found = find_table(reference, self.query.load, self.query.neighbours)
            self._found[reference] = found
        return found

    def schema(self, reference: TableReference) -> Schema:
        """Return the columns of a table, as the caller sees them in the version that is meant.

        Raises `NotPermitted` for a metadata table of what the caller may not read all of.
        """
        if reference.information_schema is not None:
            return information_schema(reference.information_schema)
        found = self.find(reference)
        kind = found.meaning.metadata_table
        if kind is None:
            return self._whole(found).scan.projection
        table = found.table
        self.query.caller.check_full(table.catalog, table.identifier, "metadata tables are")
        return metadata_schema(kind, table.metadata)

    def plain(self, scan: PlainScan) -> TableScan | None:
        """Return the scan that is a statement, None where it is of no rows of a table."""
        found = self.find(scan.table)
        if found.meaning.metadata_table is not None:
            return None
        return self.query.scan(found.table, scan.request(found.meaning.version))

    def filtered(self, scan: TableScan, plain: PlainScan) -> TableScan:
        """Return the columns of `scan` of the rows of `plain`, a scan of the same table."""
        version = self.find(plain.table).meaning.version
        request = replace(plain.request(version), select=scan.scan.request.select)
        return self.query.scan(scan.table, request)

    def read(self, one: Input) -> TableScan | ToldRows:
        """Return what an input of a statement reads."""
        view = one.table.information_schema
        if view is not None:
            return InformationRows(
                view, _told_columns(one, information_schema(view)), AskedNames.of(one.filter)
            )
        found = self.find(one.table)
        kind = found.meaning.metadata_table
        if kind is None:
            return self.query.scan(found.table, one.request(found.meaning.version))
        columns = _told_columns(one, metadata_schema(kind, found.table.metadata))
        snapshot = self._whole(found).scan.snapshot
        return MetadataRows(kind, found.table, snapshot, columns)

    def _whole(self, found: Found) -> TableScan:
        return self.query.scan(found.table, _whole(found.meaning.version))


def _told_columns(one: Input, schema: Schema) -> Schema:
    """Return the columns that an input reads of what is told, which has no metadata columns."""
    known = {field.name for field in schema.fields}
    read = tuple(column for column in one.columns if column.name in known)
    return Schema(read or schema.fields[:1])


def scans_of(sources: Sequence[TableScan | ToldRows]) -> list[TableScan]:
    return [source for source in sources if isinstance(source, TableScan)]


def _whole(version: Version) -> ScanRequest:
    return ScanRequest(snapshot_id=version.snapshot_id, ref=version.ref, as_of_ms=version.as_of_ms)
