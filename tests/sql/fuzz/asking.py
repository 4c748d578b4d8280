"""A fleet over a lake, a DuckDB with the whole of its tables, and questions asked of both."""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi
import adbc_driver_manager
import duckdb
import pyarrow as pa
import pyarrow.flight as fl
from adbc_driver_manager import dbapi

from floeberg.process.flight import ONE_ENDPOINT_HEADER
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.flight_sql.wire import pack
from tests.sql.fuzz.answers import Answer, answer_of, arrow_answer, difference
from tests.sql.fuzz.lakes import TABLES, write_lake
from tests.sql.fuzz.questions import Question, question
from tests.support.fleet import local_fleet
from tests.support.sql_tables import connection

QUESTIONS = 50
"""How many questions are asked of a lake."""
_TOO_MANY = 20_000
"""Rows of an answer, of which comparing all would take long."""
_AT_RUN_TIME = (
    duckdb.ConversionException,
    duckdb.OutOfRangeException,
    duckdb.InvalidInputException,
)
_OF_A_VALUE = re.compile(r"\[SQL_FAILED\].*(cast|convert|out of range|overflow)", re.I | re.S)
"""Errors of single values. An engine need not come to a value that others of its row, or a filter,
make irrelevant: whether it does depends on what it evaluates first."""
_CODE = re.compile(r"\[([A-Z_]+)\]")
_ONE_ENDPOINT: Any = [(ONE_ENDPOINT_HEADER.encode(), b"true")]


