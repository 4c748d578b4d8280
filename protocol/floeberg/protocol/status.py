"""What a coordinator and a worker tell of themselves: the facts of `floeberg status`, of the status
page and of its `/status.json`.

No part of a filter is among them, and no message of an error, which may repeat one: literals may be
personal data. A later version may add keys.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from floeberg.protocol.bodies import Reply, Request


class StatusRequest(Request):
    """Takes nothing."""


class CacheEntry(Reply):
    """How a cache has done since the start. `size_bytes` is None where it is not known."""

    name: str
    hits: int
    misses: int
    size_bytes: int | None = None


CertificateState = Literal["good", "expires soon", "expired"]
"""`expires soon`: within 14 days."""


class CertificateEntry(Reply):
    """A file of certificates, or of the key of one, that a process uses.

    `file` is the configuration's key for it. `expires_ms` and `state` are of what is in use (None:
    a key, which does not expire). `is_replaced` says whether the file holds something else by now,
    or is gone: the process uses what it read as it started.
    """

    file: str
    state: CertificateState
    expires_ms: int | None
    is_replaced: bool


# --- coordinator ---------------------------------------------------------------------------------


class WorkerEntry(Reply):
    """A worker as the coordinator knows it, from what it said last. The rates are those between
    its last two messages.
    """

    worker_id: str
    location: str
    state: Literal["ready", "draining"]
    version: str
    zone: str | None
    http_address: str | None
    max_streams: int
    streams: int
    max_bytes: int
    bytes_in_flight: int
    last_seen_ms: int
    lease_seconds: float = 0.0
    """How long it stays a member if nothing more is heard of it."""
    rows_per_second: float = 0.0
    bytes_per_second: float = 0.0


class CatalogEntry(Reply):
    name: str
    kind: str
    is_default: bool


QueryKind = Literal["scan", "sql", "plan", "count", "explain", "rest-plan", "schema"]
"""What was asked: to read, or only to plan, count or explain; by Flight or by REST."""


class RunningPlan(Reply):
    """A plan in the making. `phase` is its step, in the words of `Explanation.steps`; `manifests`
    are those that it has to read, 0 as long as that is not known. `request_id` is what its client
    calls it, or what it was given.
    """

    request_id: str | None = None
    kind: QueryKind = "scan"
    table: str
    principal: str | None
    phase: str
    manifests: int
    manifests_read: int
    seconds: float


class PlanFacts(Reply):
    """What a plan has kept and ruled out: `tasks` with `bytes` of data, in `endpoints` (None where
    the plan was not for reading), and the plan's `counters`.
    """

    tasks: int
    bytes: int
    endpoints: int | None
    counters: dict[str, int]


class ReadFacts(Reply):
    """How far a query is read, as workers said last: its streams `running` and `done`, the `tasks`
    that they are done with, and what clients have taken. What is read twice counts twice.
    """

    running: int
    done: int
    tasks: int
    rows: int
    bytes: int


class QueryEntry(Reply):
    """A query that has been planned, or was to be. `seconds` is what planning took; `code` is the
    error's, of one that failed or was cancelled. `read` is None where nobody has begun to read it.
    """

    query_id: str = ""
    request_id: str | None = None
    kind: QueryKind
    table: str
    principal: str | None
    outcome: Literal["planned", "failed", "cancelled"]
    code: str | None
    began_ms: int
    seconds: float
    plan: PlanFacts | None
    read: ReadFacts | None = None


class Status(Reply):
    """A coordinator and its fleet.

    `queries` counts scans since the start by outcome, `errors` failed calls by code. `plans` are
    those in the making, the oldest first; `recent` are the last queries, the newest first.
    """

    coordinator_id: str
    version: str
    state: Literal["ready", "draining"] = "ready"
    started_ms: int
    uptime_seconds: float
    workers: tuple[WorkerEntry, ...]
    catalogs: tuple[CatalogEntry, ...]
    queries: dict[str, int]
    plans: tuple[RunningPlan, ...] = ()
    recent: tuple[QueryEntry, ...] = ()
    caches: tuple[CacheEntry, ...] = ()
    errors: dict[str, int] = Field(default_factory=dict)
    certificates: tuple[CertificateEntry, ...] = ()


# --- worker --------------------------------------------------------------------------------------


class SeatEntry(Reply):
    """Where a worker stands with a coordinator that it was told of."""

    coordinator: str
    is_member: bool


class StreamEntry(Reply):
    """A stream that a worker sends, or has sent.

    `tasks` are its ticket's, and `task` the one that it is in, counted from 1; a stream that is
    resumed begins later than with the first. The rates are means since it began. `outcome` is None
    while it runs, and `waits_seconds` then how long its client has not taken the last batch.
    `request_id` is that of the query which was planned.
    """

    request_id: str | None = None
    table: str
    principal: str | None
    began_ms: int
    seconds: float
    tasks: int
    task: int
    rows: int
    bytes: int
    rows_per_second: float
    bytes_per_second: float
    waits_seconds: float = 0.0
    outcome: Literal["done", "failed", "cancelled"] | None
    code: str | None


class WorkerStatus(Reply):
    """A worker: its budgets, its streams, its place in the fleet.

    `coordinators` is how many of the `seats` it has. `rows` and `bytes` are what it has sent since
    the start, `ended` its streams by outcome, `errors` failed calls by code. `running` are streams
    under way, the oldest first; `recent` are the last that ended, the newest first.
    """

    worker: str
    location: str
    http: str
    version: str
    state: Literal["ready", "draining"]
    zone: str | None
    started_ms: int
    uptime_seconds: float
    streams: int
    max_streams: int
    bytes_in_flight: int
    max_bytes: int
    coordinators: int
    seats: tuple[SeatEntry, ...]
    rows: int
    bytes: int
    ended: dict[str, int]
    errors: dict[str, int]
    running: tuple[StreamEntry, ...]
    recent: tuple[StreamEntry, ...]
    caches: tuple[CacheEntry, ...]
    certificates: tuple[CertificateEntry, ...] = ()
