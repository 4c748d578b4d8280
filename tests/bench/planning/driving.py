"""Ask the sides in turns, so that what the machine does meanwhile hits all of them."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.bench.planning.questions import Filter
from tests.bench.planning.sides.serving import Measured

_REPOSITORY = Path(__file__).parents[3]
# the peers' environment has what it needs of others, and from here nothing else than the code
_ROOTS = [_REPOSITORY, *(_REPOSITORY / name for name in ("protocol", "server", "worker"))]


class SideFailed(Exception):
    """A side's process ended, which it never should."""


class SideProcess:
    """A side in a process of its own. `close` ends it."""

    def __init__(self, python: str, module: str, *arguments: str) -> None:
        self._module = f"tests.bench.planning.sides.{module}"
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [python, "-m", self._module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, _ROOTS))},
            cwd=_REPOSITORY,
            text=True,
        )

    def plan(
        self, metadata_file: Path, filters: Sequence[Filter], *, forget: bool
    ) -> list[Measured] | str:
        """Return what a plan of each filter took, in a row, or why the side refuses them."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"metadata_file": str(metadata_file), "filters": filters, "forget": forget}
        try:
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            status = self._process.wait()
            self._errors.seek(0)
            raise SideFailed(f"{self._module} ended with {status}: {self._errors.read()[-2000:]}")
        answer = json.loads(line)
        if "refuses" in answer:
            return str(answer["refuses"])
        return [Measured(**measured) for measured in answer["measured"]]

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            # what a dead process was not told any more
            with suppress(BrokenPipeError):
                if stream is not None:
                    stream.close()
        self._process.wait(timeout=60)
        self._errors.close()


@dataclass(frozen=True)
class SideOfComparison:
    """A side as it stands in the report: its process, and what it may remember between plans.

    `anew`: each plan has a process of its own, whose start isn't measured. `in_a_row`: in its turn
    it plans other filters of the kind as well, as a process does that is asked all the time, and
    all count. After seconds in which others ran, code and data are far from the processor.
    """

    name: str
    begin: Callable[[], SideProcess]
    forget: bool = False
    anew: bool = False
    in_a_row: bool = False
    only_round: int | None = None
    """The one round of a side that takes minutes; it has no other, not even to get warm."""


@dataclass(frozen=True)
class Rounds:
    """What the rounds of one side took; all are of the same table and kind of filter."""

    measured: Sequence[Measured]
    refusal: str = ""

    def median(self, of: Callable[[Measured], float]) -> float:
        return statistics.median(map(of, self.measured))

    def spread(self, of: Callable[[Measured], float]) -> tuple[float, float]:
        """Return the least and the most."""
        values = [of(m) for m in self.measured]
        return min(values), max(values)


class Sides:
    """The processes of a run, started when they are first asked."""

    def __init__(self, sides: Sequence[SideOfComparison]) -> None:
        self.sides = sides
        self._running: dict[str, SideProcess] = {}

    def close(self) -> None:
        with ExitStack() as closing:
            for process in self._running.values():
                closing.callback(process.close)

    def in_turns(
        self,
        metadata_file: Path,
        filters: Sequence[Filter],
        told: Callable[[str], None] = lambda _: None,
        others: Callable[[], Sequence[Filter]] = tuple,
    ) -> dict[str, Rounds]:
        """Plan each filter by every side, after one that isn't measured; the first filter is that.

        `others` gives more filters for a turn of a side that plans several in a row.

        Raises `SystemExit` where two sides find different numbers of tasks.
        """
        measured: dict[str, list[Measured]] = {side.name: [] for side in self.sides}
        refusals: dict[str, str] = {}
        for turn, filter_ in enumerate(filters):
            tasks: dict[str, int] = {}
            start = turn % len(self.sides)
            for side in [*self.sides[start:], *self.sides[:start]]:
                if side.name in refusals or side.only_round not in (None, turn):
                    continue
                told(f"round {turn} of {len(filters) - 1}: {side.name}")
                row = [*others(), filter_] if side.in_a_row and turn else [filter_]
                found = self._plan(side, metadata_file, row)
                if isinstance(found, str):
                    refusals[side.name] = found
                    continue
                tasks[side.name] = found[-1].tasks
                if turn:
                    measured[side.name] += found
            if len(set(tasks.values())) > 1:
                raise SystemExit(f"the sides disagree on the tasks of {filter_}: {tasks}")
        return {
            side.name: Rounds(measured[side.name], refusals.get(side.name, ""))
            for side in self.sides
        }

    def _plan(
        self, side: SideOfComparison, metadata_file: Path, filters: Sequence[Filter]
    ) -> list[Measured] | str:
        if side.anew:
            process = side.begin()
            try:
                return process.plan(metadata_file, filters, forget=False)
            finally:
                process.close()
        if side.name not in self._running:
            self._running[side.name] = side.begin()
        return self._running[side.name].plan(metadata_file, filters, forget=side.forget)


@contextmanager
def running(sides: Sequence[SideOfComparison]) -> Iterator[Sides]:
    asked = Sides(sides)
    try:
        yield asked
    finally:
        asked.close()
