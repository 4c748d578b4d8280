"""Decide which manifests of a snapshot a plan must read, and count why the others are not.

Errs on the side of reading, as all pruning does. Spec: "Scan Planning".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from floeberg.protocol.files import ManifestContent, ManifestFile
from floeberg.server.planning.plan import ManifestCounters
from floeberg.server.planning.pruning import SpecFilters, has_live_files


@dataclass(frozen=True, slots=True)
class ManifestsToRead:
    """The manifests that a plan reads, each kind in the snapshot's order."""

    data: tuple[ManifestFile, ...]
    deletes: tuple[ManifestFile, ...]
    data_counters: ManifestCounters
    delete_counters: ManifestCounters


def prune_manifests(manifests: Sequence[ManifestFile], filters: SpecFilters) -> ManifestsToRead:
    """Return the manifests that may list a file that the filter needs.

    Raises `CorruptMetadata` for a manifest of a spec that the table does not have.
    """
    data, data_counters = _kept(
        [m for m in manifests if m.content is ManifestContent.DATA], filters
    )
    deletes, delete_counters = _kept(
        [m for m in manifests if m.content is ManifestContent.DELETES], filters
    )
    if not data:
        # without data there is nothing to delete from
        delete_counters = ManifestCounters(
            delete_counters.listed,
            delete_counters.without_live_files,
            delete_counters.by_partition,
            without_data=len(deletes),
        )
        deletes = ()
    return ManifestsToRead(data, deletes, data_counters, delete_counters)


def _kept(
    manifests: Sequence[ManifestFile], filters: SpecFilters
) -> tuple[tuple[ManifestFile, ...], ManifestCounters]:
    live = [m for m in manifests if has_live_files(m)]
    kept = tuple(m for m in live if filters[m.spec_id].manifest_may_match(m))
    return kept, ManifestCounters(
        listed=len(manifests),
        without_live_files=len(manifests) - len(live),
        by_partition=len(live) - len(kept),
    )
