"""Listings of tables, as clients are told of them."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase

from floeberg.protocol.actions import TableEntry, TablesRequest
from floeberg.server.catalogs import Catalogs


def list_tables(
    catalogs: Catalogs, request: TablesRequest
) -> tuple[list[TableEntry], dict[str, str]]:
    """Return the tables that `request` asks for, catalog by catalog, and why catalogs are missing.

    A catalog that doesn't answer hides no other, unless it is the one that was asked for: then its
    error is raised.
    """
    unlisted: dict[str, str] = {}
    if request.catalog is not None:
        found = [(request.catalog, i) for i in catalogs.get(request.catalog).list_tables()]
    else:
        listing = catalogs.list_tables()
        found = list(listing.tables)
        unlisted = {name: f"[{e.code}] {e}" for name, e in listing.failures.items()}
    default = catalogs.default.name
    namespace = request.namespace
    entries = [
        TableEntry(catalog=catalog, identifier=i, is_default_catalog=catalog == default)
        for catalog, i in found
        if i[: len(namespace)] == namespace and len(i) > len(namespace)
    ]
    return entries, unlisted


def name_filter(criteria: bytes) -> Callable[[TableEntry], bool]:
    """Return the test for ListFlights' criteria: a pattern with `*` and `?` for the dotted
    name, with or without the catalog; or a part of it. Empty criteria let every table through.
    """
    pattern = criteria.decode("utf-8", "replace")

    def matches(entry: TableEntry) -> bool:
        name = ".".join(entry.identifier)
        names = (name, f"{entry.catalog}.{name}")
        if any(c in pattern for c in "*?["):
            return any(fnmatchcase(n, pattern) for n in names)
        return pattern in names[1]

    return matches


def path_of(entry: TableEntry) -> tuple[str, ...]:
    """Return the path that names a table in a descriptor, the catalog before it where it must be.

    >>> path_of(TableEntry(catalog="lake", identifier=("db", "t"), is_default_catalog=True))
    ('db', 't')
    """
    identifier = entry.identifier
    # one element alone is read as a dotted name
    is_plain = len(identifier) > 1 or "." not in "".join(identifier)
    return identifier if entry.is_default_catalog and is_plain else (entry.catalog, *identifier)
