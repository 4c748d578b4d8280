"""Decide which manifests of a snapshot a plan must read, and count why the others are not.

Errs on the side of reading, as all pruning does. Spec: "Scan Planning".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from floeberg.protocol.manifests.columns import Int64s, Mask
from floeberg.server.planning.manifest_list import ManifestList
from floeberg.server.planning.plan import ManifestCounters
from floeberg.server.planning.pruning import SpecFilters


@dataclass(frozen=True, slots=True)
class ManifestsToRead:
    """Which manifests a plan reads: the places of each kind in the snapshot's list, ascending."""

    data: Int64s
    deletes: Int64s
    data_counters: ManifestCounters
    delete_counters: ManifestCounters


def prune_manifests(listed: ManifestList, filters: SpecFilters) -> ManifestsToRead:
    """Say which manifests may list a file that the filter needs.

    Raises `CorruptMetadata` for a manifest of a spec that the table does not have.
    """
    may_match = np.zeros(len(listed), dtype=np.bool_)
    for group in listed.groups:
        may_match[group.places] = filters[group.spec_id].manifests_may_match(group.summaries)
    data, data_counters = _kept(listed, listed.are_data, may_match)
    deletes, delete_counters = _kept(listed, ~listed.are_data, may_match)
    if not len(data):
        # without data there is nothing to delete from
        delete_counters = replace(delete_counters, without_data=len(deletes))
        deletes = deletes[:0]
    return ManifestsToRead(data, deletes, data_counters, delete_counters)


def _kept(
    listed: ManifestList, are_of_kind: Mask, may_match: Mask
) -> tuple[Int64s, ManifestCounters]:
    live = int(np.count_nonzero(are_of_kind & listed.are_live))
    kept = np.flatnonzero(are_of_kind & may_match)
    total = int(np.count_nonzero(are_of_kind))
    return kept, ManifestCounters(total, total - live, live - len(kept))
