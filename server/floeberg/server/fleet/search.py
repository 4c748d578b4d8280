"""Where to look for workers, and when, as a state machine: events in, instructions out.

Some workers are looked for at addresses that are given, others at those that a name stands for now.
Names are looked up again, and workers asked again, each period; what failed is tried sooner at
first. An address is let go when no name has stood for it for a lease: until then its worker may
still say that it drains, and a single answer of the DNS may be incomplete. One that drains is asked
for as long as it answers; when it no longer does, it has left.

Who is a member is decided by `floeberg.server.fleet.membership`, from the answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

_FIRST_RETRY_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Target:
    """Where a worker may be. `server_name` is what its certificate must be good for, where that is
    not the host of `uri`: the name that was looked up, since certificates hold no addresses of
    processes that come and go.
    """

    uri: str
    server_name: str | None = None


# --- what happens to a search --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Resolved:
    """A name stands for `targets`. `at` is the clock's reading in seconds, here and below."""

    at: float
    name: str
    targets: Sequence[Target]


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A name could not be looked up; nothing is known of what it stands for now."""

    at: float
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Answered:
    at: float
    target: Target
    worker_id: str
    is_draining: bool = False


@dataclass(frozen=True, slots=True)
class Silent:
    """A target did not answer, or not as a worker of this fleet."""

    at: float
    target: Target
    why: str


@dataclass(frozen=True, slots=True)
class Passed:
    """Time has passed."""

    at: float


@dataclass(frozen=True, slots=True)
class Wanted:
    """What workers say is wanted sooner than it is due."""

    at: float


SearchEvent = Resolved | Unresolved | Answered | Silent | Passed | Wanted


# --- what the caller is to do --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Resolve:
    """Look a name up, and tell: `Resolved` or `Unresolved`."""

    name: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask a target who it is, and tell: `Answered` or `Silent`."""

    target: Target


@dataclass(frozen=True, slots=True)
class Gone:
    """This worker has left the fleet."""

    worker_id: str


@dataclass(frozen=True, slots=True)
class Forget:
    """This target is asked no more."""

    target: Target


@dataclass(frozen=True, slots=True)
class Warn:
    """Log that a name or a target can't be had. It comes once, until it can be had again."""

    about: str | Target
    why: str


SearchInstruction = Resolve | Ask | Gone | Forget | Warn


@dataclass(frozen=True, slots=True)
class _Errand:
    """Something to be done again and again. `due_at` is None while it is being done."""

    due_at: float | None
    failures: int = 0
    is_tried: bool = False

    def begun(self) -> _Errand:
        return replace(self, due_at=None)

    def wanted(self, at: float) -> _Errand:
        """What failed before is tried again no sooner than it is due."""
        if self.due_at is None or self.failures:
            return self
        return replace(self, due_at=min(self.due_at, at))

    def done(self, at: float, period: float) -> _Errand:
        return _Errand(at + period, 0, True)

    def failed(self, at: float, period: float) -> _Errand:
        wait = min(_FIRST_RETRY_SECONDS * 2 ** min(self.failures, 16), period)
        return _Errand(at + wait, self.failures + 1, True)


@dataclass(frozen=True, slots=True)
class _Found:
    """What is known of a target: the worker that answered there last, and since when no name has
    stood for it.
    """

    errand: _Errand
    worker_id: str | None = None
    is_draining: bool = False
    unlisted_at: float | None = None


