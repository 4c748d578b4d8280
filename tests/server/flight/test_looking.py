"""Workers that are found, as processes. The coordinator is in this process, as its resolver is."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pyarrow.flight as fl
import pytest
from cryptography import x509

from floeberg.process.config import load_config
from floeberg.process.storage import StorageCache, open_storage
from floeberg.protocol.registration import ASK_WORKER
from floeberg.server.catalogs import Catalogs, WarehouseCatalog
from floeberg.server.config import CoordinatorConfig
from floeberg.server.flight.looking import Resolver, system_addresses, targets_of
from floeberg.server.process import CoordinatorService
from tests.support.certificates import Authority
from tests.support.fleet import read_all
from tests.support.gate import NO_HURRY
from tests.support.lake import TableWriter
from tests.support.processes import Processes, ServiceProcess, processes
from tests.support.waiting import wait_until

ORDERS = fl.FlightDescriptor.for_path("db", "orders")
NAME = "workers.lake"


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Processes]:
    with processes(tmp_path) as started:
        yield started


@contextmanager
def coordinator_here(
    started: Processes, warehouse: Path, resolve: Resolver = system_addresses, **flags: object
) -> Iterator[CoordinatorService]:
    values = {"key": started.keys.to_text(), "port": 0, "drain_seconds": 1, **flags}
    service = CoordinatorService(
        load_config(CoordinatorConfig, flags=values),
        Catalogs([WarehouseCatalog("warehouse", str(warehouse))]),
        StorageCache(open_storage),
        resolve,
    )
    service.start()
    try:
        yield service
    finally:
        service.stop(NO_HURRY)


def location(worker: ServiceProcess) -> str:
    return worker.addresses["location"]


def await_serving(coordinator: CoordinatorService, *workers: ServiceProcess) -> None:
    """Wait until new endpoints may name just these workers."""
    expected = {location(w) for w in workers}
    wait_until(
        lambda: {w.location for w in coordinator.members.ready()} == expected,
        f"the workers to be {expected}",
    )


def is_ready(service: CoordinatorService | ServiceProcess) -> bool:
    addresses = service.addresses if isinstance(service, ServiceProcess) else service.addresses()
    return httpx.get(f"{addresses['http']}/readyz").status_code == 200


def test_workers_of_a_list_are_found_read_and_let_go_when_they_drain(
    started: Processes, warehouse: Path, orders: TableWriter
) -> None:
    leaving, staying = (started.worker(None) for _ in range(2))
    assert not is_ready(leaving)
    listed = {"worker": [location(leaving), location(staying)], "lease_seconds": 3}
    with (
        coordinator_here(started, warehouse, **listed) as one,
        coordinator_here(started, warehouse, **listed) as other,
    ):
        for coordinator in (one, other):
            await_serving(coordinator, leaving, staying)
        assert is_ready(leaving)
        with fl.connect(one.location) as client:
            rows = read_all(client.get_flight_info(ORDERS))

        leaving.process.terminate()

        assert leaving.exit_status() == 0
        # it has told both before it went: neither waits for a lease to run out
        for coordinator in (one, other):
            assert {w.location for w in coordinator.members.ready()} == {location(staying)}
            wait_until(lambda c=coordinator: len(c.members.all()) == 1, "the worker to be gone")
    assert sorted(rows["id"].to_pylist()) == list(range(800))
    assert not [r for r in leaving.records() if r["level"] == "warning"]


def test_a_killed_worker_is_dropped_and_another_one_at_its_address_is_found(
    started: Processes, warehouse: Path, orders: TableWriter
) -> None:
    doomed = started.worker(None)
    with coordinator_here(started, warehouse, worker=[location(doomed)], lease_seconds=1) as here:
        await_serving(here, doomed)

        doomed.process.kill()

        await_serving(here)
        again = started.worker(None, "--port", location(doomed).rpartition(":")[2])
        await_serving(here, again)


def test_workers_of_a_name_come_and_go_with_its_addresses(
    started: Processes, warehouse: Path, orders: TableWriter
) -> None:
    first = started.worker(None)
    port = location(first).rpartition(":")[2]
    second = started.worker(None, "--host", "127.0.0.2", "--port", port)
    addresses = {"127.0.0.1"}

    def resolve(host: str, port: int) -> list[str]:
        assert host == NAME
        if not addresses:
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return sorted(addresses)

    name = f"grpc://{NAME}:{port}"
    with coordinator_here(
        started, warehouse, resolve, worker_dns=[name], lease_seconds=0.6
    ) as here:
        await_serving(here, first)
        addresses.add("127.0.0.2")
        await_serving(here, first, second)
        addresses.remove("127.0.0.1")
        await_serving(here, second)

        addresses.clear()

        metrics = f"{here.addresses()['http']}/metrics"
        failed = 'floeberg_fleet_lookups_total{outcome="failed"}'
        wait_until(lambda: f"{failed} 0.0" not in httpx.get(metrics).text, "a failed look-up")
        await_serving(here, second)


def test_this_machine_resolves_names_itself(
    started: Processes, warehouse: Path, orders: TableWriter
) -> None:
    worker = started.worker(None)
    port = location(worker).rpartition(":")[2]
    coordinator = started.coordinator(warehouse, "--worker-dns", f"grpc://localhost:{port}")

    wait_until(lambda: is_ready(coordinator), "the coordinator to have looked")

    with fl.connect(coordinator.addresses["coordinator"]) as client:
        assert read_all(client.get_flight_info(ORDERS)).num_rows == 800


def test_a_coordinator_that_finds_nobody_serves_all_the_same(
    started: Processes, warehouse: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def resolve(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    name = f"grpc://{NAME}:8815"
    with coordinator_here(started, warehouse, resolve, worker_dns=[name], lease_seconds=1) as here:
        wait_until(lambda: is_ready(here), "the coordinator to have looked")

    (warning,) = [r for r in caplog.records if r.getMessage() == "name not resolved"]
    assert warning.__dict__["uri"] == name


@pytest.mark.parametrize("is_for_the_name", [True, False])
def test_a_worker_of_a_name_shows_a_certificate_for_that_name(
    started: Processes, warehouse: Path, tmp_path: Path, is_for_the_name: bool
) -> None:
    authority = Authority(tmp_path)
    names = [x509.DNSName(NAME)] if is_for_the_name else []
    issued, mine = authority.issue("worker", names), authority.service()
    worker = started.worker(
        None,
        *("--tls-cert", str(issued.cert), "--tls-key", str(issued.key)),
    )
    tls = {
        "tls_cert": str(mine.cert),
        "tls_key": str(mine.key),
        "tls_roots": str(authority.roots),
        "worker_dns": [f"grpc+tls://{NAME}:{location(worker).rpartition(':')[2]}"],
    }
    with coordinator_here(started, warehouse, lambda *_: ["127.0.0.1"], **tls) as here:
        wait_until(lambda: is_ready(here), "the coordinator to have looked")

        found = {w.location for w in here.members.ready()}
    assert found == ({location(worker)} if is_for_the_name else set())


def test_what_is_no_worker_of_this_fleet_is_not_taken_in(
    started: Processes, warehouse: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "others").mkdir()
    with processes(tmp_path / "others") as others:
        stranger = others.worker(None)
        flags = {"worker": [location(stranger)], "lease_seconds": 1}
        with coordinator_here(started, warehouse, **flags) as here:
            wait_until(lambda: is_ready(here), "the coordinator to have looked")
            assert here.members.ready() == ()
        with fl.connect(location(stranger)) as client, pytest.raises(fl.FlightUnauthenticatedError):
            list(client.do_action(fl.Action(ASK_WORKER, b"{}")))

    (warning,) = [r for r in caplog.records if r.getMessage() == "worker did not answer"]
    assert "UNAUTHENTICATED" in warning.__dict__["error"]


def test_addresses_that_nobody_could_dial_are_passed_over() -> None:
    found = targets_of(f"grpc://{NAME}:8815", lambda *_: ["fe80::1%eth0", "::1"])

    assert [target.uri for target in found] == ["grpc+tcp://[::1]:8815"]
