"""A coordinator and workers as processes: started, killed, started again, stopped."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.protocol.actions import STATUS
from floeberg.protocol.errors import ServerUnavailable
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.status import Status
from tests.support.fleet import read_all
from tests.support.lake import TableWriter, required, schema
from tests.support.processes import Processes, ServiceProcess, processes, run_module
from tests.support.waiting import wait_until

ORDERS = fl.FlightDescriptor.for_path("db", "orders")
FILES = 4
ROWS_A_FILE = 20_000


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Processes]:
    with processes(tmp_path) as started:
        yield started


def write_orders(warehouse: Path) -> None:
    """Write `db.orders`, in files of 40 MB: too much for the buffers on a stream's way."""
    table = TableWriter.create(
        warehouse / "db" / "orders", schema({"id": required("long"), "text": "string"})
    )
    for first in range(FILES):
        ids = range(first * ROWS_A_FILE, (first + 1) * ROWS_A_FILE)
        table.append(pa.table({"id": ids, "text": [f"{i:02000}" for i in ids]}))


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("lake")
    write_orders(directory)
    return directory


def status_of(coordinator: ServiceProcess) -> Status:
    with fl.connect(coordinator.addresses["coordinator"]) as client:
        (result,) = client.do_action(fl.Action(STATUS.name, b""))
        return STATUS.parse_reply(result.body.to_pybytes())


def members_of(coordinator: ServiceProcess) -> set[str]:
    return {w.location for w in status_of(coordinator).workers}


def await_members(coordinator: ServiceProcess, *workers: ServiceProcess) -> None:
    expected = {w.addresses["location"] for w in workers}
    wait_until(lambda: members_of(coordinator) == expected, f"the members to be {expected}")


def plan(coordinator: ServiceProcess) -> fl.FlightInfo:
    with fl.connect(coordinator.addresses["coordinator"]) as client:
        return client.get_flight_info(ORDERS)


def ids(rows: pa.Table) -> list[int]:
    return sorted(rows["id"].to_pylist())


def first_locations(info: fl.FlightInfo) -> set[str]:
    return {e.locations[0].uri.decode() for e in info.endpoints}


def test_processes_serve_a_table_and_tickets_need_nothing_but_data_files(
    started: Processes, tmp_path: Path
) -> None:
    warehouse = tmp_path / "lake"
    write_orders(warehouse)
    coordinator = started.coordinator(warehouse)
    workers = [started.worker(coordinator, "--log-level", "debug") for _ in range(2)]
    await_members(coordinator, *workers)
    info = plan(coordinator)
    coordinator.signal(signal.SIGTERM)
    assert coordinator.exit_status() == 0
    shutil.rmtree(warehouse / "db" / "orders" / "metadata")

    rows = read_all(info)

    assert ids(rows) == list(range(FILES * ROWS_A_FILE))
    assert first_locations(info) == {w.addresses["location"] for w in workers}
    asked = [
        r["location"] for w in workers for r in w.records() if r["message"] == "storage request"
    ]
    assert len(set(asked)) == FILES
    assert all(location.endswith(".parquet") for location in asked)


@pytest.mark.parametrize("max_info_bytes", [8 << 20, 0], ids=["listed", "named"])
def test_a_killed_worker_ends_its_streams_retryably_and_is_dropped_after_its_lease(
    started: Processes, warehouse: Path, max_info_bytes: int
) -> None:
    # a busy machine must not make the other worker miss its lease as well
    flags = ("--lease-seconds", "3", "--max-info-bytes", str(max_info_bytes))
    coordinator = started.coordinator(warehouse, *flags)
    doomed, other = (started.worker(coordinator) for _ in range(2))
    await_members(coordinator, doomed, other)
    info = plan(coordinator)
    endpoint = info.endpoints[0]
    with fl.connect(doomed.addresses["location"]) as client:
        reader = client.do_get(endpoint.ticket)
        reader.read_chunk()

        doomed.signal(signal.SIGKILL)

        with pytest.raises((fl.FlightError, OSError)) as raised:
            reader.read_all()
    assert isinstance(from_flight(raised.value), ServerUnavailable)
    await_members(coordinator, other)
    assert first_locations(plan(coordinator)) == {other.addresses["location"]}
    with fl.connect(other.addresses["location"]) as client:
        assert client.do_get(endpoint.ticket).read_all().num_rows > 0


