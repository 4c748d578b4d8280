"""Catalogs: where table names lead to.

`Catalogs` holds several side by side; each is a warehouse of directories, or any catalog that
PyIceberg has a client for.
"""

from floeberg.server.catalogs.catalog import Catalog, LoadedTable
from floeberg.server.catalogs.registry import Catalogs, Listing
from floeberg.server.catalogs.warehouse import WarehouseCatalog

__all__ = ["Catalog", "Catalogs", "Listing", "LoadedTable", "WarehouseCatalog"]
