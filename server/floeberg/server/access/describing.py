"""What a caller is told of a table without scanning it: nothing that tells of rows and columns
which a policy keeps back.
"""

from __future__ import annotations

from floeberg.protocol.actions import SnapshotList, TableDescription
from floeberg.protocol.status import QueryEntry, RunningPlan, Status
from floeberg.protocol.types import Json
from floeberg.server.access.callers import Caller
from floeberg.server.catalogs import LoadedTable
from floeberg.server.describing import describe_table, list_snapshots


def describe_for(caller: Caller, table: LoadedTable) -> TableDescription:
    """Return what the table is like for `caller`.

    Under a policy, properties (which may name any column) and locations are left out, and so are
    the partition and sort fields that are made of a masked or hidden column.
    """
    told = describe_table(table.metadata, table.metadata_location, table.catalog, table.identifier)
    view = caller.view(table)
    if view is None:
        return told
    return told.model_copy(
        update={
            "location": None,
            "metadata_location": None,
            "table_schema": view.shown(table.metadata.schema()).to_json(),
            "partition_specs": tuple(spec.to_json() for spec in view.specs()),
            "sort_orders": tuple(order.to_json() for order in view.sort_orders()),
            "properties": {},
        }
    )


def list_snapshots_for(caller: Caller, table: LoadedTable) -> SnapshotList:
    """Return the table's snapshots as `caller` may know them.

    Under a policy, their summaries are left out, which count the rows and files of the whole table
    and of its partitions, and so are the locations of manifest lists.
    """
    told = list_snapshots(table.metadata)
    if caller.view(table) is None:
        return told
    bare: dict[str, Json] = {"summary": {}, "manifest_list": None}
    return told.model_copy(
        update={"snapshots": tuple(s.model_copy(update=bare) for s in told.snapshots)}
    )


def status_for(caller: Caller, status: Status) -> Status:
    """Return a status as `caller` may know it.

    Under policies, it has no queries of others, which may be of tables that the caller knows
    nothing of, and does not say how many manifests and files its own have looked at.
    """
    if caller.policies is None:
        return status

    def is_own(entry: RunningPlan | QueryEntry) -> bool:
        return entry.principal == caller.principal

    bare = {"manifests": 0, "manifests_read": 0}
    return status.model_copy(
        update={
            "plans": tuple(p.model_copy(update=bare) for p in status.plans if is_own(p)),
            "recent": tuple(
                q.model_copy(update={"plan": None}) for q in status.recent if is_own(q)
            ),
        }
    )
