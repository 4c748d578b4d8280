"""Storage that goes on when its credentials end: others take their place between two requests, or
in the place of a request that the store has refused. Readers notice nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

import pyarrow as pa

from floeberg.process.storage.credentials import (
    earliest_expiry_ms,
    expiry_ms,
    fingerprint,
    properties_for,
    with_credentials_of,
)
from floeberg.process.storage.ranges import Range
from floeberg.process.storage.remote_file import RemoteFile
from floeberg.process.storage.renewals import CredentialSource
from floeberg.protocol.errors import (
    AccessDenied,
    CredentialsUnavailable,
    ExpiredCredentials,
    FloebergError,
)
from floeberg.protocol.storage import Storage, StorageConfig, StorageFactory

logger = logging.getLogger(__name__)

T = TypeVar("T")

# What a store refuses may be refused with the first that a lender has instead: another may have
# fetched these just before, and a key that was taken back ends them too.
_RENEWALS = 2


class RenewingStorage:
    """Reads with the credentials that `source` has for a table; implements `Storage`.

    They are `config`'s at first. Raises what storage raises, and for credentials that have ended
    `CredentialsUnavailable` where others may be had later, else `ExpiredCredentials`.
    """

    def __init__(
        self, config: StorageConfig, open_storage: StorageFactory, source: CredentialSource
    ) -> None:
        self._config = config
        self._open = open_storage
        self._source = source
        self._lock = threading.Lock()
        self._opened = config, open_storage(config)

    def read(self, location: str) -> bytes:
        return self._ask(location, lambda storage: storage.read(location))

    def read_ranges(self, location: str, ranges: Sequence[Range]) -> list[bytes]:
        return self._ask(location, lambda storage: storage.read_ranges(location, ranges))

    def read_many(
        self, requests: Sequence[tuple[str, Sequence[Range]]]
    ) -> list[list[bytes] | FloebergError]:
        if all(self.is_local(location) for location, _ in requests):
            return self._opened[1].read_many(requests)
        try:
            config, storage = self._for([location for location, _ in requests])
        except FloebergError as error:
            return [error] * len(requests)
        found = storage.read_many(requests)
        for _ in range(_RENEWALS):
            refused = {i: one for i, one in enumerate(found) if isinstance(one, AccessDenied)}
            if not refused:
                break
            first = next(iter(refused.values()))
            try:
                config, storage = self._after(first, config)
            except FloebergError as other:
                if other is not first:  # each keeps its own, which names its location
                    found = [other if i in refused else one for i, one in enumerate(found)]
                break
            again = storage.read_many([requests[i] for i in refused])
            for i, one in zip(refused, again, strict=True):
                found[i] = one
        return found

    def size(self, location: str) -> int:
        return self._ask(location, lambda storage: storage.size(location))

    def open(self, location: str) -> pa.NativeFile:
        if self.is_local(location):
            return self._opened[1].open(location)
        size = self.size(location)

        def fetch(start: int, length: int) -> bytes:
            return self.read_ranges(location, [(start, length)])[0]

        return pa.PythonFile(RemoteFile(fetch, size), mode="r")

    def list(self, location: str) -> Sequence[str]:
        return self._ask(location, lambda storage: storage.list(location))

    def is_directory(self, location: str) -> bool:
        return self._ask(location, lambda storage: storage.is_directory(location))

    def is_local(self, location: str) -> bool:
        return self._opened[1].is_local(location)

    # --- with which credentials -------------------------------------------------------------------

    def _ask(self, location: str, request: Callable[[Storage], T]) -> T:
        if self.is_local(location):
            return request(self._opened[1])
        config, storage = self._for([location])
        for _ in range(_RENEWALS):
            try:
                return request(storage)
            except AccessDenied as error:
                config, storage = self._after(error, config)
        return request(storage)

    def _for(self, locations: Sequence[str]) -> tuple[StorageConfig, Storage]:
        """Return credentials that are good for all of `locations`, and storage with them."""

        def ends(config: StorageConfig) -> int | None:
            if earliest_expiry_ms(config) is None:
                return None
            moments = (expiry_ms(properties_for(at, config)) for at in locations)
            return min((moment for moment in moments if moment is not None), default=None)

        return self._with(self._source.current(self._opened[0], ends))

    def _after(self, error: AccessDenied, refused: StorageConfig) -> tuple[StorageConfig, Storage]:
        """Return other credentials, and storage with them. Raises `error` where there are none."""
        try:
            config = self._source.after_refusal(refused)
        except CredentialsUnavailable as why:
            # whatever else a store refuses, the same would be refused elsewhere
            raise (why if isinstance(error, ExpiredCredentials) else error) from why
        except FloebergError as why:
            raise error from why
        if fingerprint(config) == fingerprint(refused):
            raise error
        logger.info("credentials replaced", extra={"code": error.code})
        return self._with(config)

    def _with(self, config: StorageConfig) -> tuple[StorageConfig, Storage]:
        with self._lock:
            if config is not self._opened[0]:
                self._opened = config, self._open(with_credentials_of(self._config, config))
            return self._opened
