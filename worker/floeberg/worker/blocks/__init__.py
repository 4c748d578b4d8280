"""A cache on disk of what was fetched from object stores: blocks of objects, below everything that
decodes them."""

from floeberg.worker.blocks.cache import BlockCache
from floeberg.worker.blocks.objects import PlannedObjects, environment_store
from floeberg.worker.blocks.storage import BlockStorage

__all__ = ["BlockCache", "BlockStorage", "PlannedObjects", "environment_store"]
