"""Planned files and tasks, as a planner would leave them, made of objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

import numpy as np

from floeberg.protocol.expressions.model import TRUE, BoundExpression
from floeberg.protocol.files import DataFile, DeleteFile, ManifestContent, ManifestFile
from floeberg.protocol.manifests import EntryStatus, ManifestEntry, Segment
from floeberg.protocol.manifests.columns import Int64s
from floeberg.protocol.manifests.packing import pack_entries
from floeberg.protocol.planned import DeleteFiles, PlannedFiles, References


def segment_of(files: Sequence[DataFile | DeleteFile], manifest: ManifestFile) -> Segment:
    return pack_entries([ManifestEntry(EntryStatus.ADDED, 1, f) for f in files], manifest)


def data_manifest(spec_id: int = 0, location: str = "s3://lake/db/orders/m.avro") -> ManifestFile:
    return ManifestFile(location, 1000, spec_id)


def planned_files(
    files: Sequence[DataFile],
    rows: Iterable[int] | None = None,
    residuals: Sequence[BoundExpression] = (TRUE,),
    residual_of: Sequence[int] | None = None,
    deletes: Sequence[Sequence[int]] | None = None,
    manifest: ManifestFile | None = None,
) -> PlannedFiles:
    """Return the `rows`, or all, of a manifest that has `files`."""
    manifest = manifest or data_manifest(files[0].spec_id if files else 0)
    kept = _ints(range(len(files)) if rows is None else rows)
    return PlannedFiles(
        segment_of(files, manifest),
        kept,
        tuple(residuals),
        _ints([0] * len(kept) if residual_of is None else residual_of),
        references(deletes or [()] * len(kept)),
        manifest,
    )


def references(lists: Sequence[Sequence[int]]) -> References:
    return References.of_flat(
        _ints(accumulate(map(len, lists), initial=0)), _ints(n for x in lists for n in x)
    )


def numbered_deletes(files: Sequence[DeleteFile]) -> DeleteFiles:
    """Number deletes in their order, which a segment each keeps: they may be of several specs."""
    manifests = (
        ManifestFile(f"s3://lake/db/orders/d{i}.avro", 10, f.spec_id, ManifestContent.DELETES)
        for i, f in enumerate(files)
    )
    return DeleteFiles(
        [(segment_of([f], m), _ints([0])) for f, m in zip(files, manifests, strict=True)]
    )


def _ints(values: Iterable[int]) -> Int64s:
    return np.array(list(values), dtype=np.int64)
