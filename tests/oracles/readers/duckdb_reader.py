"""Read with DuckDB's iceberg extension, from the metadata file alone.

It takes snapshots by id, and no refs. It runs in a process of its own, since on some tables it
crashes: that is a refusal too.
"""

from __future__ import annotations

import importlib.metadata
import multiprocessing
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

import duckdb
import pyarrow as pa

from tests.oracles.scans import DUCKDB, Scan
from tests.oracles.workshop import Made

_FATAL = ("InternalException", "FatalException")


class NoRefs(Exception):
    """`iceberg_scan` can't read a branch or tag."""


class DuckDbRefused(Exception):
    """DuckDB's own error, as text."""


class DuckDbCrashed(Exception):
    """Its process ended instead of answering."""


class DuckDbReader:
    name = "duckdb"

    def __init__(self) -> None:
        self._process: SpawnProcess | None = None
        self._pipe: Connection | None = None

    def read(self, made: Made, scan: Scan) -> pa.Table:
        answer = self._ask(_sql(made, scan))
        if isinstance(answer, str):
            if answer.startswith(_FATAL):
                self.close()  # it answers nothing any more
            raise DuckDbRefused(answer)
        with pa.ipc.open_stream(answer) as stream:
            return stream.read_all()

    def _ask(self, sql: str) -> bytes | str:
        pipe = self._running()
        try:
            pipe.send(sql)
            answer: bytes | str = pipe.recv()
        except (EOFError, ConnectionError) as exc:
            self.close()
            raise DuckDbCrashed(sql) from exc
        return answer

    def _running(self) -> Connection:
        if self._pipe is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_answer, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        return self._pipe

    def close(self) -> None:
        """End the process; the next question starts another."""
        if self._pipe is not None and self._process is not None:
            self._pipe.close()
            self._process.join()
        self._pipe = self._process = None


def _sql(made: Made, scan: Scan) -> str:
    if scan.ref is not None:
        raise NoRefs(f"iceberg_scan has no refs, and was asked for {scan.ref}")
    options = ""
    if scan.snapshot_id is not None:
        options = f", snapshot_from_id := {scan.snapshot_id}"
    if scan.as_of_ms is not None:
        options = f", snapshot_from_timestamp := make_timestamp({scan.as_of_ms * 1000})"
    columns = "*"
    if scan.select is not None:
        names = dict.fromkeys(name.split(".")[0] for name in scan.select)
        columns = ", ".join(f'"{name}"' for name in names)
    sql = f"select {columns} from iceberg_scan('{made.metadata_file}'{options})"
    if scan.filter is not None:
        sql += f" where {DUCKDB.where(scan.filter)}"
    return sql


# --- in the other process -------------------------------------------------------------------------


def _answer(pipe: Connection) -> None:
    """Answer queries with an Arrow stream, or with the text of an error, until the pipe ends."""
    connection = duckdb.connect(config={"threads": 2, "memory_limit": "1GB"})
    for extension in ("avro", "iceberg"):  # the one stands on the other
        connection.load_extension(_extension_file(extension))
    connection.execute("set timezone = 'UTC'")
    while True:
        try:
            sql = pipe.recv()
        except EOFError:
            return
        try:
            table = connection.execute(sql).to_arrow_table()
        except duckdb.Error as exc:
            pipe.send(f"{type(exc).__name__}: {exc}")
            continue
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        pipe.send(sink.getvalue().to_pybytes())


def _extension_file(name: str) -> str:
    package = importlib.metadata.distribution(f"duckdb-extension-{name}")
    (found,) = [f for f in package.files or () if f.name == f"{name}.duckdb_extension"]
    return str(package.locate_file(found))
