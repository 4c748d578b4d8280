"""One contender as a process: answers when it is asked to, and says what that took.

A line of JSON in, a line of JSON out. Nothing else may be written to standard output. The modules
of contenders stand in environments of their own, of which only pyarrow and numpy are in all.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

from tests.bench.taxi.answers import Answer
from tests.bench.taxi.queries import QUERIES, Query


class Refuses(Exception):
    """The contender cannot read this table, or answer this query."""


@dataclass(frozen=True)
class Question:
    """What is asked of which table, where its metadata is, and what opens its files elsewhere. With
    `collect` garbage is collected before, which is not measured."""

    table: str
    query: str
    metadata_file: str
    properties: Mapping[str, str]
    collect: bool = True

    @property
    def asked(self) -> Query:
        return QUERIES[self.query]


class Side(Protocol):
    """What answers. `answer` is what is timed; it raises `Refuses`."""

    def answer(self, question: Question) -> Answer: ...


class Servers(Protocol):
    """What a contender asks, if it asks servers of its own."""

    def processes(self) -> list[int]:
        """Return all of them."""
        ...

    def worker_processes(self) -> list[int]: ...

    def moved_bytes(self) -> int:
        """Return how many bytes workers have sent so far, to whomever."""
        ...


@dataclass(frozen=True)
class Measured:
    """One answer: seconds of the clock, and of the processors in all of the contender's processes;
    the memory of the process that asks at most, and of the worker that had most."""

    answer: Answer
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    worker_peak_bytes: int | None = None
    moved_bytes: int | None = None


def serve(side: Side, servers: Servers | None = None) -> None:
    """Answer until standard input ends."""
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        said: dict[str, object]
        try:
            said = asdict(_measured(side, servers, Question(**json.loads(line))))
        except Refuses as refusal:
            said = {"refuses": str(refusal)}
        answers.write(json.dumps(said) + "\n")
        answers.flush()


def _measured(side: Side, servers: Servers | None, question: Question) -> Measured:
    workers = [] if servers is None else [_process(pid) for pid in servers.worker_processes()]
    own = _process("self")
    if question.collect:
        gc.collect()
    for process in (own, *workers):
        (process / "clear_refs").write_text("5")  # starts the peak anew
    moved = 0 if servers is None else servers.moved_bytes()
    cpu = _cpu_seconds(servers)
    began = time.perf_counter()
    answer = side.answer(question)
    seconds = time.perf_counter() - began
    measured = Measured(answer, seconds, _cpu_seconds(servers) - cpu, _peak_bytes(own))
    if servers is None:
        return measured
    return replace(
        measured,
        worker_peak_bytes=max(_peak_bytes(process) for process in workers),
        moved_bytes=servers.moved_bytes() - moved,
    )


def _cpu_seconds(servers: Servers | None) -> float:
    others = [] if servers is None else servers.processes()
    return time.process_time() + sum(cpu_seconds(pid) for pid in others)


def cpu_seconds(pid: int) -> float:
    """Return what a process has used of processors so far, to a hundredth of a second."""
    fields = (_process(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _process(pid: int | str) -> Path:
    return Path("/proc") / str(pid)


def _peak_bytes(process: Path) -> int:
    lines = (process / "status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
