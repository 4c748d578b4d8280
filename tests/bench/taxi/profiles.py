"""Where the time of each query goes: in this process, in workers, and in the client of workers.

Each query is asked over and over while Linux's `perf` looks a thousand times a second in which
function of which library each thread of the machine is, for which one has to be root, or
`kernel.perf_event_paranoid` 0. Threads that wait are not seen, nor is who called a function; but
threads of which Python knows nothing are, such as an engine's.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.taxi.comparing import Terms
from tests.bench.taxi.contenders import (
    CONTENDERS,
    FLIGHT_2,
    IN_PROCESS,
    SQL_2,
    ContenderProcess,
    Place,
)
from tests.bench.taxi.lake import TABLES, Lake
from tests.bench.taxi.markdown import table
from tests.bench.taxi.parts import Part
from tests.bench.taxi.sides.serving import Question
from tests.bench.taxi.symbols import KINDS, counted, shares

_TABLE = "trips"
_RATE = 999
_SECONDS_A_ROUND = 0.6
_CLIENT, _WORKERS = "client", "workers"
_TITLES: Mapping[str, Mapping[str, str]] = {
    IN_PROCESS: {_CLIENT: IN_PROCESS},
    FLIGHT_2: {_WORKERS: "Flight, both workers", _CLIENT: "Flight, the client"},
    SQL_2: {_WORKERS: "Flight SQL, both workers"},
}
"""By contender, which of its processes are looked at, and what these are called."""


class CannotProfile(Exception):
    """`perf` may not look, or there is nothing to look at."""


@dataclass(frozen=True)
class Profile:
    """How often each kind of work was seen, of how many samples in all processes that are looked
    at, and how many cores all processes had busy on an average from question to answer."""

    seen: Mapping[str, int]
    of_all: int
    cores: float


def measure_profiles(terms: Terms, lake: Lake) -> Part:
    """Return a table of queries for each kind of process, or the reason why there is none."""
    if shutil.which("perf") is None:
        return Part("There is no `perf` here (Debian: linux-perf).")
    texts = []
    for name, titles in _TITLES.items():
        if name not in terms.names:
            continue
        try:
            found = _profiles(terms, lake, name)
        except CannotProfile as reason:
            return Part(str(reason))
        texts += [
            _table(title, {query: by_role[role] for query, by_role in found.items()})
            for role, title in titles.items()
        ]
    return Part("\n\n".join(texts))


def _profiles(terms: Terms, lake: Lake, name: str) -> Mapping[str, Mapping[str, Profile]]:
    """Return a contender's profiles by query, and then by which of its processes they are of."""
    metadata_file = str(lake.metadata_file(_TABLE))
    found = {}
    process = ContenderProcess(CONTENDERS[name], terms.pythons, Place(str(lake.warehouse)))
    try:
        for query in (query for query in TABLES[_TABLE] if query in terms.queries):
            terms.told(f"{name}, {query}")
            question = Question(_TABLE, query, metadata_file, {}, collect=False)
            found[query] = _profile(process, question, _SECONDS_A_ROUND * terms.rounds)
    finally:
        process.close()
    return found


def _profile(
    process: ContenderProcess, question: Question, seconds: float
) -> Mapping[str, Profile]:
    process.ask(question)
    watched = {_CLIENT: [process.pid], _WORKERS: _workers_below(process.pid)}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "perf.data"
        wall = cpu = 0.0
        with _watching(file, seconds) as perf:
            while perf.poll() is None:
                answer = process.ask(question)
                if isinstance(answer, str):
                    raise CannotProfile(f"{question.query} has no answer: {answer}")
                wall += answer.seconds
                cpu += answer.cpu_seconds
            _, errors = perf.communicate()
        if perf.returncode:
            raise CannotProfile(f"perf ended with {perf.returncode}: {errors.strip()[-500:]}")
        seen = {role: counted(_report(file, pids)) for role, pids in watched.items() if pids}
    of_all = sum(sum(kinds.values()) for kinds in seen.values())
    return {role: Profile(kinds, of_all, cpu / wall) for role, kinds in seen.items()}


def _watching(file: Path, seconds: float) -> subprocess.Popen[str]:
    """Look at the whole machine until so much time has passed."""
    command = ["perf", "record", "--quiet", "--all-cpus", "--event", "cpu-clock"]
    command += ["--freq", str(_RATE), "--output", str(file), "sleep", str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _report(file: Path, pids: Sequence[int]) -> list[str]:
    command = ["perf", "report", "--input", str(file), "--stdio", "--show-nr-samples"]
    command += ["--pid", ",".join(map(str, pids)), "--sort", "dso,sym", "--field-separator", ";"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def _workers_below(pid: int) -> list[int]:
    """Return those processes that the main thread of a process has started and that are workers."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [
        int(child)
        for child in children
        if b"floeberg.worker" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


def _table(title: str, found: Mapping[str, Profile]) -> str:
    rows = []
    for query, profile in found.items():
        parts = shares(profile.seen)
        cells = [f"{100 * parts[kind]:.0f}" if kind in parts else "–" for kind in KINDS]
        part = sum(profile.seen.values()) / max(profile.of_all, 1)
        rows.append([query, *cells, f"{part:.0%}", f"{profile.cores:.2f}"])
    return table([f"{title}, % of its CPU", *KINDS, "of all CPU", "cores busy"], rows)
