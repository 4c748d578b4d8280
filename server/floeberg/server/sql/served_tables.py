"""The tables that a caller may see, and their columns, loaded several at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass

from floeberg.protocol.errors import Cancelled, FloebergError, UnknownTable
from floeberg.protocol.scans import ScanRequest, resolve
from floeberg.protocol.schema import Schema
from floeberg.server.access import Caller
from floeberg.server.sql.listed_names import SqlName

logger = logging.getLogger(__name__)

_LOADED_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class ServedTable:
    """A table by its name in SQL, and by its identifier in its catalog."""

    name: SqlName
    identifier: tuple[str, ...]


def served_tables(caller: Caller, catalogs: Collection[str] | None) -> Iterator[ServedTable]:
    """Yield the tables of some catalogs, or of all (None); those that aren't the caller's have
    none.

    A catalog that doesn't answer hides no other: its error is raised where it is the only one that
    was asked for, or none is left.
    """
    for catalog, identifier in _identifiers(caller, catalogs):
        if identifier:
            yield ServedTable(SqlName.of(catalog, identifier), identifier)


def _identifiers(
    caller: Caller, catalogs: Collection[str] | None
) -> Sequence[tuple[str, tuple[str, ...]]]:
    if catalogs is None:
        listing = caller.catalogs.list_tables()
        if listing.failures and not listing.tables:
            raise next(iter(listing.failures.values()))
        return listing.tables
    found: list[tuple[str, tuple[str, ...]]] = []
    asked = [name for name in caller.catalogs.names if name in catalogs]
    for name in asked:
        try:
            found += [(name, i) for i in caller.catalogs.get(name).list_tables()]
        except FloebergError as error:
            if len(asked) == 1:
                raise
            logger.warning("catalog not listed", extra={"catalog": name, "error": str(error)})
    return found


def schemas_of(
    tables: Sequence[ServedTable],
    caller: Caller,
    is_asked_for: Callable[[SqlName], bool],
    is_cancelled: Callable[[], bool],
) -> Iterator[Schema | None]:
    """Yield the columns of each table as the caller sees them, None where it is gone meanwhile.

    The error of a table that `is_asked_for` by its name is raised; any other such table has no
    columns. Raises `Cancelled` soon after `is_cancelled` says so.
    """

    def schema(served: ServedTable) -> Schema | None:
        if is_cancelled():
            raise Cancelled("nobody waits for the listing any more")
        return _schema_of(served, caller, raises=is_asked_for(served.name))

    if all(caller.catalogs.get(served.name.catalog).is_local for served in tables):
        yield from map(schema, tables)
        return
    with ThreadPoolExecutor(_LOADED_AT_ONCE, thread_name_prefix="listing") as pool:
        # each in a context of its own, which knows the request
        loading = [pool.submit(copy_context().run, schema, served) for served in tables]
        try:
            for future in loading:
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _schema_of(served: ServedTable, caller: Caller, *, raises: bool) -> Schema | None:
    try:
        table = caller.catalogs.get(served.name.catalog).load(served.identifier)
        return resolve(table.metadata, ScanRequest(), view=caller.view(table)).projection
    except UnknownTable:
        return None
    except FloebergError as error:
        if raises:
            raise
        # one that is damaged must not hide the others, nor be missing without a word
        told = {"table": str(served.name), "error": str(error)}
        logger.warning("table not described", extra=told)
        return Schema(())
