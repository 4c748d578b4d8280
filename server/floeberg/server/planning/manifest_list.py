"""A manifest list as plans use it: the manifests, and as columns what is asked of all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from floeberg.protocol.files import ManifestContent, ManifestFile
from floeberg.protocol.manifests.columns import Bytes, Int64s, Mask
from floeberg.server.planning.vectorised import PartitionSummaries

# Measured in CPython 3.11.
_MANIFEST_FILE_BYTES, _SUMMARY_BYTES = 500, 150
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class AlikeManifests:
    """Manifests of one spec with equally many summaries: their `places` in the list, ascending."""

    spec_id: int
    places: Int64s
    summaries: PartitionSummaries


class ManifestList:
    """The manifests of a snapshot, in its order. Never changes, so threads may share it.

    `are_data` says which list data files, `are_live` which may list a file that is not deleted,
    `lengths` are their bytes, and `kinds` are equal for those of one content and spec; all have the
    shape (n,). Every live manifest is in one of the `groups`.
    """

    def __init__(self, manifests: Sequence[ManifestFile], table_uuid: str | None) -> None:
        self.manifests = tuple(manifests)
        self._table_uuid = table_uuid
        rows = len(self.manifests)
        self.are_data: Mask = np.fromiter(
            (m.content is ManifestContent.DATA for m in self.manifests), np.bool_, rows
        )
        self.are_live: Mask = np.fromiter(map(_has_live_files, self.manifests), np.bool_, rows)
        self.lengths = np.fromiter((m.length for m in self.manifests), np.int64, rows)
        kinds: dict[tuple[int, ManifestContent], int] = {}
        self.kinds = np.fromiter(
            (kinds.setdefault((m.spec_id, m.content), len(kinds)) for m in self.manifests),
            np.int64,
            rows,
        )
        self.groups = tuple(_grouped(self.manifests, self.are_live))

    def __len__(self) -> int:
        return len(self.manifests)

    @cached_property
    def digests(self) -> Bytes:
        """What is the same only for the same manifest of the same table that gives its entries the
        same, in any of its lists; shape (n, 16).
        """
        table = repr(self._table_uuid)
        found = b"".join(_digest(manifest, table) for manifest in self.manifests)
        return np.frombuffer(found, np.uint8).reshape(len(self), _DIGEST_BYTES)

    @property
    def memory_bytes(self) -> int:
        """About how much memory the list takes."""
        summaries = sum(len(manifest.partitions) for manifest in self.manifests)
        columns = (self.are_data, self.are_live, self.lengths, self.kinds)
        return (
            _MANIFEST_FILE_BYTES * (1 + len(self))
            + _SUMMARY_BYTES * summaries
            + _DIGEST_BYTES * len(self)
            + sum(column.nbytes for column in columns)
            + sum(group.places.nbytes + group.summaries.memory_bytes for group in self.groups)
        )

    def at(self, places: Int64s) -> list[ManifestFile]:
        """Return the manifests at some places, in the order of these."""
        return [self.manifests[place] for place in places.tolist()]


def _grouped(manifests: Sequence[ManifestFile], are_live: Mask) -> Iterator[AlikeManifests]:
    alike: dict[tuple[int, int], list[int]] = {}
    for place in np.flatnonzero(are_live).tolist():
        manifest = manifests[place]
        alike.setdefault((manifest.spec_id, len(manifest.partitions)), []).append(place)
    for (spec_id, _), places in alike.items():
        summaries = PartitionSummaries([manifests[place].partitions for place in places])
        yield AlikeManifests(spec_id, np.array(places, dtype=np.int64), summaries)


def _digest(manifest: ManifestFile, table: str) -> bytes:
    """Return a digest of all that a `ManifestKey` has."""
    # the location last: it alone may hold anything
    whole = (
        f"{manifest.length} {manifest.content:d} {manifest.spec_id} {manifest.sequence_number}"
        f" {manifest.added_snapshot_id} {manifest.first_row_id} {table} {manifest.location}"
    )
    return hashlib.blake2b(whole.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).digest()


def _has_live_files(manifest: ManifestFile) -> bool:
    """Say whether a manifest may list a file that is not deleted; an unknown count may be any.

    No files that have rows are a contradiction: such a manifest is better looked into.
    """
    files = (manifest.added_files_count, manifest.existing_files_count)
    rows = (manifest.added_rows_count, manifest.existing_rows_count)
    return any(count != 0 for count in files) or any(rows)
