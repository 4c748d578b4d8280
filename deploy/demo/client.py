"""A stock Arrow Flight client: pyarrow and JSON are all that it takes to read from floeberg.

It asks the coordinator for a plan, then redeems each ticket at the worker that is named first, all
at once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import flight


@dataclass(frozen=True)
class Part:
    """What one endpoint gave: `nbytes` of Arrow data, from the worker at `location`."""

    location: str
    rows: int
    nbytes: int


@dataclass(frozen=True)
class Answer:
    """A scan's rows, and how they came. `total_records` is the plan's word, -1 for unknown."""

    rows: pa.Table
    parts: tuple[Part, ...]
    total_records: int
    plan_seconds: float
    read_seconds: float


def list_tables(address: str) -> list[flight.FlightInfo]:
    """Return what the coordinator serves, one FlightInfo a table."""
    with flight.connect(address) as client:
        return list(client.list_flights())


def path(*parts: str) -> flight.FlightDescriptor:
    """Ask for a whole table."""
    return flight.FlightDescriptor.for_path(*parts)


def command(scan: Mapping[str, Any]) -> flight.FlightDescriptor:
    """Ask for a scan: table, filter, select, and snapshot_id, ref or as_of."""
    return flight.FlightDescriptor.for_command(json.dumps(scan).encode())


def plan(address: str, descriptor: flight.FlightDescriptor) -> flight.FlightInfo:
    """Return the coordinator's plan: the schema, the endpoints, and the number of rows if known."""
    with flight.connect(address) as client:
        return client.get_flight_info(descriptor)


def read(address: str, descriptor: flight.FlightDescriptor) -> Answer:
    """Return a scan's rows in the order of its endpoints, which are read in parallel."""
    started = time.perf_counter()
    info = plan(address, descriptor)
    planned = time.perf_counter()
    with ThreadPoolExecutor(max_workers=max(len(info.endpoints), 1)) as pool:
        read = list(pool.map(_read_endpoint, info.endpoints))
    finished = time.perf_counter()
    tables = [table for table, _ in read] or [info.schema.empty_table()]
    return Answer(
        pa.concat_tables(tables),
        tuple(part for _, part in read),
        info.total_records,
        planned - started,
        finished - planned,
    )


def _read_endpoint(endpoint: flight.FlightEndpoint) -> tuple[pa.Table, Part]:
    location = endpoint.locations[0].uri.decode()
    with flight.connect(location) as worker:
        table = worker.do_get(endpoint.ticket).read_all()
    return table, Part(location, table.num_rows, table.nbytes)
