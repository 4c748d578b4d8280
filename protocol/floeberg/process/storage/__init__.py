"""Storage over real file systems: local disks, and whatever fsspec has an implementation of.

`open_storage` is what a process hands to planning and reading. It sends each location to the file
system of its scheme, under Iceberg's property names, after rebasing it.
"""

from floeberg.process.storage.logged import LoggedStorage
from floeberg.process.storage.routing import StorageCache, open_storage

__all__ = ["LoggedStorage", "StorageCache", "open_storage"]
