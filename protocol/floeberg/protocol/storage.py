"""The seam to storage: a location and properties give something that reads bytes.

Protocol holds only the seam, what a location means, and where a copied warehouse lives now; the
implementations over real file systems come with the process (`floeberg.process.storage`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import pyarrow as pa

from floeberg.protocol.errors import FloebergError


@runtime_checkable
class Storage(Protocol):
    """Reads objects by the locations that table metadata names. Safe to use from several threads.

    Every method raises `MissingFile` when the object is not there, `AccessDenied` when storage
    refuses the credentials, and `StorageUnavailable` when it cannot be reached; each names the
    location. A location is opaque: it is rebased and its scheme normalised, nothing else.
    """

    def read(self, location: str) -> bytes:
        """Return the whole object."""
        ...

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of each (start, length), in the order given; a range beyond the end
        comes back short."""
        ...

    def read_many(
        self, requests: Sequence[tuple[str, Sequence[tuple[int, int]]]]
    ) -> list[list[bytes] | FloebergError]:
        """Return for each (location, ranges) what `read_ranges` would return, or the error that it
        would raise: all are asked for at once, and one that fails takes no other with it."""
        ...

    def size(self, location: str) -> int:
        """Return the object's size in bytes."""
        ...

    def open(self, location: str) -> pa.NativeFile:
        """Return a random-access file over the object; the caller closes it."""
        ...

    def list(self, location: str) -> Sequence[str]:
        """Return the names (not paths) of the entries directly below a directory, sorted; empty if
        there is none."""
        ...

    def is_directory(self, location: str) -> bool: ...

    def is_local(self, location: str) -> bool:
        """Say whether a request for `location` takes no longer than its bytes take to copy, so that
        nothing is gained by asking before there is need. Asks nobody and raises nothing."""
        ...


_SAYS_WHICH_STORE = ("endpoint", "region", "account-name", "profile-name")
"""How the names of properties end: buckets of one name differ between AWS's partitions, and a
profile may name an endpoint."""


class StorageFactory(Protocol):
    def __call__(self, config: StorageConfig) -> Storage: ...


@dataclass(frozen=True, slots=True)
class StorageConfig:
    """How a table's files are reached.

    `properties` are Iceberg's FileIO properties (`s3.endpoint`, `s3.access-key-id`, …) and may be
    secret: the repr leaves their values out. `rebase` replaces location prefixes before anything is
    opened, longest prefix first: for a warehouse that was copied from where its metadata says it
    is.
    """

    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    rebase: Mapping[str, str] = field(default_factory=dict)

    @property
    def store(self) -> Hashable:
        """Return what decides which bytes a location means: where it is rebased to, and the store.

        Credentials are left out: they change with every plan, and open the same objects.
        """
        where = {k: v for k, v in self.properties.items() if k.endswith(_SAYS_WHICH_STORE)}
        return (tuple(sorted(self.rebase.items())), tuple(sorted(where.items())))
