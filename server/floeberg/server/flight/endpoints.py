"""Hand a plan out: which worker reads which tasks, and what each endpoint's ticket says.

Knows nothing of Flight.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import assert_never

from floeberg.protocol.errors import FleetBusy, PlanTooLarge
from floeberg.protocol.requests import current_request
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.tickets import NO_LIMITS, Origin, ReadOptions, ReadPlan, StreamLimits
from floeberg.server.catalogs import LoadedTable
from floeberg.server.config import RedeemAt
from floeberg.server.fleet import MAX_LOCATIONS, Placement, Worker, place, rank
from floeberg.server.flight.lending import renewal_of
from floeberg.server.flight.members import Members
from floeberg.server.flight.sealing import seal_tickets
from floeberg.server.planning import Plan, PlanRun, Stopwatch

REUSE_CONNECTION = "arrow-flight-reuse-connection://?"

WAITING_FOR_WORKERS = "wait for workers"

_LOOKS_EVERY_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class ScanPolicy:
    """How scans are answered; see the keys of these names in `CoordinatorConfig`."""

    ticket_seconds: float = 3600.0
    redeem_at: RedeemAt = "workers"
    fallbacks: int = 2
    max_endpoints_per_worker: int = 4
    batch_bytes: int = 2 << 20
    max_info_bytes: int = 3 << 20
    max_tasks: int = 20_000_000
    bind_tickets: bool = False
    refuse_when_full: bool = True


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A sealed ticket and where to redeem it, in order; no location means where it came from."""

    ticket: bytes
    locations: tuple[str, ...]
    expires_at_ms: int


@dataclass(frozen=True, slots=True)
class PlannedScan:
    """A plan of a table; where it `is_restricted`, the caller may not read all of that. `query_id`
    is what workers call it, where it is planned to be read, and they hold it to `limits`."""

    table: LoadedTable
    plan: Plan
    is_restricted: bool = False
    query_id: str | None = None
    limits: StreamLimits = NO_LIMITS


@dataclass(frozen=True, slots=True)
class Workers:
    """The workers that may be given tasks: those with room for a stream, and those without."""

    free: tuple[Worker, ...]
    full: tuple[Worker, ...]

    def or_full(self) -> Workers:
        """Return all of them as free where none is."""
        return self if self.free else Workers(self.full, ())


