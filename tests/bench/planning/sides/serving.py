"""One side of the comparison as a process: plans when it is told to, and says what that took.

A line of JSON in, a line of JSON out. Nothing else may be written to standard output.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from tests.bench.planning.questions import Filter


class Refuses(Exception):
    """The side can't plan this."""


class Side(Protocol):
    """What plans. `plan` returns the number of tasks, or raises `Refuses`."""

    def plan(self, metadata_file: str, filter_: Filter) -> int: ...

    def forget(self) -> None:
        """Drop whatever earlier plans left behind."""

    def cpu_seconds(self) -> float:
        """Return the CPU time of all threads of the process that plans, so far."""
        ...

    def process_id(self) -> int: ...

    def cached_bytes(self) -> int:
        """Return the size of what it remembers of plans, 0 where nobody can tell."""
        ...


@dataclass(frozen=True)
class Measured:
    """One plan: seconds of the clock and of the processors, and the process's memory at most."""

    tasks: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    before_bytes: int
    """What the process had before the plan, of `peak_bytes`."""
    cached_bytes: int


def serve(side: Side) -> None:
    """Answer until standard input ends."""
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["forget"]:
            side.forget()
        answer: dict[str, object]
        try:
            gc.collect()
            row = [_measured(side, asked["metadata_file"], filter_) for filter_ in asked["filters"]]
            answer = {"measured": [asdict(measured) for measured in row]}
        except Refuses as refusal:
            answer = {"refuses": str(refusal)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _measured(side: Side, metadata_file: str, filter_: Filter) -> Measured:
    process = Path("/proc") / str(side.process_id())
    (process / "clear_refs").write_text("5")  # starts the peak anew
    before = _memory_bytes(process, "VmRSS")
    cpu, began = side.cpu_seconds(), time.perf_counter()
    tasks = side.plan(metadata_file, filter_)
    seconds, cpu = time.perf_counter() - began, side.cpu_seconds() - cpu
    return Measured(
        tasks, seconds, cpu, _memory_bytes(process, "VmHWM"), before, side.cached_bytes()
    )


def _memory_bytes(process: Path, field: str) -> int:
    lines = (process / "status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))