class Refused(Exception):
    """An answer that is an error of floeberg's."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Finding:
    """What is wrong with an answer, by which way it was asked for."""

    number: int
    way: str
    text: str
    detail: str

    def __str__(self) -> str:
        return f"question {self.number}, {self.way}: {self.text}\n  {self.detail}"


@dataclass
class Tally:
    """What came of questions: `seen` counts roads, ways of asking, errors and refusals."""

    seen: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.seen += other.seen
        self.refusals += other.refusals
        self.findings += other.findings


def ask_a_lake(seed: int, lake: int, numbers: range = range(QUESTIONS)) -> Tally:
    """Write a lake, and ask the questions of these numbers of it."""
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as directory:
        write_lake(Path(directory), random.Random(f"{seed}/{lake}"))
        with _asker(Path(directory)) as asker:
            for number in numbers:
                rng = random.Random(f"{seed}/{lake}/{number}")
                _compare(asker, number, question(rng), rng, tally)
    return tally


class Asker:
    """Asks a fleet as clients do, and DuckDB."""

    def __init__(self, location: str, open_: ExitStack) -> None:
        self._open = open_
        self._location = location
        self._clients: dict[str, fl.FlightClient] = {}
        self._adbc: dbapi.Connection = open_.enter_context(
            adbc_driver_flightsql.dbapi.connect(location, autocommit=True)
        )
        self._engine = open_.enter_context(connection())
        self._arrow = open_.enter_context(connection())
        for name in TABLES:
            rows, _ = self._by_flight(f"SELECT * FROM {name}", None)
            self._engine.register("rows", rows)
            self._engine.execute(f"CREATE TABLE {name} AS FROM rows")
            self._engine.unregister("rows")

    def expected(self, asked: Question) -> Answer:
        """Raises duckdb.Error."""
        parameters = list(asked.parameters) or None
        return answer_of(self._engine.sql(asked.reference, params=parameters))

    def fails_as_written(self, asked: Question) -> bool:
        """Say whether DuckDB fails at the text itself, which its reference form may not."""
        try:
            self._engine.execute(asked.text, list(asked.parameters) or None).fetchall()
        except duckdb.Error:
            return True
        return False

    def by_flight(self, text: str, *, one_endpoint: bool = False) -> tuple[Answer, str]:
        """Return an answer, and its road. Raises `Refused`."""
        options = fl.FlightCallOptions(headers=_ONE_ENDPOINT) if one_endpoint else None
        try:
            rows, road = self._by_flight(text, options)
        except (fl.FlightError, pa.ArrowException) as error:
            raise Refused(from_flight(error).code, str(error)) from None
        return arrow_answer(self._arrow, rows), road

    def _by_flight(self, text: str, options: fl.FlightCallOptions | None) -> tuple[pa.Table, str]:
        descriptor = fl.FlightDescriptor.for_command(pack("CommandStatementQuery", query=text))
        info = self._client(self._location).get_flight_info(descriptor, options)
        parts = []
        for endpoint in info.endpoints:
            at = endpoint.locations[0].uri.decode() if endpoint.locations else self._location
            parts.append(self._client(at).do_get(endpoint.ticket).read_all())
        if any(part.schema != info.schema for part in parts):
            raise AssertionError(f"rows of {[p.schema for p in parts]}, not {info.schema}")
        rows = pa.concat_tables(parts) if parts else info.schema.empty_table()
        return rows, json.loads(info.app_metadata).get("road", "scan")

    def by_adbc(self, text: str, parameters: tuple[Any, ...]) -> Answer:
        """Raises `Refused`."""
        try:
            with self._adbc.cursor() as cursor:
                cursor.execute(text, parameters or None)
                return arrow_answer(self._arrow, cursor.fetch_arrow_table())
        except adbc_driver_manager.Error as error:
            found = _CODE.search(str(error))
            raise Refused(found[1] if found else "INTERNAL", str(error)) from None

    def _client(self, location: str) -> fl.FlightClient:
        if location not in self._clients:
            self._clients[location] = self._open.enter_context(fl.connect(location))
        return self._clients[location]


@contextmanager
def _asker(lake: Path) -> Iterator[Asker]:
    with local_fleet(lake) as fleet, ExitStack() as open_:
        yield Asker(fleet.location, open_)


def _compare(asker: Asker, number: int, asked: Question, rng: random.Random, tally: Tally) -> None:
    expected: Answer | None = None
    failure: duckdb.Error | None = None
    try:
        expected = asker.expected(asked)
    except duckdb.Error as error:
        failure = error
    if (expected is None) != asker.fails_as_written(asked):
        tally.seen["order of evaluation decides"] += 1
        return
    if expected is not None and len(expected.rows) > _TOO_MANY:
        tally.seen["too many rows"] += 1
        return
    tally.seen["failures of DuckDB" if expected is None else "compared"] += 1
    for way, text in _ways(asked, rng):
        try:
            found, road = _ask(asker, way, text, asked)
        except Refused as refused:
            tally.seen[f"asked {way}"] += 1
            if expected is None:
                tally.seen["failed likewise"] += 1
            elif refused.code == "UNSUPPORTED_SQL":
                tally.seen["refused"] += 1
                tally.refusals[str(refused).splitlines()[0][:160]] += 1
            elif _OF_A_VALUE.search(str(refused)):
                tally.seen["failed alone"] += 1
            else:
                tally.findings.append(Finding(number, way, text, f"{refused.code}: {refused}"))
            if expected is None and refused.code == "INTERNAL":
                tally.findings.append(Finding(number, way, text, str(refused)))
            continue
        tally.seen[f"asked {way}"] += 1
        if road:
            tally.seen[f"road {road}"] += 1
        if isinstance(failure, _AT_RUN_TIME):
            tally.seen["answered alone"] += 1
        elif expected is None:
            detail = f"{len(found.rows)} rows, where DuckDB has {failure!r}"
            tally.findings.append(Finding(number, way, text, detail))
        elif (wrong := difference(asked, found, expected)) is not None:
            tally.findings.append(Finding(number, way, text, f"road {road}: {wrong}"))


def _ways(asked: Question, rng: random.Random) -> Iterator[tuple[str, str]]:
    if asked.parameters:
        yield "by ADBC", asked.text
        return
    yield "plainly", asked.text
    if rng.random() < 0.5:
        yield "in one endpoint", asked.text
    if asked.undivided is not None and rng.random() < 0.5:
        yield "undivided", asked.undivided
    if rng.random() < 0.1:
        yield "by ADBC", asked.text


def _ask(asker: Asker, way: str, text: str, asked: Question) -> tuple[Answer, str]:
    if way == "by ADBC":
        return asker.by_adbc(text, asked.parameters), ""
    return asker.by_flight(text, one_endpoint=way == "in one endpoint")
