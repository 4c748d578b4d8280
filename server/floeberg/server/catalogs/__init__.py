"""Catalogs: where table names lead to.

`Catalogs` holds several side by side; each is a warehouse of directories, or any catalog that
PyIceberg has a client for (`pyiceberg_catalog`, which is imported where there is one).
`configure_catalogs` makes them from a configuration.
"""

from floeberg.server.catalogs.catalog import Catalog, LoadedTable
from floeberg.server.catalogs.config import (
    CatalogConfig,
    configure_catalogs,
    open_catalog,
    read_catalog_flag,
    read_catalogs_table,
)
from floeberg.server.catalogs.registry import Catalogs, Listing
from floeberg.server.catalogs.warehouse import WarehouseCatalog

__all__ = [
    "Catalog",
    "CatalogConfig",
    "Catalogs",
    "Listing",
    "LoadedTable",
    "WarehouseCatalog",
    "configure_catalogs",
    "open_catalog",
    "read_catalog_flag",
    "read_catalogs_table",
]
