"""Tell what planning a scan did, from the plan that it gave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

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
from floeberg.protocol.expressions.model import BoundExpression
from floeberg.protocol.files import Content, DeleteFile
from floeberg.protocol.schema import Schema
from floeberg.protocol.tasks import FileScanTask
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
    firsts = [task for task in plan.tasks if task.start == 0]  # one of each data file
    residuals = _residuals(firsts, scan.schema)
    return Explanation(
        table=table,
        snapshot_id=scan.snapshot.snapshot_id if scan.snapshot else None,
        filter=bound_to_named_json(scan.filter, scan.schema),
        levels=_levels(plan.counters),
        deletes=_deletes(firsts),
        residuals=tuple(residuals[:RESIDUALS_SHOWN]),
        distinct_residuals=len(residuals),
        files=len(firsts),
        tasks=len(plan.tasks),
        bytes=plan.total_bytes,
        rows_at_most=sum(max(task.data_file.record_count, 0) for task in firsts),
        rows=plan.total_records,
        endpoints=None if endpoints is None else tuple(endpoints),
        manifest_list_cached=trace.manifest_list_cached,
        manifests_cached=trace.manifests_cached,
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
    }
    deletes = {"partition values": counters.delete_files_skipped_by_partition}
    return (
        Level(
            name="data manifests",
            total=counters.data_manifests.listed,
            pruned=_manifest_pruning(counters.data_manifests),
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
            kept=counters.delete_files_listed - counters.delete_files_skipped_by_partition,
        ),
    )


def _manifest_pruning(counters: ManifestCounters) -> dict[str, int]:
    return {
        "no live files": counters.without_live_files,
        "partition summaries": counters.by_partition,
    }


class _Kind:
    """Adds up the deletes of one kind."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, int | None], DeleteFile] = {}
        self._data_files: set[str] = set()
        self._references = 0

    def add(self, delete: DeleteFile, data_file: str) -> None:
        self._files[delete.location, delete.content_offset] = delete
        self._data_files.add(data_file)
        self._references += 1

    def told(self, name: DeleteKind) -> AttachedDeletes:
        return AttachedDeletes(
            kind=name,
            files=len(self._files),
            data_files=len(self._data_files),
            references=self._references,
            records=sum(d.record_count for d in self._files.values()),
        )


def _deletes(tasks: Iterable[FileScanTask]) -> tuple[AttachedDeletes, ...]:
    """Return the kinds of deletes that `tasks` have, one task a data file."""
    kinds: dict[DeleteKind, _Kind] = {}
    for task in tasks:
        for delete in task.delete_files:
            kinds.setdefault(_kind(delete), _Kind()).add(delete, task.data_file.location)
    return tuple(kinds[name].told(name) for name in sorted(kinds))


def _kind(delete: DeleteFile) -> DeleteKind:
    if delete.is_deletion_vector:
        return "deletion vectors"
    if delete.content is Content.EQUALITY_DELETES:
        return "equality deletes"
    return "position deletes"


def _residuals(tasks: Iterable[FileScanTask], schema: Schema) -> list[ResidualEntry]:
    """Return the distinct residuals of `tasks`, one task a data file, the most common first."""
    # one object stands for a whole partition: what costs is done once for each of them
    by_object: dict[int, tuple[BoundExpression, int]] = {}
    for task in tasks:
        _, files = by_object.get(id(task.residual), (task.residual, 0))
        by_object[id(task.residual)] = task.residual, files + 1
    written: dict[bytes, Json] = {}
    counted: Counter[bytes] = Counter()
    for residual, files in by_object.values():
        form = bound_to_named_json(residual, schema)
        text = dump_json(form)
        written[text] = form
        counted[text] += files
    return [ResidualEntry(residual=written[t], files=n) for t, n in counted.most_common()]