class Endpoints:
    """Makes the endpoints of plans. Safe to use from several threads."""

    def __init__(
        self,
        members: Members,
        keyring: Keyring,
        policy: ScanPolicy,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self.keyring = keyring
        self._members = members
        self._policy = policy
        self._now_ms = now_ms

    @property
    def batch_bytes(self) -> int:
        return self._policy.batch_bytes

    @property
    def max_info_bytes(self) -> int:
        return self._policy.max_info_bytes

    def binds_to(self, principal: str | None) -> bool:
        """Say whether tickets of a principal are bound to it."""
        return self._policy.bind_tickets and principal is not None

    def workers(self) -> Workers:
        """Return the workers that may be given tasks, full ones where no other is there."""
        return Workers(*self._members.with_room()).or_full()

    def admit(self, run: PlanRun, *, room_seconds: float = 0.0) -> Workers:
        """Return the workers for a query that `run` plans. Raises `NoWorkers`, and `FleetBusy` when
        none has room.

        Waits for the first worker of a coordinator that has just begun, and up to `room_seconds`
        for room; raises what `run.check` does meanwhile.

        What they said last is some seconds old, and others plan for them too: a worker that has no
        room after all refuses by itself.
        """
        until = self._clock() + room_seconds
        workers = self._admitted(until)
        if workers is not None:
            return workers
        run.enter(WAITING_FOR_WORKERS)
        with run.waiting():
            while workers is None:
                self._members.wait_for_news(_LOOKS_EVERY_SECONDS)
                run.check()
                workers = self._admitted(until)
        return workers

    def _admitted(self, until: float) -> Workers | None:
        """Return the workers for a query, None where there are none and it is to wait."""
        free, full = self._members.with_room()
        if full and not free and self._policy.refuse_when_full:
            if self._clock() < until:
                return None
            raise FleetBusy(len(full))
        workers = Workers(free, full).or_full()
        if workers.free:
            return workers
        if self._members.awaits_first():
            return None
        raise self._members.refusal()

    def locations(self) -> tuple[str, ...]:
        """Return where tickets may be redeemed now, as an endpoint would name it."""
        workers = self.workers().free
        return self.named(workers[:MAX_LOCATIONS]) if workers else ()

    def rank(self, workers: Workers, key: str) -> tuple[Worker, ...]:
        """Return who may run a statement, first choice first; the same for the same key."""
        ranked = [*rank(workers.free, key), *rank(workers.full, key)]
        return tuple(ranked[: 1 + self._policy.fallbacks])

    def expires_at_ms(self) -> int:
        """Return until when a ticket is good that is sealed now."""
        return self._now_ms() + int(self._policy.ticket_seconds * 1000)

    def check_tasks(self, tasks: int) -> None:
        """Raise `PlanTooLarge` for more tasks than are handed out."""
        if tasks > self._policy.max_tasks:
            raise PlanTooLarge(
                f"the scan has {tasks} tasks, and at most {self._policy.max_tasks} are handed out"
            )

    def place(self, plan: Plan, workers: Workers, watch: Stopwatch) -> tuple[Placement, ...]:
        with watch.step("place tasks on workers"):
            return place(
                plan.tasks.sizes,
                workers.free,
                full=workers.full,
                affinity=plan.tasks.locations,
                endpoints_per_worker=(
                    min(2, self._policy.max_endpoints_per_worker),
                    self._policy.max_endpoints_per_worker,
                ),
                fallbacks=self._policy.fallbacks,
                one_endpoint=plan.scan.request.limit is not None,
            )

    def seal(
        self,
        planned: PlannedScan,
        placements: tuple[Placement, ...],
        principal: str | None,
        watch: Stopwatch,
        *,
        for_workers: bool = False,
        max_info_bytes: int | None = None,
    ) -> tuple[Endpoint, ...]:
        """Return the endpoints of a plan; `for_workers` are those that a worker reads, who gets at
        all the others. `max_info_bytes` is the plan's share of the answer, None for all of it."""
        locations = worker_locations if for_workers else self.named
        expires_at_ms = self.expires_at_ms()
        with watch.step("seal tickets"):
            tickets = seal_tickets(
                self._read_plan(planned, expires_at_ms),
                planned.plan.tasks,
                [(p.first, p.stop) for p in placements],
                self.keyring,
                principal=principal,
                bound=self.binds_to(principal),
                expires_at_ms=expires_at_ms,
                max_info_bytes=max_info_bytes or self.max_info_bytes,
                origin=origin_of(planned),
                limits=planned.limits,
            )
            return tuple(
                Endpoint(ticket, locations(p.workers), expires_at_ms)
                for ticket, p in zip(tickets, placements, strict=True)
            )

    def _read_plan(self, planned: PlannedScan, expires_at_ms: int) -> ReadPlan:
        scan, table = planned.plan.scan, planned.table
        storage = table.storage
        if table.credentials is not None:
            # what is good for a while longer, however long the plan took
            storage = table.credentials.current(storage)
            renewal = renewal_of(table, self.keyring, expires_at_ms=expires_at_ms)
            storage = replace(storage, renewal=renewal)
        return ReadPlan(
            metadata=scan.metadata.for_reading(scan.snapshot),
            schema_id=scan.schema.schema_id,
            projection=scan.projection,
            tasks=(),  # a ticket has its own
            storage=storage,
            options=ReadOptions(
                batch_size=None,
                batch_bytes=self._policy.batch_bytes,
                limit=scan.request.limit,
            ),
        )

    def named(self, workers: tuple[Worker, ...]) -> tuple[str, ...]:
        """Return where a client redeems a ticket that these workers do."""
        named = worker_locations(workers)
        match self._policy.redeem_at:
            case "workers":
                return named
            case "coordinator":
                return ()
            case "both":
                return (*named, REUSE_CONNECTION)
            case _:
                assert_never(self._policy.redeem_at)


def worker_locations(workers: tuple[Worker, ...]) -> tuple[str, ...]:
    return tuple(worker.location for worker in workers)


def origin_of(planned: PlannedScan) -> Origin:
    table, request = planned.table.name, current_request()
    if request is None:
        return Origin(planned.query_id, table=table)
    return Origin(planned.query_id, request.request_id, table, request.traceparent)
