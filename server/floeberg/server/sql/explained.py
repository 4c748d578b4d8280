"""What EXPLAIN shows of a query: its road, what its scans read, and what is computed where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from floeberg.protocol.bodies import dump_json
from floeberg.protocol.expressions.json_form import bound_to_named_json
from floeberg.protocol.expressions.model import TRUE
from floeberg.server.flight.endpoints import PlannedScan
from floeberg.server.flight.scans import TableScan
from floeberg.server.planning import count_tasks
from floeberg.server.sql.roads import Road, Route

EXPLAINED = pa.schema([("item", pa.string()), ("value", pa.string())])

_MEANINGS = {
    Road.SCAN: "scan: clients read the rows from the workers",
    Road.PROJECTION: "projection: workers name the columns of the scan anew",
    Road.FRAGMENTS: "fragments: workers compute parts of the answer where they read the rows",
    Road.ENGINE: "engine: one worker computes the answer from the rows of the scans",
}


def explain_route(route: Route, planned: Sequence[PlannedScan]) -> pa.Table:
    """Return the rows of EXPLAIN for a query whose scans are planned."""
    rows = list(_rows(route, planned))
    return pa.table(
        [pa.array(column, pa.string()) for column in zip(*rows, strict=True)], schema=EXPLAINED
    )


def _rows(route: Route, planned: Sequence[PlannedScan]) -> Iterator[tuple[str, str]]:
    if (
        route.counted is not None
        and not planned[0].is_restricted  # whether metadata knows tells of its bounds
        and count_tasks(planned[0].plan.tasks).is_exact
    ):
        yield "road", "metadata: the coordinator counts the rows, and none is read"
    else:
        yield "road", _MEANINGS[route.road]
    scans = iter(planned)
    for one in route.sources:
        if isinstance(one.source, TableScan):
            told = _scan_rows(next(scans))
        else:
            told = iter([("told by the coordinator", one.source.label)])
        yield from ((f"{one.name} {item}", value) for item, value in told)
    if route.sql:
        yield "fragment" if route.road is Road.FRAGMENTS else "statement", route.sql
    if route.merge is not None:
        yield "merge", route.merge.sql


def _scan_rows(planned: PlannedScan) -> Iterator[tuple[str, str]]:
    plan, scan = planned.plan, planned.plan.scan
    yield "table", planned.table.name
    yield "snapshot", str(scan.snapshot.snapshot_id) if scan.snapshot else "none"
    yield "columns", ", ".join(field.name for field in scan.projection.fields) or "none, but rows"
    if planned.is_restricted:
        return  # the rest tells of rows and columns that a policy keeps back
    if scan.filter != TRUE:
        yield "filter", dump_json(bound_to_named_json(scan.filter, scan.schema)).decode()
    counters = plan.counters
    yield (
        "files",
        f"{counters.files_planned} of {counters.files} in the manifests that were read"
        f" ({counters.files_skipped_by_partition} pruned by partition,"
        f" {counters.files_skipped_by_metrics} by column metrics,"
        f" {counters.files_skipped_by_limit} by limit)",
    )
    yield "manifests", f"{counters.manifests - counters.manifests_skipped} of {counters.manifests}"
    yield "tasks", str(len(plan.tasks))
    yield "bytes", str(plan.total_bytes)
