"""A catalog whose service is down."""

from __future__ import annotations

from pathlib import Path
from typing import Never

from floeberg.protocol.errors import CatalogUnavailable
from floeberg.server.catalogs import WarehouseCatalog


class UnreachableCatalog(WarehouseCatalog):
    def __init__(self, name: str, directory: Path) -> None:
        super().__init__(name, str(directory))

    def list_tables(self) -> Never:
        raise CatalogUnavailable(f"catalog {self.name!r} does not answer")
