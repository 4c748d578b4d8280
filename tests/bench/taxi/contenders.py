"""Who answers, and the processes in which they do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench.taxi.sides.serving import Measured, Question

_REPOSITORY = Path(__file__).parents[3]
# the peers' environments have what they need of others, and from here nothing else than the code
_ROOTS = [_REPOSITORY, *(_REPOSITORY / name for name in ("protocol", "server", "worker"))]

PYICEBERG, DAFT, POLARS, DUCKDB, PYARROW = "PyIceberg", "Daft", "Polars", "DuckDB", "pyarrow"
IN_PROCESS = "in process"
FLIGHT_1, FLIGHT_2 = "Flight, 1 worker", "Flight, 2 workers"
SQL_1, SQL_2 = "Flight SQL, 1 worker", "Flight SQL, 2 workers"
SQL_ENGINE = "Flight SQL, one engine"


@dataclass(frozen=True)
class Contender:
    """A module of `sides`, the environment that it runs in, how many workers it starts, and what
    else it is told."""

    module: str
    environment: str = "own"
    workers: int | None = None
    flags: tuple[str, ...] = ()


CONTENDERS: Mapping[str, Contender] = {
    PYICEBERG: Contender("pyiceberg_side"),
    DAFT: Contender("daft_side", "daft"),
    POLARS: Contender("polars_side", "peers"),
    DUCKDB: Contender("duckdb_side", "peers"),
    PYARROW: Contender("pyarrow_side"),
    IN_PROCESS: Contender("in_process_side"),
    FLIGHT_1: Contender("flight_side", workers=1),
    FLIGHT_2: Contender("flight_side", workers=2),
    SQL_1: Contender("flight_sql_side", workers=1),
    SQL_2: Contender("flight_sql_side", workers=2),
    SQL_ENGINE: Contender("flight_sql_side", workers=2, flags=("--undivided",)),
}
OURS = (IN_PROCESS, FLIGHT_1, FLIGHT_2, SQL_1, SQL_2, SQL_ENGINE)


class ContenderFailed(Exception):
    """A contender's process ended, which it never should."""


class ContenderProcess:
    """A contender in a process of its own. `close` ends it."""

    def __init__(self, contender: Contender, pythons: Mapping[str, str], warehouse: Path) -> None:
        arguments: list[str] = []
        if contender.workers is not None:
            arguments = [str(warehouse), "--workers", str(contender.workers), *contender.flags]
        self._module = f"tests.bench.taxi.sides.{contender.module}"
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [pythons.get(contender.environment, sys.executable), "-m", self._module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, _ROOTS))},
            cwd=_REPOSITORY,
            text=True,
        )

    def ask(self, question: Question) -> Measured | str:
        """Return what the answer took, or why there is none."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(asdict(question)) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            status = self._process.wait()
            self._errors.seek(0)
            raise ContenderFailed(
                f"{self._module} ended with {status}: {self._errors.read()[-2000:]}"
            )
        said = json.loads(line)
        return str(said["refuses"]) if "refuses" in said else Measured(**said)

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            # what a dead process was not told any more
            with suppress(BrokenPipeError):
                if stream is not None:
                    stream.close()
        self._process.wait(timeout=60)
        self._errors.close()
