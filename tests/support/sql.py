"""SQL tickets made by hand over the tickets of scans, and what DuckDB answers by itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.flight as fl

from floeberg.process.calling import STREAM_CHANNEL
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.sql_tickets import InputEndpoint, SqlInput, SqlTicket, seal_sql_ticket
from tests.support.gate import now_ms


def planned(location: str, table: str, **command: Any) -> fl.FlightInfo:
    """Return a coordinator's answer to a scan command."""
    descriptor = fl.FlightDescriptor.for_command(json.dumps({"table": table, **command}))
    with fl.connect(location) as client:
        return client.get_flight_info(descriptor)


def read_planned(info: fl.FlightInfo) -> pa.Table:
    """Return all rows, each endpoint's from its first location."""
    parts = []
    for endpoint in info.endpoints:
        with fl.connect(endpoint.locations[0]) as client:
            parts.append(client.do_get(endpoint.ticket).read_all())
    return pa.concat_tables(parts)


def input_of(
    info: fl.FlightInfo, name: str = "i0", locations: Sequence[str] | None = None
) -> SqlInput:
    """Return the input that is a plan's rows, to be read where it says, or at `locations`."""
    endpoints = (
        InputEndpoint(
            endpoint.ticket.ticket,
            tuple(locations)
            if locations is not None
            else tuple(at.uri.decode() for at in endpoint.locations),
        )
        for endpoint in info.endpoints
    )
    return SqlInput(name, info.schema, tuple(endpoints))


def sealed_sql(keys: Keyring, sql: str, told: pa.Schema, *inputs: SqlInput, **given: Any) -> bytes:
    """Return a ticket for a minute, of nobody's unless `given` says so."""
    values = {"principal": None, "expires_at_ms": now_ms() + 60_000, **given}
    return seal_sql_ticket(SqlTicket(sql, told, inputs, **values), keys)


def redeemed(location: str, raw: bytes) -> pa.Table:
    with fl.connect(location) as client:
        return client.do_get(fl.Ticket(raw)).read_all()


def slow_client(location: str) -> fl.FlightClient:
    """Return a client that holds little of what it does not read."""
    return fl.FlightClient(location, generic_options=list(STREAM_CHANNEL))


def by_duckdb(sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return the answer over tables that DuckDB has made its own."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            connection.register("given", table)
            connection.execute(f"CREATE TABLE {name} AS FROM given")
            connection.unregister("given")
        answer: pa.Table = connection.sql(sql).to_arrow_table()
        return answer


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Say whether the same rows are there, in whatever order."""
    rows = [sorted(map(repr, table.to_pylist())) for table in (one, other)]
    return rows[0] == rows[1]
