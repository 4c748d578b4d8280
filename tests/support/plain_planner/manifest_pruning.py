"""Which manifests of a snapshot may list a file that a filter needs, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from floeberg.protocol.expressions.projection import project_inclusive
from floeberg.protocol.files import ManifestContent, ManifestFile
from floeberg.protocol.scans import ResolvedScan
from floeberg.server.planning.plan import ManifestCounters
from tests.support.plain_planner.summaries import manifest_may_match


@dataclass(frozen=True, slots=True)
class PlainlyPruned:
    """The manifests that a plan reads, each kind in the snapshot's order."""

    data: list[ManifestFile]
    deletes: list[ManifestFile]
    data_counters: ManifestCounters
    delete_counters: ManifestCounters


def prune_manifests_plainly(manifests: Sequence[ManifestFile], scan: ResolvedScan) -> PlainlyPruned:
    """Return what `prune_manifests` has to give; raises as it does."""
    data, data_counters = _kept([m for m in manifests if m.content is ManifestContent.DATA], scan)
    deletes, delete_counters = _kept(
        [m for m in manifests if m.content is ManifestContent.DELETES], scan
    )
    if not data:
        # without data there is nothing to delete from
        delete_counters = replace(delete_counters, without_data=len(deletes))
        deletes = []
    return PlainlyPruned(data, deletes, data_counters, delete_counters)


def _kept(
    manifests: Sequence[ManifestFile], scan: ResolvedScan
) -> tuple[list[ManifestFile], ManifestCounters]:
    live = [m for m in manifests if has_live_files(m)]
    kept = [m for m in live if _may_match(m, scan)]
    return kept, ManifestCounters(
        listed=len(manifests),
        without_live_files=len(manifests) - len(live),
        by_partition=len(live) - len(kept),
    )


def _may_match(manifest: ManifestFile, scan: ResolvedScan) -> bool:
    spec = scan.metadata.spec_by_id(manifest.spec_id)
    projected = project_inclusive(scan.filter, spec, scan.schema)
    return manifest_may_match(
        projected, spec, spec.partition_type(scan.schema), manifest.partitions
    )


def has_live_files(manifest: ManifestFile) -> bool:
    """Say whether a manifest may list a file that is not deleted; an unknown count may be any.

    No files that have rows are a contradiction: such a manifest is better looked into.
    """
    files = (manifest.added_files_count, manifest.existing_files_count)
    rows = (manifest.added_rows_count, manifest.existing_rows_count)
    return any(count != 0 for count in files) or any(rows)
