"""A fleet of real processes under a supervisor, which kills them and starts them again."""

from __future__ import annotations

import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from floeberg.client import connect
from floeberg.protocol.errors import Unavailable
from floeberg.protocol.sealing import Keyring
from tests.support.processes import ServiceProcess
from tests.support.waiting import wait_until

# Streams that are longer than what lies between worker and client, in many batches: a kill then
# finds some of them delivered, and others to come.
COORDINATOR_FLAGS = ("--batch-bytes", str(64 << 10), "--max-endpoints-per-worker", "1")
WORKER_FLAGS = ("--drain-seconds", "10")

_START_SECONDS = 120.0
_STOP_SECONDS = 30.0


@dataclass(frozen=True)
class Havoc:
    """How often what is done to a fleet; times are means."""

    seconds_between_kills: float = 4.0
    seconds_between_coordinator_kills: float = 20.0
    longest_absence_seconds: float = 2.0
    all_but_one: float = 0.05
    """How often a kill takes every worker but one."""
    moves: float = 0.3
    """How often a worker comes back under another port, as a rescheduled one would."""


class Slot:
    """A place for one process, which keeps its flags, and its port where it can."""

    def __init__(self, name: str, module: str, flags: Sequence[str], directory: Path) -> None:
        self.name = name
        self.port = 0
        self.due: float | None = None
        """When the supervisor starts it again."""
        self.launched = 0.0
        self.faults: list[str] = []
        """What its processes did that no process should do."""
        self._module = module
        self._flags = flags
        self._directory = directory
        self._starts = 0
        self._process: ServiceProcess | None = None

    def launch(self) -> None:
        self._starts += 1
        self.due = None
        self.launched = time.monotonic()
        command = [sys.executable, "-m", self._module, "--port", str(self.port), *self._flags]
        name = f"{self.name}-{self._starts}"
        self._process = ServiceProcess(command, self._directory, name, {})

    @property
    def location(self) -> str:
        """Where it is reached, once it `is_ready`."""
        assert self._process is not None
        named = self._process.addresses
        return str(named["coordinator"] if "coordinator" in named else named["location"])

    def is_ready(self) -> bool:
        """Say whether it answers; one whose port was taken meanwhile gets another."""
        if self._process is None:
            return False
        if self._process.has_ended():
            self._end(expected=self._process.exit_status() == 2 and self.port != 0)
            self.port = 0
            self.launch()
            return False
        if self._process.is_ready():
            self.port = int(self.location.rpartition(":")[2])
            return True
        return False

    def kill(self) -> None:
        """End the process as a crash does."""
        if self._process is not None:
            self._process.close()
            self._end(expected=True)

    def stop(self) -> None:
        """End the process by a signal, and wait until it has drained and gone."""
        process = self._process
        if process is None:
            return
        process.signal(signal.SIGTERM)
        try:
            wait_until(process.has_ended, f"{self.name} to stop", _STOP_SECONDS)
        except AssertionError as late:
            self.faults.append(str(late))
        status = process.process.poll()
        if status not in (0, None):
            self.faults.append(f"{self.name} ended with status {status}")
        process.close()
        self._end(expected=True)

    def _end(self, *, expected: bool) -> None:
        process = self._process
        assert process is not None
        if not expected:
            self.faults.append(f"{self.name} ended by itself:\n{process.log_text()[-3000:]}")
        for record in process.records():
            if record["level"] in ("ERROR", "CRITICAL"):
                self.faults.append(f"{self.name} logged: {record}")
        process.log_file.unlink()
        self._process = None


