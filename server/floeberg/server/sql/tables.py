"""The tables that a statement names, found in the caller's catalogs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from floeberg.protocol.errors import BadSql, UnknownTable, UnsupportedSql
from floeberg.protocol.scans import ScanRequest
from floeberg.protocol.schema import Schema
from floeberg.server.catalogs import LoadedTable
from floeberg.server.flight.queries import Query
from floeberg.server.flight.scans import TableScan
from floeberg.server.sql.names import Meaning, TableReference, Version


@dataclass(frozen=True, slots=True)
class Found:
    """What a reference turned out to mean."""

    meaning: Meaning
    table: LoadedTable


class Tables:
    """The tables of one query, each loaded once. Not safe to use from several threads."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._found: dict[TableReference, Found] = {}

    def find(self, reference: TableReference) -> Found:
        """Return the table that is meant: the first that there is. Raises `UnknownTable`, and
        `UnsupportedSql` for what is no table of a catalog."""
        found = self._found.get(reference)
        if found is None:
            found = self._found[reference] = self._look_up(reference)
        return found

    def schema(self, reference: TableReference) -> Schema:
        """Return the columns of a table, as the caller sees them in the version that is meant."""
        return self.scan(reference, whole).scan.projection

    def scan(
        self, reference: TableReference, request: Callable[[Version], ScanRequest]
    ) -> TableScan:
        """Return a scan of the table that is meant, by what it is for the version that is."""
        found = self.find(reference)
        return self._query.scan(found.table, request(found.meaning.version))

    def _look_up(self, reference: TableReference) -> Found:
        if reference.information_schema is not None:
            raise UnsupportedSql("information_schema is not served; list tables by the client")
        first: UnknownTable | None = None
        for meaning in reference.meanings:
            try:
                table = self._query.load(meaning.name)
            except UnknownTable as error:
                first = first or error
                continue
            if meaning.metadata_table is not None:
                raise UnsupportedSql(f"the metadata table {meaning.metadata_table} is not served")
            return Found(meaning, table)
        raise first or BadSql("the name of a table is missing")


def whole(version: Version) -> ScanRequest:
    """Return the scan of all columns and rows of a version."""
    return ScanRequest(snapshot_id=version.snapshot_id, ref=version.ref, as_of_ms=version.as_of_ms)
