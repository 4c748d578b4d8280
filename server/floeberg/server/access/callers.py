"""Those who ask: a principal, and the catalogs as they see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from floeberg.process.auth import Principal
from floeberg.process.auth.watched import WatchedFile
from floeberg.protocol.errors import NotPermitted, UnknownTable
from floeberg.server.access.limits import UNLIMITED, Limits
from floeberg.server.access.policies import FULL, Access, Policies
from floeberg.server.access.view import TableView
from floeberg.server.catalogs import Catalog, Catalogs, LoadedTable


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. `principal` is None where callers are not asked who they are.

    In its `catalogs` there are only the tables that it may read. Without `policies` all are there.
    `limits` are those of its queries.
    """

    principal: str | None
    catalogs: Catalogs
    policies: Policies | None = None
    limits: Limits = UNLIMITED

    def access(self, catalog: str, identifier: tuple[str, ...]) -> Access:
        """Return what of a table the caller may read. Raises `UnknownTable` where that is
        nothing."""
        if self.policies is None:
            return FULL
        found = self.policies.access(self.principal or "", catalog, identifier)
        if found is None:
            raise UnknownTable(".".join(identifier))
        return found

    def view(self, table: LoadedTable) -> TableView | None:
        """Return how the caller sees a table of its `catalogs`, None for as it is. Raises
        `NotPermitted` for a policy that can't be applied."""
        access = self.access(table.catalog, table.identifier)
        return TableView.of(table.metadata, access) if access.is_restricted else None

    def check_full(self, catalog: str, identifier: tuple[str, ...], what: str) -> None:
        """Let pass whom no policy restricts on a table; `what` says what is only for them.

        Raises `NotPermitted`, and `UnknownTable` as `access` does.
        """
        if self.access(catalog, identifier).is_restricted:
            raise NotPermitted(
                f"{what} only for those who may read the whole table: it tells of rows and columns"
                " that a policy keeps from you; scans and counts are answered"
            )


class Callers:
    """Gives callers by their principals. Safe to use from several threads."""

    def __init__(
        self,
        catalogs: Catalogs,
        policies: WatchedFile[Policies] | None = None,
        limits: Limits = UNLIMITED,
    ) -> None:
        """`limits` are those of principals for whom the policies have no others."""
        self._catalogs = catalogs
        self._policies = policies
        self._limits = limits

    def of(self, principal: Principal | None) -> Caller:
        """Return the caller, under the policies as they are now."""
        name = principal.name if principal else None
        if self._policies is None:
            return Caller(name, self._catalogs, limits=self._limits)
        policies = self._policies.get()

        def sees(catalog: str, identifier: tuple[str, ...]) -> bool:
            return policies.access(name or "", catalog, identifier) is not None

        limits = policies.limits_of(name or "", self._limits)
        return Caller(name, seen_by(self._catalogs, sees), policies, limits)


def seen_by(catalogs: Catalogs, sees: Callable[[str, tuple[str, ...]], bool]) -> Catalogs:
    """Return the catalogs with those tables alone that `sees` says yes to, by catalog and
    identifier."""
    seen: list[Catalog] = [_Seen(catalogs.get(name), sees) for name in catalogs.names]
    return Catalogs(seen, catalogs.default.name)


class _Seen:
    """A catalog of which some tables are not there. They are told from none by nothing: they are
    refused before the catalog is asked."""

    def __init__(self, catalog: Catalog, sees: Callable[[str, tuple[str, ...]], bool]) -> None:
        self._catalog = catalog
        self._sees = sees

    @property
    def name(self) -> str:
        return self._catalog.name

    @property
    def kind(self) -> str:
        return self._catalog.kind

    def list_tables(self) -> Sequence[tuple[str, ...]]:
        return [i for i in self._catalog.list_tables() if self._sees(self.name, i)]

    def load(self, identifier: tuple[str, ...]) -> LoadedTable:
        if self._sees(self.name, identifier):
            table = self._catalog.load(identifier)
            # by its own name, where the catalog takes others as well
            if self._sees(self.name, table.identifier):
                return table
        raise UnknownTable(".".join(identifier))

    @property
    def is_local(self) -> bool:
        return self._catalog.is_local

    @property
    def suggests_cheaply(self) -> bool:
        return self._catalog.suggests_cheaply

    def neighbours(self, identifier: tuple[str, ...]) -> Sequence[tuple[str, ...]]:
        return [i for i in self._catalog.neighbours(identifier) if self._sees(self.name, i)]