class Fleet:
    """Coordinators and workers. Its methods are called from one thread at a time."""

    def __init__(
        self,
        directory: Path,
        catalog: str,
        *,
        workers: int,
        coordinators: int,
        lease_seconds: float,
        dice: random.Random,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        Keyring.generate().write(directory / "keys")
        self._key_flags = ("--key-file", str(directory / "keys"))
        lease = ("--lease-seconds", str(lease_seconds))
        flags = (*self._key_flags, "--catalog", catalog, *lease, *COORDINATOR_FLAGS)
        self.coordinators = [
            Slot(f"coordinator-{n}", "floeberg.server", flags, directory)
            for n in range(coordinators)
        ]
        self.workers: list[Slot] = []
        self.counts: Counter[str] = Counter()
        self._worker_count = workers
        self._directory = directory
        self._dice = dice
        self._now = now
        self._next_kill = self._next_coordinator_kill = 0.0

    def start(self) -> None:
        for slot in self.coordinators:
            slot.launch()
        for slot in self.coordinators:
            wait_until(slot.is_ready, f"{slot.name} to be ready", _START_SECONDS)
        joined = [f for slot in self.coordinators for f in ("--coordinator", slot.location)]
        self.workers = [
            Slot(
                f"worker-{n}",
                "floeberg.worker",
                (*self._key_flags, *joined, *WORKER_FLAGS),
                self._directory,
            )
            for n in range(self._worker_count)
        ]
        for slot in self.workers:
            slot.launch()
        self.settle()

    def settle(self) -> None:
        """Wait until everything that should run runs, and every coordinator knows every worker."""
        for slot in (*self.coordinators, *self.workers):
            if slot.due is not None:
                slot.launch()
        for slot in (*self.coordinators, *self.workers):
            wait_until(slot.is_ready, f"{slot.name} to be ready", _START_SECONDS)
        wanted = {slot.location for slot in self.workers}
        for slot in self.coordinators:
            knows_all = partial(_has_workers, slot.location, wanted)
            wait_until(knows_all, f"{slot.name} to know its workers", _START_SECONDS)

    def harass(self, havoc: Havoc) -> None:
        """Do what is due by now: start what was killed, and kill something. Call it often."""
        now = self._now()
        for slot in (*self.coordinators, *self.workers):
            if slot.due is not None and now >= slot.due:
                slot.launch()
        if self._next_kill == 0.0:
            self._next_kill = now + self._in(havoc.seconds_between_kills)
            self._next_coordinator_kill = now + self._in(havoc.seconds_between_coordinator_kills)
        ready = [slot for slot in self.workers if slot.is_ready()]
        # where starting one takes longer than to kill the next, no fleet would be left to look at
        is_staffed = len(ready) > max(1, len(self.workers) // 2)
        if now >= self._next_kill and is_staffed:
            self._next_kill = now + self._in(havoc.seconds_between_kills)
            many = len(ready) - 1 if self._dice.random() < havoc.all_but_one else 1
            # one of those that live longest: streams are under way there
            old = sorted(ready, key=lambda slot: slot.launched)[: max(many, len(ready) // 2)]
            for slot in self._dice.sample(old, many):
                slot.kill()
                self.counts["workers killed"] += 1
                if self._dice.random() < havoc.moves:
                    slot.port = 0
                slot.due = now + self._dice.uniform(0, havoc.longest_absence_seconds)
        answering = [slot for slot in self.coordinators if slot.is_ready()]
        others = len(self.coordinators) - 1
        if now >= self._next_coordinator_kill and len(answering) > min(1, others):
            self._next_coordinator_kill = now + self._in(havoc.seconds_between_coordinator_kills)
            slot = self._dice.choice(answering)
            slot.kill()
            self.counts["coordinators killed"] += 1
            slot.due = now + self._dice.uniform(0, havoc.longest_absence_seconds)

    def roll(self) -> None:
        """Stop each worker and then each coordinator by SIGTERM, one after another, and start it
        again."""
        for slot in (*self.workers, *self.coordinators):
            slot.stop()
            self.counts["restarted in turn"] += 1
            slot.launch()
            self.settle()

    def faults(self) -> list[str]:
        return [f for slot in (*self.coordinators, *self.workers) for f in slot.faults]

    def close(self) -> None:
        for slot in (*self.workers, *self.coordinators):
            slot.kill()

    def _in(self, mean_seconds: float) -> float:
        return self._dice.uniform(0.5, 1.5) * mean_seconds


@contextmanager
def running_fleet(directory: Path, catalog: str, **options: Any) -> Iterator[Fleet]:
    fleet = Fleet(directory, catalog, **options)
    try:
        fleet.start()
        yield fleet
    finally:
        fleet.close()


def _has_workers(coordinator: str, wanted: set[str]) -> bool:
    try:
        with connect(coordinator) as lake:
            return {w.location for w in lake.status().workers if w.state == "ready"} == wanted
    except Unavailable:
        return False
