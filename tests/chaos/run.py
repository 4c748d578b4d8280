"""One run: the store, the proxy, the fleet and the clients, for as long as it is to last."""

from __future__ import annotations

import random
import secrets
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from floeberg.client import connect
from tests.chaos.clients import Crowd
from tests.chaos.faults import CALM, Fault, FaultProxy, Odds, fault_proxy
from tests.chaos.fleet import Fleet, Havoc, running_fleet
from tests.chaos.lake import FULL, Question, Size, write_lake
from tests.chaos.stillness import watching
from tests.chaos.summary import summary
from tests.chaos.tally import LONGEST_QUERY_SECONDS, Kind, Outcome, Tally
from tests.support.services import Seaweed, run_seaweed

USUAL = Odds(
    {
        Fault.DELAY: 0.02,
        Fault.INTERNAL_ERROR: 0.01,
        Fault.SLOW_DOWN: 0.01,
        Fault.RESET: 0.01,
        Fault.RESET_IN_BODY: 0.01,
        Fault.STALL: 0.001,
        Fault.STALL_IN_BODY: 0.001,
        Fault.TRUNCATE: 0.01,
    },
    latency_seconds=0.004,
)
STORM = Odds({Fault.SLOW_DOWN: 0.5, Fault.RESET: 0.1}, latency_seconds=0.02)

_STEP_SECONDS = 0.1


@dataclass(frozen=True)
class Plan:
    """What a run does. A storm is a time in which the store refuses most requests."""

    seconds: float
    seed: int
    clients: int = 8
    workers: int = 4
    coordinators: int = 2
    size: Size = FULL
    paces_seconds: tuple[float, ...] = (0.0, 0.005, 0.01, 0.02)
    havoc: Havoc | None = field(default_factory=Havoc)
    odds: Odds = USUAL
    storage: Mapping[str, str] = field(default_factory=dict)
    """More of Iceberg's properties for the store."""
    storm_every_seconds: float = 60.0
    storm_seconds: float = 4.0
    lease_seconds: float = 10.0
    rolls: bool = True
    patience_seconds: float = 30.0
    """How long floeberg's clients keep trying: their default."""
    longest_query_seconds: float = LONGEST_QUERY_SECONDS
    least_resumed: int = 0
    """How many streams must have been cut after delivered batches, and resumed."""
    tell_every_seconds: float = 10.0


@dataclass(frozen=True)
class Report:
    """How a run went: `lines` for people, and what must not have happened."""

    tally: Tally
    requests: dict[str, int]
    done_to_fleet: dict[str, int]
    violations: list[str]
    lines: list[str]


def run(
    plan: Plan, say: Callable[[str], None] = lambda line: None, store: Seaweed | None = None
) -> Report:
    """Run `plan`; `store` is a service that runs already."""
    with tempfile.TemporaryDirectory(prefix="floeberg-chaos-") as folder:
        if store is not None:
            return _run_on(store, Path(folder), plan, say)
        with run_seaweed(Path(folder)) as own:
            return _run_on(own, Path(folder), plan, say)


def _run_on(store: Seaweed, folder: Path, plan: Plan, say: Callable[[str], None]) -> Report:
    say(f"seed {plan.seed}")
    dice = random.Random(plan.seed)
    bucket = f"chaos-{secrets.token_hex(4)}"
    questions = write_lake(folder / "lake", store, bucket, plan.size)
    port = urlsplit(store.s3_endpoint).port
    assert port is not None
    with fault_proxy(port, plan.seed) as proxy:
        catalog = _catalog(store, proxy, bucket, plan.storage)
        with running_fleet(
            folder,
            catalog,
            workers=plan.workers,
            coordinators=plan.coordinators,
            lease_seconds=plan.lease_seconds,
            dice=dice,
        ) as fleet:
            return _Run(plan, questions, fleet, proxy, dice, say).carry_out()


def _catalog(store: Seaweed, proxy: FaultProxy, bucket: str, more: Mapping[str, str]) -> str:
    endpoint = f"http://127.0.0.1:{proxy.port}"
    properties = {**store.s3_properties(), "s3.endpoint": endpoint, **more}
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in properties.items())
    return f"lake=warehouse:s3://{bucket}?{query}"


