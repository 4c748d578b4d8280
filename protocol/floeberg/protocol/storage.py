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
from floeberg.protocol.types import Json


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
class StorageCredential:
    """FileIO properties that a catalog lends for the locations that begin with `prefix`; secret,
    so that the repr leaves their values out."""

    prefix: str
    properties: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class CredentialRenewal:
    """How a worker has credentials renewed: the table's name, for people, and what to show to a
    coordinator, which opens it (`floeberg.protocol.lending`)."""

    table: str
    token: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class StorageConfig:
    """How a table's files are reached.

    `properties` are Iceberg's FileIO properties (`s3.endpoint`, `s3.access-key-id`, …) and may be
    secret: the repr leaves their values out. `credentials` go before them, each for its locations.
    `rebase` replaces location prefixes before anything is opened, longest prefix first: for a
    warehouse that was copied from where its metadata says it is. Credentials are for locations as
    metadata has them; `renewal` is there where they can be renewed.
    """

    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    rebase: Mapping[str, str] = field(default_factory=dict)
    credentials: tuple[StorageCredential, ...] = ()
    renewal: CredentialRenewal | None = None

    @property
    def store(self) -> Hashable:
        """Return what decides which bytes a location means: where it is rebased to, and the store.

        Credentials are left out: they change with every plan, and open the same objects.
        """
        own = _which_store(self.properties)
        lent = ((c.prefix, _which_store(c.properties)) for c in self.credentials)
        others = tuple(sorted((prefix, ends) for prefix, ends in lent if ends))
        return (tuple(sorted(self.rebase.items())), own, *others)


def _which_store(properties: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((k, v) for k, v in properties.items() if k.endswith(_SAYS_WHICH_STORE)))


def credentials_to_json(credentials: Sequence[StorageCredential]) -> list[Json]:
    """Return credentials with their secrets, those that several prefixes share once.

    >>> credentials_to_json([StorageCredential("s3://a/", {"k": "v"})])
    [{'prefixes': ['s3://a/'], 'properties': {'k': 'v'}}]
    """
    shared: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for credential in credentials:
        key = tuple(sorted(credential.properties.items()))
        shared.setdefault(key, []).append(credential.prefix)
    return [
        {"prefixes": prefixes, "properties": dict(properties)}
        for properties, prefixes in shared.items()
    ]


def credentials_from_json(raw: Json) -> tuple[StorageCredential, ...]:
    """Return what `credentials_to_json` was given, in its order but for those that share. Raises
    `ValueError`, `KeyError` and `TypeError` for what it has not written."""
    return tuple(
        StorageCredential(str(prefix), {str(k): str(v) for k, v in shared["properties"].items()})
        for shared in raw
        for prefix in shared["prefixes"]
    )
