"""A stand-in for what answers SQL: one kind of query, as far as the way to it needs one."""

from __future__ import annotations

import re

import pyarrow as pa

from floeberg.protocol.commands import ScanCommand, TableName
from floeberg.protocol.errors import BadRequest
from floeberg.server.access import Caller
from floeberg.server.flight.scans import IsCancelled, ScanAnswer, Scans
from floeberg.server.sql.sessions import SessionOptions

_QUERY = re.compile(r"SELECT \* FROM ([\w.]+)( LIMIT \?)?")


class WholeTables:
    """Answers `SELECT * FROM db.orders`, with `LIMIT ?` behind it or without."""

    def __init__(self, scans: Scans) -> None:
        self._scans = scans

    def schema(
        self,
        sql: str,
        parameters: pa.RecordBatch | None,
        session: SessionOptions,
        caller: Caller,
    ) -> pa.Schema:
        command, _ = _read(sql, session)
        return self._scans.schema(command, caller)

    def parameter_schema(self, sql: str, session: SessionOptions, caller: Caller) -> pa.Schema:
        _, is_limited = _read(sql, session)
        return pa.schema([("0", pa.int64())] if is_limited else [])

    def info(
        self,
        sql: str,
        parameters: pa.RecordBatch | None,
        session: SessionOptions,
        caller: Caller,
        is_cancelled: IsCancelled,
        *,
        one_endpoint: bool = False,
    ) -> ScanAnswer:
        command, is_limited = _read(sql, session)
        if is_limited:
            if parameters is None:
                raise BadRequest("parameter 1 is not bound")
            command = command.model_copy(update={"limit": parameters.column(0)[0].as_py()})
        return self._scans.answer(command, caller, is_cancelled)


def _read(sql: str, session: SessionOptions) -> tuple[ScanCommand, bool]:
    found = _QUERY.fullmatch(sql)
    if found is None:
        raise BadRequest(f"syntax error at {sql.split()[0]!r}")
    parts = tuple(found[1].split("."))
    if len(parts) == 1 and session.schema is not None:
        parts = (*session.schema.split("."), *parts)
    if len(parts) < 3 and session.catalog is not None:
        parts = (session.catalog, *parts)
    command = ScanCommand.from_arguments(
        TableName(parts),
        snapshot_id=session.snapshot_id,
        ref=session.ref,
        as_of=session.as_of,
    )
    return command, found[2] is not None
