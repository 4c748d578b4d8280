"""Tell what planning a scan did, from the plan that it gave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from floeberg.protocol.actions import (
    RESIDUALS_SHOWN,
    AttachedDeletes,
    DeleteKind,
    ExplainedEndpoint,
    ExplainedStep,
    Explanation,
    Level,
    ResidualEntry,
)
from floeberg.protocol.bodies import dump_json
from floeberg.protocol.expressions.json_form import bound_to_named_json
from floeberg.protocol.files import Content, FileFormat
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.manifests.columns import Int64s, Mask
from floeberg.protocol.planned_tasks import PlannedTasks
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import Json
from floeberg.server.planning.plan import ManifestCounters, Plan, PlanCounters
from floeberg.server.planning.steps import Step


def explain(
    plan: Plan,
    *,
    table: str | None = None,
    endpoints: Sequence[ExplainedEndpoint] | None = None,
    before: Sequence[Step] = (),
    after: Sequence[Step] = (),
) -> Explanation:
    """Return what was looked at, pruned and attached on the way to `plan`.

    `endpoints` are those that the plan was placed on, if it was; `before` and `after` are steps
    around the planning.
    """
    scan, trace = plan.scan, plan.trace
    tasks = plan.tasks
    residuals = _residuals(tasks, scan.schema)
    return Explanation(
        table=table,
        snapshot_id=scan.snapshot.snapshot_id if scan.snapshot else None,
        filter=bound_to_named_json(scan.filter, scan.schema),
        levels=_levels(plan.counters),
        deletes=_deletes(tasks),
        residuals=tuple(residuals[:RESIDUALS_SHOWN]),
        distinct_residuals=len(residuals),
        files=sum(map(len, tasks.files)),
        tasks=len(tasks),
        bytes=plan.total_bytes,
        rows_at_most=_rows_at_most(tasks),
        rows=plan.total_records,
        endpoints=None if endpoints is None else tuple(endpoints),
        manifest_list_cached=trace.manifest_list_cached,
        manifests_cached=trace.manifests_cached,
        manifests_from_disk=trace.manifests_from_disk,
        manifests_fetched=trace.manifests_fetched,
        fetched_bytes=trace.fetched_bytes,
        steps=tuple(
            ExplainedStep(name=step.name, seconds=step.seconds)
            for step in (*before, *trace.steps, *after)
        ),
    )


def _levels(counters: PlanCounters) -> tuple[Level, ...]:
    files = {
        "partition values": counters.files_skipped_by_partition,
        "column metrics": counters.files_skipped_by_metrics,
        "limit": counters.files_skipped_by_limit,
    }
    deletes = {
        "partition values": counters.delete_files_skipped_by_partition,
        "column metrics": counters.delete_files_skipped_by_metrics,
    }
    return (
        Level(
            name="data manifests",
            total=counters.data_manifests.listed,
            pruned=_manifest_pruning(counters.data_manifests)
            | {"limit": counters.data_manifests.by_limit},
            kept=counters.data_manifests.read,
        ),
        Level(
            name="delete manifests",
            total=counters.delete_manifests.listed,
            pruned=_manifest_pruning(counters.delete_manifests)
            | {"no data left": counters.delete_manifests.without_data},
            kept=counters.delete_manifests.read,
        ),
        Level(name="data files", total=counters.files, pruned=files, kept=counters.files_planned),
        Level(
            name="delete files",
            total=counters.delete_files_listed,
            pruned=deletes,
            kept=counters.delete_files_kept,
        ),
    )


def _manifest_pruning(counters: ManifestCounters) -> dict[str, int]:
    return {
        "no live files": counters.without_live_files,
        "partition summaries": counters.by_partition,
    }


def _deletes(tasks: PlannedTasks) -> tuple[AttachedDeletes, ...]:
    """Return the kinds of deletes that the files of `tasks` have."""
    if not len(tasks.deletes):
        return ()
    contents, formats, records = (
        tasks.deletes.numbers(i) for i in (s.CONTENT, s.FORMAT, s.RECORD_COUNT)
    )
    is_vector = formats == s.FORMATS.index(FileFormat.PUFFIN)
    is_equality = ~is_vector & (contents == Content.EQUALITY_DELETES)
    kinds: dict[DeleteKind, Mask] = {
        "deletion vectors": is_vector,
        "equality deletes": is_equality,
        "position deletes": ~is_vector & ~is_equality,
    }
    attached = (_attached(name, kind, records, tasks) for name, kind in sorted(kinds.items()))
    return tuple(told for told in attached if told is not None)


def _attached(
    name: DeleteKind, kind: Mask, records: Int64s, tasks: PlannedTasks
) -> AttachedDeletes | None:
    """Return what `tasks` have of the deletes that `kind` says, None when they have none."""
    is_used = np.zeros(len(kind), dtype=np.bool_)
    data_files = references = 0
    for files in tasks.files:
        counts = files.deletes.counts_of(kind)
        data_files += int(np.count_nonzero(counts))
        references += int(counts.sum())
        is_used[files.deletes.used()] = True
    is_used &= kind
    if not references:
        return None
    return AttachedDeletes(
        kind=name,
        files=int(np.count_nonzero(is_used)),
        data_files=data_files,
        references=references,
        records=int(records[is_used].sum()),
    )


def _residuals(tasks: PlannedTasks, schema: Schema) -> list[ResidualEntry]:
    """Return the distinct residuals of the files of `tasks`, the most common first."""
    written: dict[bytes, Json] = {}
    counted: Counter[bytes] = Counter()
    for files in tasks.files:
        of_each = np.bincount(files.residual_of, minlength=len(files.residuals)).tolist()
        for residual, n in zip(files.residuals, of_each, strict=True):
            form = bound_to_named_json(residual, schema)
            text = dump_json(form)
            written[text] = form
            counted[text] += n
    return [ResidualEntry(residual=written[t], files=n) for t, n in counted.most_common()]


def _rows_at_most(tasks: PlannedTasks) -> int:
    return sum(int(np.maximum(f.numbers(s.RECORD_COUNT), 0).sum()) for f in tasks.files)
