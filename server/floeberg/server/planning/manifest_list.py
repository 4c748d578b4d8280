"""A manifest list as plans use it: the manifests, and as columns what rules some out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from floeberg.protocol.files import ManifestContent, ManifestFile
from floeberg.protocol.manifests.columns import Int64s, Mask
from floeberg.server.planning.vectorised import PartitionSummaries

# Measured in CPython 3.11.
_MANIFEST_FILE_BYTES, _SUMMARY_BYTES = 500, 150


@dataclass(frozen=True, slots=True)
class AlikeManifests:
    """Manifests of one spec with equally many summaries: their `places` in the list, ascending."""

    spec_id: int
    places: Int64s
    summaries: PartitionSummaries


class ManifestList:
    """The manifests of a snapshot, in its order. Never changes, so threads may share it.

    `are_data` says which list data files, and `are_live` which may list a file that is not deleted;
    both have the shape (n,). Every live one is in one of the `groups`.
    """

    def __init__(self, manifests: Sequence[ManifestFile]) -> None:
        self.manifests = tuple(manifests)
        rows = len(self.manifests)
        self.are_data: Mask = np.fromiter(
            (m.content is ManifestContent.DATA for m in self.manifests), np.bool_, rows
        )
        self.are_live: Mask = np.fromiter(map(_has_live_files, self.manifests), np.bool_, rows)
        alike: dict[tuple[int, int], list[int]] = {}
        for place in np.flatnonzero(self.are_live).tolist():
            manifest = self.manifests[place]
            alike.setdefault((manifest.spec_id, len(manifest.partitions)), []).append(place)
        self.groups = tuple(
            AlikeManifests(
                spec_id,
                np.array(places, dtype=np.int64),
                PartitionSummaries([self.manifests[place].partitions for place in places]),
            )
            for (spec_id, _), places in alike.items()
        )

    def __len__(self) -> int:
        return len(self.manifests)

    @property
    def memory_bytes(self) -> int:
        """About how much memory the list takes."""
        summaries = sum(len(manifest.partitions) for manifest in self.manifests)
        return (
            _MANIFEST_FILE_BYTES * (1 + len(self))
            + _SUMMARY_BYTES * summaries
            + self.are_data.nbytes
            + self.are_live.nbytes
            + sum(group.places.nbytes + group.summaries.memory_bytes for group in self.groups)
        )

    def at(self, places: Int64s) -> list[ManifestFile]:
        """Return the manifests at some places, in the order of these."""
        return [self.manifests[place] for place in places.tolist()]


def _has_live_files(manifest: ManifestFile) -> bool:
    """Say whether a manifest may list a file that is not deleted; an unknown count may be any.

    No files that have rows are a contradiction: such a manifest is better looked into.
    """
    files = (manifest.added_files_count, manifest.existing_files_count)
    rows = (manifest.added_rows_count, manifest.existing_rows_count)
    return any(count != 0 for count in files) or any(rows)
