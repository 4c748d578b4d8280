"""The workers that a coordinator knows, as a state machine: events in, instructions out.

A worker joins and holds a lease; it renews the lease while it lives, drains before it goes, and
leaves. A lease that runs out ends the membership as well: that is how a killed worker goes. The
clock's reading comes inside each event, so that the same events always give the same fleet.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker as it introduces itself.

    `worker_id` is new for each process; `location` is the address that clients are told, which
    need not be the one that the worker binds. `capacity` is how many streams it serves at once.
    """

    worker_id: str
    location: str
    capacity: int = 1
    max_bytes: int = 0
    zone: str | None = None
    version: str = ""
    http_address: str | None = None


class WorkerState(StrEnum):
    READY = "ready"
    DRAINING = "draining"  # finishes its streams and takes no new ones


@dataclass(frozen=True, slots=True)
class Member:
    """A worker with what the fleet knows of it. Times are seconds of the clock that the events
    carry; the rates are those between the last two renewals.
    """

    worker: Worker
    state: WorkerState
    joined_at: float
    seen_at: float
    lease_until: float
    streams: int = 0
    bytes_in_flight: int = 0
    rows_sent: int | None = None
    bytes_sent: int | None = None
    rows_per_second: float = 0.0
    bytes_per_second: float = 0.0

    @property
    def is_full(self) -> bool:
        """Whether the worker would refuse a stream, if it is as it said last."""
        worker = self.worker
        return self.streams >= worker.capacity or 0 < worker.max_bytes <= self.bytes_in_flight


# --- what happens to a fleet ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Join:
    """A worker introduces itself, for the first time or again. `at` is the clock's reading in
    seconds, here and below.
    """

    at: float
    worker: Worker


@dataclass(frozen=True, slots=True)
class Renew:
    """A worker lives; `streams` and `bytes_in_flight` are its load as it says, the others what it
    has sent since its start.
    """

    at: float
    worker_id: str
    streams: int = 0
    bytes_in_flight: int = 0
    rows_sent: int = 0
    bytes_sent: int = 0


@dataclass(frozen=True, slots=True)
class Drain:
    at: float
    worker_id: str


@dataclass(frozen=True, slots=True)
class Leave:
    at: float
    worker_id: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""

    at: float


FleetEvent = Join | Renew | Drain | Leave | Tick


# --- what the caller is to do --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Grant:
    """Tell the worker that it is a member for `lease_seconds` from now."""

    worker_id: str
    lease_seconds: float


@dataclass(frozen=True, slots=True)
class AskToJoin:
    """Tell the worker to join again: this coordinator doesn't know it (it restarted, or the
    lease ran out).
    """

    worker_id: str


class Change(StrEnum):
    JOINED = "joined"
    RETURNED = "returned"  # a member that joined again
    REPLACED = "replaced"  # another worker took its location
    DRAINING = "draining"
    LEFT = "left"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Tell:
    """Log and count a change of the fleet."""

    change: Change
    worker: Worker


Instruction = Grant | AskToJoin | Tell


class Fleet:
    """The members, and what an event does to them. Not safe for several threads: its caller
    serialises the events.
    """

    def __init__(self, lease_seconds: float) -> None:
        self._lease_seconds = lease_seconds
        self._members: dict[str, Member] = {}

    def handle(self, event: FleetEvent) -> list[Instruction]:
        """Take the fleet from one state to the next, and return what is to be done about it, in
        order.
        """
        out = self._expire(event.at)
        match event:
            case Join(at, worker):
                out += self._join(at, worker)
            case Renew(at, worker_id):
                member = self._members.get(worker_id)
                if member is None:
                    return [*out, AskToJoin(worker_id)]
                self._members[worker_id] = self._renewed(member, event)
                out.append(Grant(worker_id, self._lease_seconds))
            case Drain(_, worker_id):
                member = self._members.get(worker_id)
                if member is not None and member.state is WorkerState.READY:
                    self._members[worker_id] = replace(member, state=WorkerState.DRAINING)
                    out.append(Tell(Change.DRAINING, member.worker))
            case Leave(_, worker_id):
                member = self._members.pop(worker_id, None)
                if member is not None:
                    out.append(Tell(Change.LEFT, member.worker))
            case Tick():
                pass
            case _:
                assert_never(event)
        return out

    def members(self) -> tuple[Member, ...]:
        """Return every member, draining ones too, by worker id."""
        return tuple(self._members[k] for k in sorted(self._members))

    def serving(self) -> tuple[Worker, ...]:
        """Return the workers that may be named in new endpoints, by worker id."""
        return tuple(m.worker for m in self.members() if m.state is WorkerState.READY)

    def full(self) -> frozenset[str]:
        """Return the ids of those members that would refuse a stream, as they said last."""
        return frozenset(m.worker.worker_id for m in self.members() if m.is_full)

    def _expire(self, at: float) -> list[Instruction]:
        gone = [m for m in self.members() if m.lease_until <= at]
        for m in gone:
            del self._members[m.worker.worker_id]
        return [Tell(Change.EXPIRED, m.worker) for m in gone]

    def _renewed(self, member: Member, event: Renew) -> Member:
        # a member's first renewal has none before it, and may be of a worker that has sent for days
        rows_before = event.rows_sent if member.rows_sent is None else member.rows_sent
        bytes_before = event.bytes_sent if member.bytes_sent is None else member.bytes_sent
        passed = max(event.at - member.seen_at, 1e-3)  # two may come at one reading of the clock
        return replace(
            member,
            seen_at=event.at,
            lease_until=event.at + self._lease_seconds,
            streams=event.streams,
            bytes_in_flight=event.bytes_in_flight,
            rows_sent=event.rows_sent,
            bytes_sent=event.bytes_sent,
            rows_per_second=max(0, event.rows_sent - rows_before) / passed,
            bytes_per_second=max(0, event.bytes_sent - bytes_before) / passed,
        )

    def _join(self, at: float, worker: Worker) -> list[Instruction]:
        out: list[Instruction] = []
        # Two workers can't answer at one address: the one that had it was killed, and its lease
        # still runs.
        for m in self.members():
            other = m.worker
            if other.location == worker.location and other.worker_id != worker.worker_id:
                del self._members[other.worker_id]
                out.append(Tell(Change.REPLACED, other))
        known = self._members.get(worker.worker_id)
        self._members[worker.worker_id] = Member(
            worker,
            WorkerState.READY,
            joined_at=known.joined_at if known else at,
            seen_at=at,
            lease_until=at + self._lease_seconds,
        )
        out.append(Grant(worker.worker_id, self._lease_seconds))
        out.append(Tell(Change.RETURNED if known else Change.JOINED, worker))
        return out
