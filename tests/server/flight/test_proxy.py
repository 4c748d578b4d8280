"""The coordinator as the one address that a client can reach."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.protocol.errors import (
    BadFilter,
    BadTicket,
    ExpiredTicket,
    FloebergError,
    MissingFile,
    NoWorkers,
    Unsupported,
    WorkerBusy,
)
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.plans import ReadPlan, ResumePlace
from floeberg.protocol.storage import Storage
from floeberg.protocol.tickets import decode_place, open_ticket, seal_ticket, with_resume
from floeberg.worker.reading import PlacedBatch
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.gate import NO_HURRY, Gate, now_ms
from tests.support.lake import TableWriter
from tests.support.waiting import wait_until

ORDERS = fl.FlightDescriptor.for_path("db", "orders")


@pytest.fixture
def ticket(client: fl.FlightClient) -> bytes:
    """The whole table, in one ticket."""
    descriptor = fl.FlightDescriptor.for_command(b'{"table": "db.orders", "limit": 100000}')
    (endpoint,) = client.get_flight_info(descriptor).endpoints
    return bytes(endpoint.ticket.ticket)


def test_places_come_through_so_that_a_client_can_resume(
    client: fl.FlightClient, ticket: bytes
) -> None:
    reader = client.do_get(fl.Ticket(ticket))
    chunk = reader.read_chunk()
    place = decode_place(chunk.app_metadata.to_pybytes())
    reader.cancel()
    rest = client.do_get(fl.Ticket(with_resume(ticket, place))).read_all()

    assert place > ResumePlace(0, 0)
    assert chunk.data.num_rows + rest.num_rows == 800


def test_the_coordinator_reads_nothing_itself(
    client: fl.FlightClient, fleet: LocalFleet, ticket: bytes
) -> None:
    for worker in fleet.workers:
        worker.stop(NO_HURRY)
    fleet.workers.clear()

    with pytest.raises(fl.FlightUnavailableError) as raised:
        client.do_get(fl.Ticket(ticket))

    assert type(from_flight(raised.value)) is NoWorkers


def test_a_full_worker_is_passed_over_and_a_full_fleet_says_so(
    warehouse: Path, orders: TableWriter
) -> None:
    gate = Gate(rows=3)
    with local_fleet(warehouse, workers=0) as fleet, fl.connect(fleet.location) as client:
        for _ in range(2):
            fleet.add_worker(gate, max_streams=1)
        ticket = client.get_flight_info(ORDERS).endpoints[0].ticket

        first, second = client.do_get(ticket), client.do_get(ticket)
        with pytest.raises(fl.FlightUnavailableError) as raised:
            client.do_get(ticket)

        assert type(from_flight(raised.value)) is WorkerBusy
        assert all(w.status()["streams"] == 1 for w in fleet.workers)
        gate.let_through(6)
        assert first.read_all().num_rows == second.read_all().num_rows == 3


def test_tickets_that_are_no_good_never_reach_a_worker(
    client: fl.FlightClient, fleet: LocalFleet, ticket: bytes
) -> None:
    plan = open_ticket(ticket, fleet.keys, now_ms=now_ms()).plan
    expired = seal_ticket(plan, fleet.keys, principal=None, expires_at_ms=now_ms() - 1)

    for raw, expected in ((ticket[:-1], BadTicket), (b"", BadTicket), (expired, ExpiredTicket)):
        with pytest.raises((fl.FlightError, pa.ArrowException)) as raised:
            client.do_get(fl.Ticket(raw))
        assert type(from_flight(raised.value)) is expected


def test_a_worker_s_error_keeps_its_code_on_the_way(
    client: fl.FlightClient, orders: TableWriter, ticket: bytes
) -> None:
    gone = orders.files()[0]
    orders.local(gone.location).unlink()

    with pytest.raises(fl.FlightError) as raised:
        client.do_get(fl.Ticket(ticket)).read_all()

    error = from_flight(raised.value)
    assert isinstance(error, MissingFile)
    assert gone.location in str(error)


@pytest.mark.parametrize("error", [Unsupported("an encrypted file"), BadFilter("no such thing")])
def test_an_error_in_the_middle_of_a_stream_keeps_its_code(
    warehouse: Path, orders: TableWriter, error: FloebergError
) -> None:
    def fail(plan: ReadPlan, storage: Storage, *, resume: ResumePlace) -> Iterator[PlacedBatch]:
        yield from Gate(rows=1, opened=threading.Semaphore(1))(plan, storage, resume=resume)
        raise error

    with local_fleet(warehouse, workers=0) as fleet, fl.connect(fleet.location) as client:
        fleet.add_worker(fail)
        ticket = client.get_flight_info(ORDERS).endpoints[0].ticket

        with pytest.raises((fl.FlightError, pa.ArrowException)) as raised:
            client.do_get(ticket).read_all()

    found = from_flight(raised.value)
    assert (type(found), str(found)) == (type(error), str(error))


def test_a_client_that_cancels_frees_the_worker(
    client: fl.FlightClient, fleet: LocalFleet, ticket: bytes
) -> None:
    reader = client.do_get(fl.Ticket(ticket))
    reader.cancel()

    wait_until(
        lambda: all(w.status()["streams"] == 0 for w in fleet.workers), "the workers to be free"
    )


@pytest.mark.parametrize(
    ("redeem_at", "workers", "reuse"), [("coordinator", 0, 0), ("both", 2, 1), ("workers", 2, 0)]
)
def test_endpoints_send_clients_where_the_configuration_says(
    warehouse: Path, orders: TableWriter, redeem_at: str, workers: int, reuse: int
) -> None:
    with (
        local_fleet(warehouse, redeem_at=redeem_at) as fleet,
        fl.connect(fleet.location) as client,
    ):
        for endpoint in client.get_flight_info(ORDERS).endpoints:
            uris = [location.uri for location in endpoint.locations]

            assert len(uris) == workers + reuse
            assert uris[workers:] == [b"arrow-flight-reuse-connection://?"] * reuse
