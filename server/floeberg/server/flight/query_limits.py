"""Hold a planned query to its limits: now, as far as its plan tells, and later by its tickets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from floeberg.protocol.errors import LimitExceeded
from floeberg.protocol.manifests.segment import RECORD_COUNT
from floeberg.protocol.tickets import StreamLimits
from floeberg.server.access import Limits
from floeberg.server.planning import Plan


def check_plan(plan: Plan, limits: Limits, *, is_restricted: bool = False) -> None:
    """Raise `LimitExceeded` where the plan shows that the scan takes more than it may.

    The number of rows is looked at where metadata decides it. Where the caller `is_restricted` by a
    policy, the error does not tell how much the files hold, which have other rows too.
    """
    check_plans([plan], limits, is_restricted=is_restricted)
    if limits.rows is not None and (plan.total_records or 0) > limits.rows:
        raise LimitExceeded("rows", limits.rows, f"the scan has {plan.total_records} rows")


def check_plans(plans: Sequence[Plan], limits: Limits, *, is_restricted: bool = False) -> None:
    """Raise `LimitExceeded` where the scans of one query together read more than it may."""
    tasks = sum(len(plan.tasks) for plan in plans)
    size = sum(plan.total_bytes for plan in plans)
    if limits.tasks is not None and tasks > limits.tasks:
        had = "more tasks than that" if is_restricted else f"{tasks} tasks"
        raise LimitExceeded("tasks", limits.tasks, f"the scan has {had}")
    if limits.bytes is not None and size > limits.bytes:
        had = "more than that" if is_restricted else f"{size} bytes"
        raise LimitExceeded("bytes", limits.bytes, f"the scan reads {had} of data files")


def stream_limits(plan: Plan, limits: Limits, began_ms: int) -> StreamLimits:
    """Return what tickets of a plan that was begun at `began_ms` hold workers to.

    Rows are left to workers only where the plan's files have more than are allowed, and metadata
    can't tell how many of them the answer has.
    """
    rows = limits.rows
    if rows is not None and (plan.total_records is not None or _most_rows(plan) <= rows):
        rows = None
    return statement_limits(replace(limits, rows=rows), began_ms)


def statement_limits(limits: Limits, began_ms: int) -> StreamLimits:
    """Return what the tickets of a statement that was begun at `began_ms` hold workers to."""
    is_counted = limits.queries is not None
    if limits.seconds is None:
        return StreamLimits(limits.rows, is_counted=is_counted)
    until_ms = began_ms + int(limits.seconds * 1000)
    return StreamLimits(limits.rows, limits.seconds, until_ms, is_counted)


def _most_rows(plan: Plan) -> float:
    """Return how many rows the answer has at most; infinity where a count makes no sense."""
    counts = [part.numbers(RECORD_COUNT) for part in plan.tasks.files]
    if any(len(part) and part.min() < 0 for part in counts):
        return float("inf")
    return sum(float(part.sum(dtype=np.float64)) for part in counts)
