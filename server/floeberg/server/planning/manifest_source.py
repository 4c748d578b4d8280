"""The manifests of a snapshot, and what they list: from the cache, or read in a steady order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple

from floeberg.protocol.errors import CorruptManifest, MissingFile, Unsupported
from floeberg.protocol.files import ManifestFile
from floeberg.protocol.manifests import (
    Segment,
    concat_segments,
    decode_deleted,
    decode_manifest,
    describe_manifest,
    read_manifest_list,
)
from floeberg.protocol.manifests.columns import Int64s
from floeberg.protocol.snapshots import Snapshot
from floeberg.protocol.storage import Storage
from floeberg.server.planning.manifest_cache import (
    ListKey,
    Loaded,
    ManifestCache,
    ManifestKey,
    Origin,
)
from floeberg.server.planning.manifest_list import ManifestList
from floeberg.server.planning.manifest_loading import call_in_order, load_in_order
from floeberg.server.planning.manifest_merging import Part, runs
from floeberg.server.planning.plan import PlanTrace
from floeberg.server.planning.run import PlanRun

_AVRO_MAGIC = b"Obj\x01"


class _Merged(NamedTuple):
    """What several manifests are remembered by together, and their segment if it is."""

    key: bytes
    segment: Segment | None


class ManifestSource:
    """Reads one table's manifests through `storage`, asking `cache` first.

    Made for one plan: its `trace` tells what was cached and what was fetched so far.
    """

    def __init__(
        self, storage: Storage, cache: ManifestCache, table_uuid: str | None, run: PlanRun
    ) -> None:
        self._run = run
        self._storage = storage
        self._cache = cache
        self._table_uuid = table_uuid
        # of manifests whose description stands in themselves
        self._described_segments: dict[str, Segment] = {}
        self._list_cached = False
        self._origins: Counter[Origin] = Counter()
        self._fetched_bytes = 0

    @property
    def trace(self) -> PlanTrace:
        return PlanTrace(
            manifest_list_cached=self._list_cached,
            manifests_cached=self._origins[Origin.MEMORY],
            manifests_from_disk=self._origins[Origin.DISK],
            manifests_fetched=self._origins[Origin.STORAGE],
            fetched_bytes=self._fetched_bytes,
        )

    def manifests(self, snapshot: Snapshot) -> ManifestList:
        """Return the manifests of `snapshot`.

        Raises `MissingFile` and `CorruptManifest`, naming the file and that it is a manifest list,
        and `Unsupported` when it is encrypted.
        """
        if snapshot.manifest_list is None:
            # version 1 may name manifests in the table's metadata itself
            calls = [partial(self._described, m) for m in snapshot.manifests]
            described = call_in_order(calls, self._run)
            fetched = (m.length for m in described if m.location in self._described_segments)
            self._fetched_bytes += sum(fetched)
            return ManifestList(described, self._table_uuid)
        key = ListKey(self._table_uuid, snapshot.manifest_list)
        manifests = self._cache.manifest_list(key)
        if manifests is None:
            raw = self._read(key.location, "manifest list", snapshot.key_id is not None)
            manifests = ManifestList(read_manifest_list(raw, key.location), self._table_uuid)
            _check_not_lost(manifests, snapshot, key.location)
            self._cache.keep_manifest_list(key, manifests)
            self._fetched_bytes += len(raw)
        else:
            self._list_cached = True
        return manifests

    def segments(
        self, manifests: Sequence[ManifestFile]
    ) -> Generator[tuple[ManifestFile, Segment], None, None]:
        """Yield each manifest with its live entries, in the order given.

        Later manifests are fetched and decoded while earlier ones are used; close the generator if
        it is not used up. Raises as `manifests` does, at the first manifest in that order that
        cannot be read.
        """
        yield from self._segments(manifests, of=len(manifests))

    def _segments(
        self, manifests: Sequence[ManifestFile], of: int
    ) -> Generator[tuple[ManifestFile, Segment], None, None]:
        """Yield some of the `of` manifests that the plan reads."""
        known = [self._just_described(m) for m in manifests]
        unknown = [m for m, loaded in zip(manifests, known, strict=True) if loaded is None]
        kept = iter(self._cache.segments([self._key(m) for m in unknown]))
        missing = []
        for i, loaded in enumerate(known):
            if loaded is None:
                segment = next(kept)
                if segment is None:
                    missing.append(manifests[i])
                else:
                    known[i] = Loaded(segment, Origin.MEMORY)
        self._run.reading(of, sum(m.length for m in missing))
        with closing(
            load_in_order(missing, self._cache, self._table_uuid, self._read_manifest, self._run)
        ) as loading:
            for i, manifest in enumerate(manifests):
                loaded, known[i] = known[i], None  # not kept for longer than it is used
                if loaded is None:
                    loaded = next(loading)
                self._origins[loaded.origin] += 1
                self._fetched_bytes += loaded.fetched_bytes
                yield manifest, loaded.segment
                self._run.read_one()

    def parts(self, listed: ManifestList, places: Int64s) -> Generator[Part, None, None]:
        """Yield what `segments` does of the manifests at some places in a list, in the same order,
        but many small ones as one segment.

        Close it, and expect errors, as with `segments`.
        """
        found = [(listed.at(run), self._merged(listed, run)) for run in runs(listed, places)]
        apart = [manifest for run, merged in found if merged.segment is None for manifest in run]
        with closing(self._segments(apart, of=len(places))) as loading:
            for run, merged in found:
                if merged.segment is not None:
                    self._origins[Origin.MEMORY] += len(run)
                    yield Part(run, merged.segment)
                    self._run.read_one(len(run))
                    continue
                loaded = [next(loading)[1] for _ in run]
                together = concat_segments(loaded) if len(run) > 1 else None
                if together is not None:
                    self._cache.keep_merged(merged.key, together)
                    yield Part(run, together)
                else:
                    for manifest, segment in zip(run, loaded, strict=True):
                        yield Part([manifest], segment)

    def deleted(self, manifests: Sequence[ManifestFile]) -> list[Segment]:
        """Return the entries of manifests that are marked DELETED, without the manifests that have
        none.

        No plan has a use for them, so they are remembered nowhere, and fetched each time. Raises
        as `segments` does.
        """
        self._run.reading(len(manifests), sum(m.length for m in manifests))
        calls = [partial(self._deleted, manifest) for manifest in manifests]
        return [segment for segment in call_in_order(calls, self._run) if len(segment)]

    def _deleted(self, manifest: ManifestFile) -> Segment:
        self._run.check()
        return decode_deleted(self._read_manifest(manifest), manifest)

    def _merged(self, listed: ManifestList, run: Int64s) -> _Merged:
        if len(run) == 1:
            return _Merged(b"", None)
        key = listed.digests[run].tobytes()
        return _Merged(key, self._cache.merged(key, len(run)))

    def _described(self, location: str) -> ManifestFile:
        key = ListKey(self._table_uuid, location)
        known = self._cache.manifest_list(key)
        if known is not None:
            return known.manifests[0]
        raw = self._read(location, "manifest", encrypted=False)
        manifest = describe_manifest(raw, location)
        self._cache.keep_manifest_list(key, ManifestList([manifest], self._table_uuid))
        # so that it is not fetched again for its entries
        segment = decode_manifest(raw, manifest)
        self._cache.keep_segment(self._key(manifest), segment)
        self._described_segments[location] = segment
        return manifest

    def _just_described(self, manifest: ManifestFile) -> Loaded | None:
        segment = self._described_segments.pop(manifest.location, None)
        return None if segment is None else Loaded(segment, Origin.STORAGE)

    def _key(self, manifest: ManifestFile) -> ManifestKey:
        return ManifestKey.of(manifest, self._table_uuid)

    def _read_manifest(self, manifest: ManifestFile) -> bytes:
        return self._read(manifest.location, "manifest", manifest.key_metadata is not None)

    def _read(self, location: str, role: str, encrypted: bool) -> bytes:
        """Return the file. A key alone proves nothing: some writers name one for plain files."""
        try:
            raw = self._storage.read(location)
        except MissingFile as exc:
            raise MissingFile(location, role) from exc
        if encrypted and not raw.startswith(_AVRO_MAGIC):
            raise Unsupported(f"{role} {location} is encrypted")
        return raw


def _check_not_lost(manifests: ManifestList, snapshot: Snapshot, location: str) -> None:
    """Refuse a list of no manifests for a snapshot that counts data files: to Avro, a file that is
    cut after its header is whole.
    """
    files = snapshot.summary.get("total-data-files", "0")
    if not len(manifests) and files.isdecimal() and int(files):
        raise CorruptManifest(
            f"the manifest list {location} names no manifest, and snapshot {snapshot.snapshot_id}"
            f" has {files} data files"
        )
