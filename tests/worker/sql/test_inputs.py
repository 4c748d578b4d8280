"""Where workers read the inputs of their statements, and what they do when those break off."""

from __future__ import annotations

import signal
import socket
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.protocol.errors import (
    ServerUnavailable,
)
from floeberg.protocol.sql_tickets import InputEndpoint, SqlInput, SqlSettings
from floeberg.worker.process import WorkerService
from tests.support.breaking import BreakingRead, CuttingProxy
from tests.support.fleet import LocalFleet
from tests.support.lake import TableWriter, schema
from tests.support.processes import processes
from tests.support.sql import (
    by_duckdb,
    input_of,
    planned,
    read_planned,
    redeemed,
    same_rows,
    sealed_sql,
    slow_client,
)
from tests.support.waiting import wait_until

COUNT = pa.schema([("n", pa.int64())])


def gone() -> Exception:
    return ServerUnavailable("the worker went away")


def streams_of(worker: WorkerService) -> int:
    return worker.status()["ended"].get("done", 0)  # type: ignore[attr-defined]


def test_inputs_are_read_at_their_workers_and_here_where_that_is_here(
    empty_fleet: LocalFleet,
) -> None:
    one, other, here = (empty_fleet.add_worker() for _ in range(3))
    orders = planned(empty_fleet.location, "db.orders")
    people = planned(empty_fleet.location, "db.people")
    sql = "SELECT i2.name, count(*) AS n FROM i0 JOIN i1 USING (who) JOIN i2 USING (who) GROUP BY 1"
    expected = by_duckdb(
        sql,
        {"i0": read_planned(orders), "i1": read_planned(people), "i2": read_planned(people)},
    )
    before = [streams_of(worker) for worker in (one, other, here)]
    raw = sealed_sql(
        empty_fleet.keys,
        sql,
        expected.schema,
        input_of(orders, "i0", [one.location]),
        input_of(people, "i1", [other.location]),
        input_of(people, "i2", [here.location]),
    )

    assert same_rows(redeemed(here.location, raw), expected)

    after = [streams_of(worker) for worker in (one, other, here)]
    assert [b - a for a, b in zip(before, after, strict=True)] == [
        len(orders.endpoints),
        len(people.endpoints),
        1,  # the statement alone: what is read here is no stream
    ]


@pytest.mark.parametrize("after", [0, 1, 3])
def test_an_input_that_breaks_goes_on_elsewhere_and_no_row_comes_twice(
    empty_fleet: LocalFleet, after: int
) -> None:
    breaking, whole = BreakingRead(after, gone), BreakingRead(1000, gone)
    workers = [empty_fleet.add_worker(read) for read in (breaking, whole)]
    here = empty_fleet.add_worker()
    info = planned(empty_fleet.location, "db.orders")
    expected = by_duckdb("SELECT * FROM i0", {"i0": read_planned_at(here, info)})
    for places in ([w.location for w in workers], [workers[0].location]):
        raw = sealed_sql(
            empty_fleet.keys, "SELECT * FROM i0", expected.schema, input_of(info, "i0", places)
        )

        assert same_rows(redeemed(here.location, raw), expected)

    assert breaking.resumed


def read_planned_at(worker: WorkerService, info: fl.FlightInfo) -> pa.Table:
    with fl.connect(worker.location) as client:
        return pa.concat_tables([client.do_get(e.ticket).read_all() for e in info.endpoints])


@pytest.mark.parametrize("limit", [1, 60, 700])
def test_the_limit_of_an_input_is_kept_when_it_breaks(empty_fleet: LocalFleet, limit: int) -> None:
    breaking = empty_fleet.add_worker(BreakingRead(2, gone))
    here = empty_fleet.add_worker()
    info = planned(empty_fleet.location, "db.orders", limit=limit)
    raw = sealed_sql(
        empty_fleet.keys,
        "SELECT count(*) AS n FROM i0",
        COUNT,
        input_of(info, "i0", [breaking.location]),
    )

    assert redeemed(here.location, raw)["n"].to_pylist() == [limit]