class _Run:
    def __init__(
        self,
        plan: Plan,
        questions: list[Question],
        fleet: Fleet,
        proxy: FaultProxy,
        dice: random.Random,
        say: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._questions = questions
        self._fleet = fleet
        self._proxy = proxy
        self._say = say
        self._tally = Tally(say, longest_seconds=plan.longest_query_seconds)
        self._crowd = Crowd(questions, self._tally, dice, plan.paces_seconds, plan.patience_seconds)
        self._requests: dict[str, int] = {}
        self._began = time.monotonic()

    def carry_out(self) -> Report:
        locations = [slot.location for slot in self._fleet.coordinators]
        self._ask_each_in_peace(locations[0])
        self._began = time.monotonic()
        with watching(self._tally.forgive, self._tally.watch):
            self._crowd.start(self._plan.clients, locations)
            self._make_havoc()
            self._fleet.settle()
            if self._plan.rolls:
                self._roll()
            self._crowd.stop(self._plan.longest_query_seconds + 10)
        self._tally.watch()  # what ended in the last moment
        self._requests = self._proxy.set(CALM)
        return self._report()

    def _ask_each_in_peace(self, location: str) -> None:
        """Make sure of the questions, and of the order of ordered answers."""
        with connect(location) as lake:
            for question in self._questions:
                found, _ = self._crowd.read(lake, question, 0.0)
                self._tally.answered(Kind.FLOEBERG, question, found)

    def _make_havoc(self) -> None:
        plan = self._plan
        told = self._began
        raging: bool | None = None
        while (now := time.monotonic()) < self._began + plan.seconds:
            in_cycle = (now - self._began) % plan.storm_every_seconds
            is_storm = in_cycle > plan.storm_every_seconds - plan.storm_seconds
            if is_storm is not raging:
                raging = is_storm
                self._requests = self._proxy.set(STORM if is_storm else plan.odds)
            if plan.havoc is not None:
                self._fleet.harass(plan.havoc)
            if now - told >= plan.tell_every_seconds:
                told = now
                self._requests = self._proxy.set(STORM if is_storm else plan.odds)
                self._say(self._progress())
            time.sleep(_STEP_SECONDS)

    def _roll(self) -> None:
        """Restart every process in turn; the store behaves as usual."""
        self._say("a rolling restart")
        self._requests = self._proxy.set(self._plan.odds)
        before = dict(self._tally.outcomes)
        self._fleet.roll()
        for kind in (Kind.PYARROW, Kind.ADBC):
            failed = self._tally.outcomes[kind, Outcome.FAILED] - before.get(
                (kind, Outcome.FAILED), 0
            )
            if failed:
                self._tally.violate(f"{kind}: {failed} errors of the restart are not retryable")
        self._say(self._progress())

    def _progress(self) -> str:
        tally, counts = self._tally, self._fleet.counts
        faults = sum(count for name, count in self._requests.items() if name != "passed")
        return (
            f"{time.monotonic() - self._began:5.0f} s  "
            f"{tally.right(Kind.FLOEBERG)} of {tally.asked(Kind.FLOEBERG)} queries right, "
            f"{tally.resumed} streams resumed, "
            f"{counts['workers killed']} workers and {counts['coordinators killed']} coordinators"
            f" killed, {faults} of {sum(self._requests.values())} storage requests failed; stock: "
            + ", ".join(
                f"{kind} {tally.right(kind)}/{tally.asked(kind)}"
                for kind in (Kind.PYARROW, Kind.ADBC)
            )
            + (f"; {len(tally.violations)} VIOLATIONS" if tally.violations else "")
        )

    def _report(self) -> Report:
        tally = self._tally
        for fault in self._fleet.faults():
            tally.violate(fault)
        if tally.resumed < self._plan.least_resumed:
            tally.violate(f"{tally.resumed} streams of {self._plan.least_resumed} were resumed")
        plan = self._plan
        title = (
            f"{plan.seconds / 60:.0f} minutes, {plan.workers} workers, {plan.coordinators}"
            f" coordinators, {plan.clients} clients of floeberg, seed {plan.seed}"
        )
        lines = summary(title, tally, self._fleet.counts, self._requests)
        self._say("\n" + "\n".join(lines))
        return Report(tally, self._requests, dict(self._fleet.counts), tally.violations, lines)
