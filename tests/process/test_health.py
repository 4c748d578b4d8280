"""gRPC's health service, asked by grpcio's client at real processes and at one in this process."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import grpc
import pyarrow.flight as fl
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from floeberg.process.grpc_health import FLIGHT, LIVENESS, GrpcHealth
from floeberg.protocol.errors import BadConfig
from tests.support.certificates import loopback_certificate
from tests.support.fleet import read_all
from tests.support.lake import TableWriter, required, schema
from tests.support.processes import Processes, environment, processes
from tests.support.waiting import wait_until

SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING
UNKNOWN = HealthCheckResponse.SERVICE_UNKNOWN
SECONDS = 20


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Processes]:
    with processes(tmp_path) as started:
        yield started


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    table = TableWriter.create(
        tmp_path / "lake" / "db" / "orders", schema({"id": required("long")})
    )
    table.append([{"id": i} for i in range(10)])
    return tmp_path / "lake"


@pytest.fixture
def problems() -> dict[str, str | None]:
    return {"membership": None}


@pytest.fixture
def service(problems: dict[str, str | None]) -> Iterator[GrpcHealth]:
    service = GrpcHealth(lambda: problems, host="127.0.0.1", port=0)
    service.start()
    yield service
    service.stop()


def check(address: str, service: str = "") -> int:
    with grpc.insecure_channel(address) as channel:
        return (
            HealthStub(channel).Check(HealthCheckRequest(service=service), timeout=SECONDS).status
        )


class Watching:
    """Everything that a watching client is told, as it comes; None once the call has ended."""

    def __init__(self, address: str, service: str = "") -> None:
        self.told: SimpleQueue[int | None] = SimpleQueue()
        self._channel = grpc.insecure_channel(address)
        self._call = HealthStub(self._channel).Watch(HealthCheckRequest(service=service))
        self._thread = Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        try:
            for response in self._call:
                self.told.put(response.status)
        except grpc.RpcError:
            pass  # it ends with its server, or by `close`
        self.told.put(None)

    def next(self) -> int | None:
        return self.told.get(timeout=SECONDS)

    def close(self) -> None:
        self._call.cancel()
        self._thread.join()
        self._channel.close()


def test_it_follows_readiness(service: GrpcHealth, problems: dict[str, str | None]) -> None:
    watching = [Watching(service.address, name) for name in ("", FLIGHT)]
    assert [w.next() for w in watching] == [SERVING, SERVING]

    problems["membership"] = "no coordinator has this worker"

    assert [w.next() for w in watching] == [NOT_SERVING, NOT_SERVING]
    assert [check(service.address, name) for name in ("", FLIGHT)] == [NOT_SERVING, NOT_SERVING]
    assert check(service.address, LIVENESS) == SERVING

    problems["membership"] = None

    assert [w.next() for w in watching] == [SERVING, SERVING]
    for each in watching:
        each.close()


def test_many_may_watch_and_leave_while_it_changes(
    service: GrpcHealth, problems: dict[str, str | None]
) -> None:
    watching = [Watching(service.address) for _ in range(40)]
    assert [w.next() for w in watching] == [SERVING] * 40

    for n, leaving in enumerate(watching[:-1]):
        problems["membership"] = "no coordinator has this worker" if n % 2 == 0 else None
        leaving.close()

    assert watching[-1].next() == NOT_SERVING
    assert check(service.address) == NOT_SERVING
    watching[-1].close()


def test_a_service_that_there_is_not_is_unknown(service: GrpcHealth) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        check(service.address, "floeberg.Nothing")
    watching = Watching(service.address, "floeberg.Nothing")

    assert raised.value.code() == grpc.StatusCode.NOT_FOUND
    assert watching.next() == UNKNOWN
    watching.close()


def test_whoever_watches_is_told_of_the_end(problems: dict[str, str | None]) -> None:
    service = GrpcHealth(lambda: problems, host="127.0.0.1", port=0)
    service.start()
    watching = Watching(service.address)
    assert watching.next() == SERVING

    service.stop()

    assert [watching.next(), watching.next()] == [NOT_SERVING, None]
    watching.close()


def test_a_taken_port_is_named(service: GrpcHealth) -> None:
    port = int(service.address.rpartition(":")[2])

    with pytest.raises(BadConfig, match=f"'health_port': 127.0.0.1:{port} cannot be bound"):
        GrpcHealth(dict, host="127.0.0.1", port=port).start()


def test_stopping_what_never_started_is_harmless() -> None:
    GrpcHealth(dict, host="127.0.0.1", port=0).stop()


def test_grpcio_is_not_imported_unless_a_port_is_configured() -> None:
    code = (
        "import sys\n"
        "from floeberg.process.health import configured_health\n"
        "import floeberg.server.process, floeberg.worker.process\n"
        "from floeberg.worker.config import WorkerConfig\n"
        "assert configured_health(WorkerConfig(), dict) is None\n"
        "sys.exit('grpc' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], env=environment(), check=True)


@pytest.mark.parametrize("missing", ["grpc", "grpc_health"])
def test_without_the_package_the_process_says_which_extra_brings_it(missing: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from floeberg.worker.__main__ import main\n"
        "sys.argv[1:] = ['--health-port', '0', '--coordinator', 'grpc://127.0.0.1:1']\n"
        "sys.exit(main())"
    )
    key = {"FLOEBERG_KEY": "a:" + 43 * "A" + "="}

    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment() | key, capture_output=True, text=True
    )

    assert ended.returncode == 2
    assert "'health_port' needs a package that is missing" in ended.stderr
    assert "pip install 'floeberg[health]'" in ended.stderr


def test_a_worker_serves_health_from_its_registration_until_it_drains(
    started: Processes, warehouse: Path
) -> None:
    alone = started.worker(None, "--health-port", "0")
    assert check(alone.addresses["health"]) == NOT_SERVING
    assert check(alone.addresses["health"], LIVENESS) == SERVING

    coordinator = started.coordinator(warehouse, "--health-port", "0")
    worker = started.worker(coordinator, "--health-port", "0")
    wait_until(lambda: check(worker.addresses["health"]) == SERVING, "the worker to be ready")
    assert check(coordinator.addresses["health"]) == SERVING
    with fl.connect(coordinator.addresses["coordinator"]) as client:
        info = client.get_flight_info(fl.FlightDescriptor.for_path("db", "orders"))
    assert read_all(info).num_rows == 10  # two implementations of gRPC get along

    for process in (worker, coordinator):
        watching = Watching(process.addresses["health"])
        assert watching.next() == SERVING
        process.signal(signal.SIGTERM)
        assert watching.next() == NOT_SERVING
        assert process.exit_status() == 0
        watching.close()


def test_next_to_tls_health_is_in_clear_text_as_the_http_port_is(
    started: Processes, warehouse: Path, tmp_path: Path
) -> None:
    files = loopback_certificate(tmp_path)
    tls = ("--tls-cert", str(files.cert), "--tls-key", str(files.key))

    coordinator = started.coordinator(warehouse, *tls, "--health-port", "0")

    assert coordinator.addresses["coordinator"].startswith("grpc+tls:")
    assert check(coordinator.addresses["health"]) == SERVING
