"""Queries that count the rows of a scan, which metadata may know without a row being read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.server.sql.fragments import Fragments
from floeberg.server.sql.names import Session
from floeberg.server.sql.occurrences import states_only
from floeberg.server.sql.plain_scan import PlainScan, SchemaOf, plain_scan
from floeberg.server.sql.statements import Kind, Statement

_TAKEN = frozenset({"expressions", "from_", "where"})
_PARTS = "parts"


@dataclass(frozen=True, slots=True)
class Counted:
    """A query whose answer is one row: how many rows `scan` has, in each of `columns` columns."""

    scan: PlainScan
    columns: int

    def fragments(self, name: str, counted: int) -> Fragments:
        """Return how the answer is made where `counted` rows are known, and the scan under `name`
        is of the others alone."""
        total = f"CAST(COALESCE(SUM(c0), 0) + {counted} AS BIGINT)"
        items = ", ".join([total] * self.columns)
        return Fragments(
            f"SELECT COUNT(*) AS c0 FROM {name}", f"SELECT {items} FROM {_PARTS}", _PARTS
        )


def counted(statement: Statement, session: Session, schema_of: SchemaOf) -> Counted | None:
    """Return the count that a query asks for, and nothing else; None where it is more.

    The scan's filter is exact. Parameters must have been bound. Raises what `plain_scan` does.
    """
    select = statement.tree
    while isinstance(select, exp.Subquery) and states_only(select, {"this"}):
        select = select.this
    if statement.kind is not Kind.QUERY or not isinstance(select, exp.Select):
        return None
    if not states_only(select, _TAKEN) or not all(map(_counts_rows, select.expressions)):
        return None
    rows = select.copy()
    rows.set("expressions", [exp.Star()])
    scan = plain_scan(replace(statement, tree=rows), session, schema_of)
    if scan is None or scan.limit is not None:
        return None
    return Counted(scan, len(select.expressions))


def _counts_rows(item: Node) -> bool:
    """Say whether an item of a select list is count(*), or the count of what is never null."""
    if isinstance(item, exp.Alias):
        item = item.this
    if not isinstance(item, exp.Count) or item.expressions:
        return False
    return item.this is None or isinstance(item.this, exp.Star | exp.Literal)
