"""Fetch and decode the manifests of a snapshot, several at a time and in a steady order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import TypeVar

from floeberg.protocol.errors import CorruptManifest, MissingFile, Unsupported
from floeberg.protocol.files import ManifestFile
from floeberg.protocol.manifests import (
    ManifestEntry,
    describe_manifest,
    read_entries,
    read_manifest_list,
)
from floeberg.protocol.snapshots import Snapshot
from floeberg.protocol.storage import Storage
from floeberg.server.planning.manifest_cache import ListKey, ManifestCache, ManifestKey
from floeberg.server.planning.plan import PlanTrace

# Fetching from an object store is waiting, most of the time; decoding holds the interpreter's lock.
_FETCHES_AT_ONCE = 8

_AVRO_MAGIC = b"Obj\x01"

A = TypeVar("A")
R = TypeVar("R")


class ManifestSource:
    """Reads one table's manifests through `storage`, asking `cache` first.

    Made for one plan: its `trace` tells what was cached and what was fetched so far.
    """

    def __init__(self, storage: Storage, cache: ManifestCache, table_uuid: str | None) -> None:
        self._storage = storage
        self._cache = cache
        self._table_uuid = table_uuid
        self._just_fetched: frozenset[str] = frozenset()
        self.trace = PlanTrace()

    def manifests(self, snapshot: Snapshot) -> Sequence[ManifestFile]:
        """Return the manifests of `snapshot`, in its order.

        Raises `MissingFile` and `CorruptManifest`, naming the file and that it is a manifest list,
        and `Unsupported` when it is encrypted.
        """
        if snapshot.manifest_list is None:
            # version 1 may name manifests in the table's metadata itself
            described = list(_map_in_order(self._described, snapshot.manifests))
            self._just_fetched = frozenset(m.location for m, size_bytes in described if size_bytes)
            fetched_bytes = sum(size_bytes for _, size_bytes in described)
            self.trace = replace(self.trace, fetched_bytes=fetched_bytes)
            return [m for m, _ in described]
        key = ListKey(self._table_uuid, snapshot.manifest_list)
        manifests = self._cache.manifest_list(key)
        if manifests is None:
            raw = self._read(key.location, "manifest list", snapshot.key_id is not None)
            manifests = tuple(read_manifest_list(raw, key.location))
            _check_not_lost(manifests, snapshot, key.location)
            self._cache.keep_manifest_list(key, manifests)
            self.trace = replace(self.trace, fetched_bytes=len(raw))
        else:
            self.trace = replace(self.trace, manifest_list_cached=True)
        return manifests

    def entries(
        self, manifests: Sequence[ManifestFile]
    ) -> Generator[tuple[ManifestFile, Sequence[ManifestEntry]], None, None]:
        """Yield each manifest with its live entries, in the order given.

        Later manifests are fetched while earlier ones are used; close the generator if it is not
        used up. Raises as `manifests` does, at the first manifest in that order that cannot be
        read.
        """
        known = [self._cache.entries(self._key(m)) for m in manifests]
        missing = [m for m, entries in zip(manifests, known, strict=True) if entries is None]
        fetched = len(missing) + sum(m.location in self._just_fetched for m in manifests)
        self.trace = replace(
            self.trace,
            manifests_cached=len(manifests) - fetched,
            manifests_fetched=fetched,
            fetched_bytes=self.trace.fetched_bytes + sum(m.length for m in missing),
        )
        with closing(_map_in_order(self._fetched, missing)) as decoded:
            for manifest, entries in zip(manifests, known, strict=True):
                yield manifest, next(decoded) if entries is None else entries

    def _described(self, location: str) -> tuple[ManifestFile, int]:
        """Return a manifest and how many bytes were fetched for it."""
        key = ListKey(self._table_uuid, location)
        known = self._cache.manifest_list(key)
        if known is not None:
            return known[0], 0
        raw = self._read(location, "manifest", encrypted=False)
        manifest = describe_manifest(raw, location)
        self._cache.keep_manifest_list(key, (manifest,))
        self._decode(raw, manifest)  # so that it is not fetched again for its entries
        return manifest, len(raw)

    def _fetched(self, manifest: ManifestFile) -> Sequence[ManifestEntry]:
        raw = self._read(manifest.location, "manifest", manifest.key_metadata is not None)
        return self._decode(raw, manifest)

    def _decode(self, raw: bytes, manifest: ManifestFile) -> Sequence[ManifestEntry]:
        entries = tuple(read_entries(raw, manifest))
        self._cache.keep_entries(self._key(manifest), entries)
        return entries

    def _key(self, manifest: ManifestFile) -> ManifestKey:
        return ManifestKey(
            self._table_uuid,
            manifest.location,
            manifest.spec_id,
            manifest.sequence_number,
            manifest.added_snapshot_id,
            manifest.first_row_id,
        )

    def _read(self, location: str, role: str, encrypted: bool) -> bytes:
        """Return the file. A key alone proves nothing: some writers name one for plain files."""
        try:
            raw = self._storage.read(location)
        except MissingFile as exc:
            raise MissingFile(location, role) from exc
        if encrypted and not raw.startswith(_AVRO_MAGIC):
            raise Unsupported(f"{role} {location} is encrypted")
        return raw


def _map_in_order(function: Callable[[A], R], arguments: Sequence[A]) -> Generator[R, None, None]:
    """Yield the results in order, keeping a few calls ahead of whoever takes them."""
    if len(arguments) < 2:
        yield from map(function, arguments)
        return
    with ThreadPoolExecutor(_FETCHES_AT_ONCE, thread_name_prefix="manifests") as pool:
        ahead: list[Future[R]] = []
        try:
            for argument in arguments:
                ahead.append(pool.submit(function, argument))
                if len(ahead) > 2 * _FETCHES_AT_ONCE:
                    yield ahead.pop(0).result()
            while ahead:
                yield ahead.pop(0).result()
        finally:
            for future in ahead:
                future.cancel()


def _check_not_lost(manifests: Sequence[ManifestFile], snapshot: Snapshot, location: str) -> None:
    """Refuse a list of no manifests for a snapshot that counts data files: to Avro, a file that is
    cut after its header is whole.
    """
    files = snapshot.summary.get("total-data-files", "0")
    if not manifests and files.isdecimal() and int(files):
        raise CorruptManifest(
            f"the manifest list {location} names no manifest, and snapshot {snapshot.snapshot_id}"
            f" has {files} data files"
        )