def test_a_network_that_drops_connections_loses_no_row(empty_fleet: LocalFleet) -> None:
    with CuttingProxy(limit=9_000) as proxy:
        far = empty_fleet.add_worker(advertise=f"127.0.0.1:{proxy.port}")
        here = empty_fleet.add_worker()
        proxy.target_port = far._server.port  # type: ignore[union-attr]
        info = planned(empty_fleet.location, "db.orders")
        expected = by_duckdb(
            "SELECT count(*) AS n, sum(id) AS s FROM i0", {"i0": read_planned_at(here, info)}
        )
        raw = sealed_sql(
            empty_fleet.keys,
            "SELECT count(*) AS n, sum(id) AS s FROM i0",
            expected.schema,
            input_of(info, "i0", [far.location]),
        )

        assert redeemed(here.location, raw).equals(expected)

    assert proxy.connections > 1


def test_a_worker_that_is_killed_while_it_serves_an_input_costs_no_row(tmp_path: Path) -> None:
    table = TableWriter.create(
        tmp_path / "lake" / "db" / "t", schema({"n": "long", "text": "string"})
    )
    for first in range(0, 8000, 2000):
        table.append([{"n": n, "text": f"{n:05000}"} for n in range(first, first + 2000)])
    with processes(tmp_path) as started:
        coordinator = started.coordinator(tmp_path / "lake", "--batch-bytes", "65536")
        serving, here = started.worker(coordinator), started.worker(coordinator)
        at = here.addresses["location"]
        info = wait_until(
            partial(planned_soon, coordinator.addresses["coordinator"]), "the workers to be known"
        )
        told = pa.schema([("n", pa.int64()), ("text", pa.string())])
        raw = sealed_sql(
            started.keys,
            "SELECT n, text FROM i0",
            told,
            input_of(info, "i0", [serving.addresses["location"]]),
            settings=SqlSettings(batch_bytes=65536),
        )
        with slow_client(at) as client:
            reader = client.do_get(fl.Ticket(raw))
            found = [reader.read_chunk().data]
            serving.signal(signal.SIGKILL)
            serving.exit_status()
            found += [chunk.data for chunk in reader]
        records = here.records()

    numbers = pa.Table.from_batches(found)["n"].to_pylist()
    assert sorted(numbers) == list(range(8000))
    assert any(record["message"].startswith("an input broke off") for record in records)


def planned_soon(location: str) -> fl.FlightInfo | None:
    try:
        info = planned(location, "db.t")
    except fl.FlightError:
        return None
    return info if info.endpoints[0].locations else None


def test_parts_that_workers_have_aggregated_are_merged(fleet: LocalFleet) -> None:
    info = planned(fleet.location, "db.orders")
    part = "SELECT who, sum(id)::BIGINT AS s, count(*) AS n FROM i0 GROUP BY who"
    told = pa.schema([("who", pa.int64()), ("s", pa.int64()), ("n", pa.int64())])
    nowhere = unused_location()
    parts = tuple(
        InputEndpoint(
            sealed_sql(
                fleet.keys,
                part,
                told,
                SqlInput("i0", info.schema, (InputEndpoint(e.ticket.ticket, places),)),
            ),
            (nowhere, *places) if n == 0 else places,
        )
        for n, e in enumerate(info.endpoints)
        for places in [tuple(at.uri.decode() for at in e.locations)]
    )
    merge = "SELECT who, sum(s)::BIGINT AS s, sum(n)::BIGINT AS n FROM i0 GROUP BY who"
    raw = sealed_sql(fleet.keys, merge, told, SqlInput("i0", told, parts))

    expected = by_duckdb(part, {"i0": read_planned(info)})
    for worker in fleet.workers:
        assert same_rows(redeemed(worker.location, raw), expected)


def unused_location() -> str:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"grpc://127.0.0.1:{unused.getsockname()[1]}"
