"""A scan: which rows and columns of which snapshot a caller asks for.

`ScanRequest` is what the caller wrote. `resolve` reads it against a table's metadata and gives a
`ResolvedScan`, in which every name is bound: that is what planning and reading work from.
"""

from __future__ import annotations

from dataclasses import dataclass

from floeberg.protocol.expressions.model import TRUE, BoundExpression, Expression
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.schema import Schema
from floeberg.protocol.snapshots import Snapshot


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """A scan as it was asked for. At most one of `snapshot_id`, `ref` and `as_of_ms` is given.

    `select` is None for every column of the schema; names may be dotted, and `_file`, `_pos`, …
    are metadata columns (unless the schema has a column of that name). `split_size` is in bytes;
    None leaves it to the planner, 0 is one task a file. `limit` counts rows.
    """

    filter: Expression = TRUE
    select: tuple[str, ...] | None = None
    snapshot_id: int | None = None
    ref: str | None = None
    as_of_ms: int | None = None
    case_sensitive: bool = True
    split_size: int | None = None
    limit: int | None = None
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class ResolvedScan:
    """A scan with every name bound to one snapshot of one table.

    `snapshot` is None for a table never written to. `schema` is the schema that is read (the
    snapshot's own, or the table's current one for a scan of a branch or of the table as it is).
    `projection` holds the columns of the answer in order, pruned, metadata columns included under
    their reserved ids. `filter` is bound to `schema`.
    """

    metadata: TableMetadata
    snapshot: Snapshot | None
    schema: Schema
    projection: Schema
    filter: BoundExpression
    request: ScanRequest