def test_a_worker_that_is_told_to_stop_finishes_its_stream_and_takes_no_new_one(
    started: Processes, warehouse: Path
) -> None:
    coordinator = started.coordinator(warehouse)
    leaving, staying = (started.worker(coordinator) for _ in range(2))
    await_members(coordinator, leaving, staying)
    with fl.connect(coordinator.addresses["coordinator"]) as client:
        descriptor = fl.FlightDescriptor.for_command(b'{"table": "db.orders", "limit": 10000000}')
        ticket = client.get_flight_info(descriptor).endpoints[0].ticket
    with fl.connect(leaving.addresses["location"]) as client:
        reader = client.do_get(ticket)
        first = reader.read_chunk().data

        leaving.signal(signal.SIGTERM)
        wait_until(
            lambda: first_locations(plan(coordinator)) == {staying.addresses["location"]},
            "new endpoints to name the other worker alone",
        )
        with pytest.raises(fl.FlightUnavailableError):
            client.do_get(ticket)
        http = leaving.addresses["http"]
        assert httpx.get(f"{http}/readyz").status_code == 503

        rest = reader.read_all()
    assert first.num_rows + rest.num_rows == FILES * ROWS_A_FILE
    assert leaving.exit_status() == 0
    await_members(coordinator, staying)


def test_a_client_that_does_not_read_keeps_no_worker_alive(
    started: Processes, warehouse: Path
) -> None:
    coordinator = started.coordinator(warehouse)
    worker = started.worker(coordinator, "--drain-seconds", "0.1")
    await_members(coordinator, worker)
    ticket = plan(coordinator).endpoints[0].ticket
    with fl.connect(worker.addresses["location"]) as client:
        reader = client.do_get(ticket)
        reader.read_chunk()

        worker.signal(signal.SIGTERM)

        assert worker.exit_status() == 0
        del reader


def test_workers_join_a_coordinator_that_was_killed_and_started_again(
    started: Processes, warehouse: Path
) -> None:
    coordinator = started.coordinator(warehouse)
    worker = started.worker(coordinator)
    await_members(coordinator, worker)
    info = plan(coordinator)
    port = coordinator.addresses["coordinator"].rpartition(":")[2]

    coordinator.signal(signal.SIGKILL)
    coordinator.exit_status()
    assert ids(read_all(info)) == list(range(FILES * ROWS_A_FILE))
    again = started.coordinator(warehouse, "--port", port)

    await_members(again, worker)
    assert ids(read_all(plan(again))) == list(range(FILES * ROWS_A_FILE))


def test_catalogs_come_from_the_configuration_file_and_from_flags(
    started: Processes, warehouse: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(warehouse, moved)
    file = tmp_path / "floeberg.toml"
    file.write_text(
        f"""
        default_catalog = "here"
        [catalogs.here]
        kind = "warehouse"
        uri = "{warehouse}"
        """
    )

    coordinator = started.start(
        "floeberg.server",
        *("--config", str(file), "--port", "0"),
        *("--catalog", f"there=warehouse:{moved}", "--rebase", f"file://{warehouse}={moved}"),
    )

    with fl.connect(coordinator.addresses["coordinator"]) as client:
        paths = [[p.decode() for p in f.descriptor.path] for f in client.list_flights()]
    assert sorted(paths) == [["db", "orders"], ["there", "db", "orders"]]
    assert {c.name: c.kind for c in status_of(coordinator).catalogs} == {
        "here": "warehouse",
        "there": "warehouse",
    }


def test_processes_end_with_the_parent_that_holds_their_standard_input(
    started: Processes, warehouse: Path
) -> None:
    coordinator = started.coordinator(warehouse)
    worker = started.worker(coordinator)

    for process in (worker, coordinator):
        process.close_stdin()
        assert process.exit_status() == 0


@pytest.mark.parametrize(
    ("module", "flags", "message"),
    [
        ("floeberg.server", ["--lease-secs", "1"], "did you mean 'lease_seconds'"),
        ("floeberg.worker", ["--host", "0.0.0.0"], "--insecure"),
        ("floeberg.worker", ["--host", "0.0.0.0", "--insecure"], "can't dial"),
        ("floeberg.worker", ["--port", "nine"], "'nine' is not a whole number"),
    ],
)
def test_a_mistake_in_the_configuration_is_one_line_and_status_2(
    tmp_path: Path, module: str, flags: list[str], message: str
) -> None:
    Keyring.generate().write(tmp_path / "keys")

    done = run_module(module, "--key-file", str(tmp_path / "keys"), *flags)

    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
