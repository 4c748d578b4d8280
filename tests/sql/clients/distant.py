"""Clients that live in an environment of their own: they are told what to do over a pipe."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.sql.clients.kinds import NOBODY, Row, Shown

SCRIPTS = Path(__file__).parent / "elsewhere"


class ClientError(Exception):
    """What a client raised, as it says it."""


class DistantStream:
    def __init__(self, session: DistantSession) -> None:
        self._session = session

    def read(self) -> int:
        return self._session.do("read")

    def cancel(self) -> None:
        self._session.do("cancel")


class DistantSession:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def do(self, name: str, **given: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"do": name, **given}), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline() or '{"error": "it has died"}')
        if "error" in answer:
            raise ClientError(answer["error"])
        return answer["done"]

    def tables(self) -> set[str]:
        return set(self.do("tables"))

    def columns(self, schema: str, table: str) -> list[str]:
        return self.do("columns", schema=schema, table=table)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return [tuple(row) for row in self.do("rows", sql=sql, parameters=list(parameters))]

    def stream(self, sql: str) -> DistantStream:
        self.do("stream", sql=sql)
        return DistantStream(self)


class Distant:
    """A client that `python` runs by one of the scripts in `elsewhere`."""

    def __init__(
        self, python: str, script: str, name: str, abilities: set[str], *arguments: str
    ) -> None:
        self.name = name
        self.abilities = frozenset(abilities)
        self._command = [python, str(SCRIPTS / script), *arguments]

    @contextmanager
    def connect(self, location: str, shown: Shown = NOBODY) -> Iterator[DistantSession]:
        host, _, port = location.partition("://")[2].rpartition(":")
        process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            session = DistantSession(process)
            session.do(
                "connect",
                host=host,
                port=int(port),
                token=shown.token,
                username=shown.username,
                password=shown.password,
            )
            yield session
        finally:
            process.communicate(timeout=30)


def distant_clients(python: str) -> list[Distant]:
    dbapi = "flightsql_dbapi.py"
    return [
        Distant(python, dbapi, "flightsql-dbapi", {"browse", "stream", "login"}),
        Distant(python, dbapi, "flightsql-dbapi.sqlalchemy", {"browse", "login"}, "--alchemy"),
        Distant(python, "arrow_java.py", "arrow-java", {"browse", "parameters", "stream", "login"}),
    ]
