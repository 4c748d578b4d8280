"""Several catalogs side by side, and what a table's name means among them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from floeberg.process.storage.renewals import Renewals
from floeberg.protocol.commands import TableName
from floeberg.protocol.errors import BadConfig, FloebergError, UnknownCatalog, UnknownTable
from floeberg.protocol.suggestions import nearest
from floeberg.server.catalogs.catalog import Catalog, LendsCredentials, LoadedTable
from floeberg.server.catalogs.metadata_cache import MetadataCache, RemembersMetadata

logger = logging.getLogger(__name__)

_SUGGESTED = 3


@dataclass(frozen=True, slots=True)
class Listing:
    """The tables of all catalogs that answered, as (catalog, identifier), and why others did
    not."""

    tables: tuple[tuple[str, tuple[str, ...]], ...]
    failures: Mapping[str, FloebergError]


class Catalogs:
    """The catalogs that a coordinator serves, by name; the first is the default unless another is
    named.

    A name that begins with a catalog's means a table there if there is one, and otherwise one of
    the default catalog: so a namespace that is called like a catalog can still be reached.
    """

    def __init__(self, catalogs: Sequence[Catalog], default: str | None = None) -> None:
        if not catalogs:
            raise BadConfig(
                "no catalog is configured: give --warehouse DIR or --catalog NAME=KIND:URI"
            )
        self._by_name: dict[str, Catalog] = {}
        for catalog in catalogs:
            if catalog.name in self._by_name:
                raise BadConfig(f"two catalogs are called {catalog.name!r}")
            self._by_name[catalog.name] = catalog
        self._default = catalogs[0] if default is None else self.get(default)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    @property
    def default(self) -> Catalog:
        return self._default

    @property
    def metadata_caches(self) -> list[MetadataCache]:
        """What the catalogs remember of tables' metadata, of those that do."""
        catalogs = self._by_name.values()
        return [c.metadata_cache for c in catalogs if isinstance(c, RemembersMetadata)]

    @property
    def renewals(self) -> list[Renewals]:
        """What the catalogs do about credentials that they lend, of those that do."""
        return [c.renewals for c in self._by_name.values() if isinstance(c, LendsCredentials)]

    def get(self, name: str) -> Catalog:
        """Return the catalog of that name; raises `UnknownCatalog`."""
        catalog = self._by_name.get(name)
        if catalog is None:
            raise UnknownCatalog(name, self.names)
        return catalog

    def is_local(self, parts: Sequence[str]) -> bool:
        """Say whether `load` asks nothing but this machine's disks for what `parts` name."""
        return all(catalog.is_local for catalog, _ in self._meanings(tuple(parts)))

    def load(self, parts: Sequence[str]) -> LoadedTable:
        """Return the table that `parts` name, `("db", "orders")` or `("catalog", "db", "orders")`,
        as it is now; raises `UnknownTable`, which names the nearest there are."""
        for catalog, identifier in self._meanings(tuple(parts)):
            try:
                return catalog.load(identifier)
            except UnknownTable:
                continue
        raise self._unknown(tuple(parts))

    def resolve(self, parts: Sequence[str]) -> tuple[Catalog, tuple[str, ...]]:
        """Return the catalog that `parts` mean, and the table's identifier in it.

        Loads the table only when two catalogs are possible, and raises `UnknownTable` when neither
        has it; whether the table exists is otherwise for `Catalog.load` to say.
        """
        meanings = self._meanings(tuple(parts))
        if len(meanings) == 1:
            return meanings[0]
        for catalog, identifier in meanings:
            try:
                catalog.load(identifier)
            except UnknownTable:
                continue
            return catalog, identifier
        raise self._unknown(tuple(parts))

    def list_tables(self) -> Listing:
        """Return the tables of all catalogs, in the catalogs' order; one that fails hides no
        other."""
        tables: list[tuple[str, tuple[str, ...]]] = []
        failures: dict[str, FloebergError] = {}
        for name, catalog in self._by_name.items():
            try:
                tables += [(name, identifier) for identifier in catalog.list_tables()]
            except FloebergError as error:
                logger.warning("catalog not listed", extra={"catalog": name, "error": str(error)})
                failures[name] = error
        return Listing(tuple(tables), failures)

    def _meanings(self, parts: tuple[str, ...]) -> list[tuple[Catalog, tuple[str, ...]]]:
        """Return what the parts may mean, likeliest first; never empty."""
        named = self._by_name.get(parts[0]) if len(parts) > 1 else None
        if named is None:
            return [(self._default, parts)]
        return [(named, parts[1:]), (self._default, parts)]

    # --- what may have been meant -----------------------------------------------------------------

    def _unknown(self, parts: tuple[str, ...]) -> UnknownTable:
        """Return the error for a table that is nowhere, with the nearest names in the catalog that
        was named and in those that are cheap to ask, in full."""
        several = len(self._by_name) > 1
        meant: dict[tuple[str, ...], list[str]] = {}
        for catalog, identifier in self._neighbours(parts):
            full = TableName((catalog, *identifier) if several else identifier).written()
            # as it may be named: with its catalog, without, or (wrongly) without its namespace
            for name in dict.fromkeys([(catalog, *identifier), identifier, identifier[-1:]]):
                meant.setdefault(name, []).append(full)
        # then those of other catalogs and namespaces
        near = list(dict.fromkeys(_alike(parts, meant) + _alike(parts[1:], meant)))
        default_first = sorted(self.names, key=lambda name: name != self._default.name)
        return UnknownTable(".".join(parts), near[:_SUGGESTED], default_first if several else ())

    def _neighbours(self, parts: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield (catalog, identifier) of tables among which `parts` may be misspelt. Raises only
        what says that nothing can ever be found in the catalog that was named."""
        first, identifier = self._meanings(parts)[0]
        # a catalog's name may be misspelt, or it may be another's table
        bare = parts[1:] if len(parts) > 1 and nearest(parts[0], self.names, n=1) else parts
        others = [c for c in self._by_name.values() if c is not first and c.suggests_cheaply]
        for catalog, meant in ((first, identifier), *((other, bare) for other in others)):
            try:
                found = catalog.neighbours(meant)
            except FloebergError as error:
                if catalog is first and isinstance(error, BadConfig):
                    raise
                continue  # a failure to suggest is none of the caller's
            for table in found:
                if table and all(table):
                    yield catalog.name, table


def _alike(parts: tuple[str, ...], meant: Mapping[tuple[str, ...], Sequence[str]]) -> list[str]:
    """Return what the names stand for that are like `parts`, part by part: whole names of one
    namespace are all alike."""
    dotted = {".".join(name): name for name in meant if len(name) == len(parts)}
    near = (dotted[name] for name in nearest(".".join(parts), dotted, n=4 * _SUGGESTED))
    alike = (
        name
        for name in near
        if all(nearest(part, [other]) for part, other in zip(parts, name, strict=True))
    )
    return list(dict.fromkeys(full for name in alike for full in meant[name]))
