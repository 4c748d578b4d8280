"""What is kept of Parquet files: their footers, decoded, and small files whole."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from floeberg.process.storage.abandonable import Leavable
from floeberg.protocol.files import DataFile, DeleteFile
from floeberg.protocol.storage import Storage
from floeberg.worker.cache import LoadingCache
from floeberg.worker.files.parquet import ParquetContents

FOOTER_CACHE_BYTES = 128 << 20


class Footers:
    """What a cache, which other plans share, keeps of the files of one plan.

    `reading` is what decoding depends on beside the file: in which store its location is looked up,
    and with which arguments it is opened. A file is known by its location, and by its size and its
    key, so that what was kept is not taken for a file that has taken its place. Whose credentials
    fetched it does not matter: a ticket that names a file is leave to read it.
    """

    def __init__(self, cache: LoadingCache, *reading: Hashable) -> None:
        self._cache = cache
        self._reading = reading

    def holds(self, file: DataFile | DeleteFile) -> bool:
        """Say whether the footer of `file` is kept, or being fetched."""
        return self._cache.holds(self._key(file, file.size_bytes))

    def get(
        self,
        file: DataFile | DeleteFile,
        size: int,
        storage: Storage,
        load: Callable[[], ParquetContents],
    ) -> ParquetContents:
        """Return what `load` gives of `file`, which has `size` bytes and is read from `storage`."""

        def check() -> None:
            if isinstance(storage, Leavable):
                storage.check()

        return self._cache.get(self._key(file, size), load, check)

    def forget(self, file: DataFile | DeleteFile) -> None:
        """Keep nothing of `file`, which has proved to be damaged."""
        self._cache.discard(self._key(file, file.size_bytes))

    def _key(self, file: DataFile | DeleteFile, size: int) -> Hashable:
        return ("footer", self._reading, file.location, size, file.key_metadata)
