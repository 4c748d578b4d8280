"""The corpus as a catalog, so that a coordinator serves each case's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from floeberg.process.storage import open_storage
from floeberg.protocol.discovery import find_metadata, load_metadata
from floeberg.protocol.errors import UnknownTable
from floeberg.protocol.storage import StorageConfig
from floeberg.server.catalogs import LoadedTable
from tests.corpus.cases import Case


class CaseCatalog:
    """Names a table by the case that reads it: cases may want different metadata of one table."""

    name = "corpus"
    kind = "corpus"

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases: Mapping[str, Case] = {case.id: case for case in cases}

    def list_tables(self) -> Sequence[tuple[str, ...]]:
        return [(case_id,) for case_id in sorted(self._cases)]

    @property
    def is_local(self) -> bool:
        return True

    @property
    def suggests_cheaply(self) -> bool:
        return True

    def neighbours(self, identifier: tuple[str, ...]) -> Sequence[tuple[str, ...]]:
        return self.list_tables()

    def load(self, identifier: tuple[str, ...]) -> LoadedTable:
        case = self._cases.get(identifier[0])
        if case is None or len(identifier) != 1:
            raise UnknownTable(".".join(identifier))
        config = StorageConfig({}, case.rebase)
        storage = open_storage(config)
        location = find_metadata(storage, case.source)
        return LoadedTable(
            self.name, identifier, load_metadata(storage, location), location, config
        )
