"""Who answers, and the processes in which they do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Timer

from tests.bench.taxi.sides.serving import Measured, Question

_REPOSITORY = Path(__file__).parents[3]
# the peers' environments have what they need of others, and from here nothing else than the code
_ROOTS = [_REPOSITORY, *(_REPOSITORY / name for name in ("protocol", "server", "worker"))]
_ANSWER_SECONDS = 90.0

PYICEBERG, DAFT, POLARS, DUCKDB, PYARROW = "PyIceberg", "Daft", "Polars", "DuckDB", "pyarrow"
IN_PROCESS = "in process"
FLIGHT_1, FLIGHT_2 = "Flight, 1 worker", "Flight, 2 workers"
SQL_1, SQL_2 = "Flight SQL, 1 worker", "Flight SQL, 2 workers"
SQL_ENGINE = "Flight SQL, one engine"
FLIGHT_BLOCKS = "Flight, 2 workers, blocks kept"
DUCKDB_ANEW = "DuckDB, no data kept"


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
    DUCKDB_ANEW: Contender("duckdb_side", "peers", flags=("--keep-no-data",)),
    PYARROW: Contender("pyarrow_side"),
    IN_PROCESS: Contender("in_process_side"),
    FLIGHT_1: Contender("flight_side", workers=1),
    FLIGHT_2: Contender("flight_side", workers=2),
    FLIGHT_BLOCKS: Contender("flight_side", workers=2, flags=("--keep-blocks",)),
    SQL_1: Contender("flight_sql_side", workers=1),
    SQL_2: Contender("flight_sql_side", workers=2),
    SQL_ENGINE: Contender("flight_sql_side", workers=2, flags=("--undivided",)),
}
OURS = (IN_PROCESS, FLIGHT_1, FLIGHT_2, FLIGHT_BLOCKS, SQL_1, SQL_2, SQL_ENGINE)
PEERS = (PYICEBERG, DAFT, POLARS, DUCKDB, PYARROW)


@dataclass(frozen=True)
class Place:
    """Where tables are: a directory or a prefix of a store, and the properties that open it."""

    warehouse: str
    properties: Mapping[str, str] = field(default_factory=dict)


class ContenderProcess:
    """A contender in a process of its own. `close` ends it.

    One that dies, or takes minutes for an answer and is killed, refuses from then on.
    """

    def __init__(self, contender: Contender, pythons: Mapping[str, str], place: Place) -> None:
        arguments = list(contender.flags)
        if contender.workers is not None:
            arguments += [place.warehouse, "--workers", str(contender.workers)]
            arguments += ["--properties", json.dumps(dict(place.properties))]
        self._module = f"tests.bench.taxi.sides.{contender.module}"
        self._is_late = False
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

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, question: Question) -> Measured | str:
        """Return what the answer took, or why there is none."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        late = Timer(_ANSWER_SECONDS, self._end)
        late.start()
        try:
            self._process.stdin.write(json.dumps(asdict(question)) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            late.cancel()
        if not line:
            return self._last_words()
        said = json.loads(line)
        return str(said["refuses"]) if "refuses" in said else Measured(**said)

    def _end(self) -> None:
        self._is_late = True
        self._process.kill()

    def _last_words(self) -> str:
        status = self._process.wait()
        if self._is_late:
            return f"took more than {_ANSWER_SECONDS:g} s for an answer, and was ended"
        self._errors.seek(0)
        last = self._errors.read().strip().splitlines()[-1:]
        return ": ".join([f"its process ended with status {status}", *last])

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            # what a dead process was not told any more
            with suppress(BrokenPipeError):
                if stream is not None:
                    stream.close()
        self._process.wait(timeout=60)
        self._errors.close()