class Search:
    """The names and targets of one coordinator. Not safe for several threads: its caller serialises
    the events.

    `targets` are asked for ever, `names` looked up for ever.
    """

    def __init__(
        self, targets: Sequence[Target], names: Sequence[str], lease_seconds: float
    ) -> None:
        self._lease_seconds = lease_seconds
        self._period = lease_seconds / 3  # so that two questions may be lost
        self._fixed = frozenset(targets)
        self._names = {name: _Errand(0.0) for name in names}
        self._stands_for: dict[str, frozenset[Target]] = {}
        self._targets = {target: _Found(_Errand(0.0)) for target in targets}
        self._has_looked = not (names or targets)

    def handle(self, event: SearchEvent) -> list[SearchInstruction]:
        """Take the search from one state to the next, and return what is to be done about it."""
        out: list[SearchInstruction] = []
        match event:
            case Resolved(at, name, targets):
                self._names[name] = self._names[name].done(at, self._period)
                self._stands_for[name] = frozenset(targets)
                self._list_anew(at)
            case Unresolved(at, name, why):
                out += _warning(self._names[name], name, why)
                self._names[name] = self._names[name].failed(at, self._period)
            case Answered(at, target, worker_id, is_draining):
                found = self._targets[target]
                errand = found.errand.done(at, self._period)
                self._targets[target] = replace(
                    found, errand=errand, worker_id=worker_id, is_draining=is_draining
                )
            case Silent(at, target, why):
                found = self._targets[target]
                errand = found.errand.failed(at, self._period)
                if found.is_draining:
                    self._targets[target] = _Found(errand, unlisted_at=found.unlisted_at)
                    out += self._gone(found)
                else:
                    self._targets[target] = replace(found, errand=errand)
                    out += _warning(found.errand, target, why)
            case Wanted(at):
                for target, found in self._targets.items():
                    self._targets[target] = replace(found, errand=found.errand.wanted(at))
            case Passed():
                pass
            case _:
                assert_never(event)
        self._has_looked = self._has_looked or all(e.is_tried for e in self._errands())
        return [*out, *self._let_go(event.at), *self._begin(event.at)]

    @property
    def due_at(self) -> float | None:
        """When there is something to do again, should nothing happen before; None while all that
        there is to do is being done.
        """
        return min((e.due_at for e in self._errands() if e.due_at is not None), default=None)

    @property
    def has_looked(self) -> bool:
        """Whether every name has been looked up, and what was found then has been asked, with
        whatever success. It stays true.
        """
        return self._has_looked

    def _errands(self) -> list[_Errand]:
        return [*self._names.values(), *(found.errand for found in self._targets.values())]

    def _list_anew(self, at: float) -> None:
        listed = self._fixed.union(*self._stands_for.values())
        for target in listed - self._targets.keys():
            self._targets[target] = _Found(_Errand(at))
        for target, found in self._targets.items():
            if target in listed:
                self._targets[target] = replace(found, unlisted_at=None)
            elif found.unlisted_at is None:
                self._targets[target] = replace(found, unlisted_at=at)

    def _let_go(self, at: float) -> list[SearchInstruction]:
        out: list[SearchInstruction] = []
        for target, found in list(self._targets.items()):
            if found.unlisted_at is None or found.errand.due_at is None or found.is_draining:
                continue
            if found.worker_id is None or at >= found.unlisted_at + self._lease_seconds:
                del self._targets[target]
                out += [*self._gone(found), Forget(target)]
        return out

    def _begin(self, at: float) -> list[SearchInstruction]:
        out: list[SearchInstruction] = []
        for name, errand in self._names.items():
            if errand.due_at is not None and errand.due_at <= at:
                self._names[name] = errand.begun()
                out.append(Resolve(name))
        for target, found in self._targets.items():
            due_at = found.errand.due_at
            if due_at is not None and due_at <= at:
                self._targets[target] = replace(found, errand=found.errand.begun())
                out.append(Ask(target))
        return out

    def _gone(self, found: _Found) -> list[SearchInstruction]:
        """Return that a target's worker has left, unless it is known at another target too, as one
        that has an IPv4 and an IPv6 address is.
        """
        worker_id = found.worker_id
        if worker_id is None or any(o.worker_id == worker_id for o in self._targets.values()):
            return []
        return [Gone(worker_id)]


def _warning(errand: _Errand, about: str | Target, why: str) -> list[SearchInstruction]:
    return [] if errand.failures else [Warn(about, why)]
