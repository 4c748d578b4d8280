"""Which table a reference means, of those that there are.

The first that is there as it is written; and if none is, the first that is there but for the case
of letters, as SQL has it. Looking for other spellings asks what suggestions are made of, a handful
of requests, so in a large catalog one may stay unfound: where the namespace is another than
`nearest` finds too, or in a warehouse in an object store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from floeberg.protocol.commands import TableName
from floeberg.protocol.errors import BadSql, FloebergError, UnknownTable
from floeberg.protocol.suggestions import quoted
from floeberg.server.catalogs import LoadedTable
from floeberg.server.sql.names import METADATA_TABLES, Meaning, TableReference

# Iceberg's other metadata tables
_UNSERVED = frozenset(
    {
        *("all_data_files", "all_delete_files", "all_entries", "all_files", "all_manifests"),
        *("data_files", "delete_files", "metadata_log_entries", "position_deletes"),
    }
)

Load = Callable[[TableName], LoadedTable]
"""Loads a table of the caller's by its name, catalog first. Raises `UnknownTable`."""

Neighbours = Callable[[str, tuple[str, ...]], Sequence[tuple[str, ...]]]
"""Gives what `Catalog.neighbours` of a catalog of the caller's does, by the catalog's name."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a reference turned out to mean."""

    meaning: Meaning
    table: LoadedTable


def find_table(reference: TableReference, load: Load, neighbours: Neighbours) -> Found:
    """Return the table that is meant, with its name as it is.

    Raises `UnknownTable` where there is none, and `BadSql` for several whose names differ in case
    only and none of which is written as it is.
    """
    first: UnknownTable | None = None
    for meaning in reference.meanings:
        try:
            return Found(meaning, load(meaning.name))
        except UnknownTable as error:
            first = first or error
    for meaning in reference.meanings:
        spelled = _spelled(meaning.name, neighbours)
        if len(spelled) > 1:
            raise BadSql(
                f"table {quoted(str(reference))} may be"
                f" {' or '.join(name.written() for name in spelled[:3])}, whose names differ in"
                " case only: write the one that is meant as it is"
            )
        if spelled:
            return Found(replace(meaning, name=spelled[0]), load(spelled[0]))
    if first is None:
        raise BadSql("the name of a table is missing")
    raise first.with_hint(_hint(reference))


def _hint(reference: TableReference) -> str:
    """Return what SQL shows of what there is."""
    last = reference.parts[-1]
    kind = last.rpartition("$")[2].casefold()
    if kind in _UNSERVED and ("$" in last or len(reference.parts) > 1):
        served = ", ".join(sorted(METADATA_TABLES))
        return f"of a table's metadata tables, {served} are served, and {kind!r} is not"
    return "SHOW ALL TABLES shows the tables in SQL"


def _spelled(name: TableName, neighbours: Neighbours) -> list[TableName]:
    """Return the tables whose names are the same but for the case of letters."""
    catalog, *identifier = name.parts
    folded = [part.casefold() for part in identifier]
    try:
        known = neighbours(catalog, tuple(identifier))
    except FloebergError:
        return []  # the table isn't known: that is the error, and not that none is suggested
    return [
        TableName((catalog, *other))
        for other in sorted(set(known))
        if [part.casefold() for part in other] == folded
    ]
