"""Workers as actors of a real Ray cluster of several nodes, which all are this machine."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.flight as fl
import pytest

from floeberg.client import connect
from floeberg.process.config import load_config
from floeberg.protocol.errors import BadConfig
from floeberg.protocol.status import WorkerEntry
from floeberg.worker.config import WorkerConfig
from tests.support.fleet import LocalFleet, local_fleet, read_endpoint
from tests.support.lake import TableWriter, schema
from tests.support.processes import ServiceProcess
from tests.support.waiting import wait_until

ray = pytest.importorskip("ray", reason="Ray is not installed: `make ray` runs these tests")

# Ray leaves its own pipes and sockets to be closed
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
]

ROWS = 400
GIB = 1 << 30


class Nodes:
    """A cluster of nodes with room for one worker each, but for the head, which has none."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self._cluster = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 0, "memory": GIB, "include_dashboard": False},
        )
        self.address: str = self._cluster.address
        self._added: list[Any] = []
        self._cluster.connect()

    def add(self) -> None:
        self._added.append(
            self._cluster.add_node(num_cpus=1, memory=2 * GIB, resources={"lake": 1})
        )

    def remove(self, node_id: str) -> None:
        (node,) = [node for node in self._added if node.node_id == node_id]
        self._added.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)

    def actors(self) -> list[dict[str, Any]]:
        """Return the actors that are alive, as Ray lists them."""
        # the public list of actors asks the dashboard, which takes seconds to start
        return [a for a in ray._private.state.actors().values() if a["State"] == "ALIVE"]

    def close(self) -> None:
        ray.shutdown()
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # what Ray starts has its paths from here
        patch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
        cluster = Nodes()
        try:
            cluster.add()
            cluster.add()
            yield cluster
        finally:
            cluster.close()


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose rows are 64 KiB each: more than a connection holds back."""
    directory = tmp_path_factory.mktemp("lake")
    table = TableWriter.create(directory / "db" / "texts", schema({"id": "long", "text": "string"}))
    for first in range(0, ROWS, ROWS // 2):
        table.append([{"id": n, "text": f"{n:<65536}"} for n in range(first, first + ROWS // 2)])
    return directory


@dataclass
class Workers:
    """Two workers on Ray, the process that keeps them, and the coordinator that they are for."""

    driver: ServiceProcess
    fleet: LocalFleet

    def members(self) -> dict[str, WorkerEntry]:
        with connect(self.fleet.location) as lake:
            return {worker.worker_id: worker for worker in lake.status().workers}

    def ids(self) -> list[int]:
        with connect(self.fleet.location) as lake:
            scan = lake.table("db.texts").scan()
            return sorted(scan.to_arrow()["id"].to_pylist())


@pytest.fixture
def workers(nodes: Nodes, warehouse: Path, tmp_path: Path) -> Iterator[Workers]:
    with local_fleet(warehouse, workers=0, lease_seconds=3) as fleet:
        driver = ServiceProcess(
            [
                *(sys.executable, "-m", "floeberg.worker", "--on", "ray"),
                *("--ray-address", nodes.address, "--ray-workers", "2", "--ray-cpus", "0.5"),
                *("--ray-resources", "lake=1", "--memory-bytes", str(GIB)),
                *("--host", "0.0.0.0", "--insecure", "--coordinator", fleet.location),
            ],
            tmp_path,
            "driver",
            {"FLOEBERG_KEY": fleet.keys.to_text()},
        )
        try:
            driver.await_ready()
            started = Workers(driver, fleet)
            wait_until(lambda: len(started.members()) == 2, "both workers to register")
            yield started
        finally:
            driver.close()


@pytest.mark.timeout(240)
def test_ray_restarts_a_worker_that_was_killed_and_moves_those_of_a_node_that_is_gone(
    nodes: Nodes, workers: Workers
) -> None:
    first = workers.members()
    killed, _ = actors = nodes.actors()
    assert {worker.location.rpartition(":")[0] for worker in first.values()} == {
        f"grpc+tcp://{actor['Address']['IPAddress']}" for actor in actors
    }
    assert len({actor["Address"]["NodeID"] for actor in actors}) == 2  # one a node
    assert workers.ids() == list(range(ROWS))

    os.kill(killed["Pid"], signal.SIGKILL)

    def replaced(known: dict[str, WorkerEntry]) -> dict[str, WorkerEntry] | None:
        found = workers.members()
        return found if len(found) == 2 and not set(found) <= set(known) else None

    second = wait_until(lambda: replaced(first), "the worker to be back", seconds=60)
    assert workers.ids() == list(range(ROWS))

    nodes.add()
    gone = nodes.actors()[0]["Address"]["NodeID"]
    nodes.remove(gone)
    wait_until(lambda: replaced(second), "the node's worker to be elsewhere", seconds=90)
    assert gone not in {actor["Address"]["NodeID"] for actor in nodes.actors()}
    assert workers.ids() == list(range(ROWS))


@pytest.mark.timeout(240)
def test_sigterm_of_the_driver_lets_running_streams_end(nodes: Nodes, workers: Workers) -> None:
    with fl.connect(workers.fleet.location) as client:
        info = client.get_flight_info(fl.FlightDescriptor.for_path("db", "texts"))
    endpoint = info.endpoints[0]
    whole = read_endpoint(endpoint).num_rows
    with fl.connect(endpoint.locations[0]) as client:
        reader = client.do_get(endpoint.ticket)
        rows = reader.read_chunk().data.num_rows

        workers.driver.signal(signal.SIGTERM)
        wait_until(
            lambda: all(worker.state == "draining" for worker in workers.members().values()),
            "the workers to drain",
        )
        assert not workers.driver.has_ended()
        rows += reader.read_all().num_rows

    assert workers.driver.exit_status() == 0
    assert workers.members() == {}  # they have left: their leases would last on
    assert not nodes.actors()
    assert rows == whole


@pytest.mark.timeout(240)
def test_what_a_worker_cannot_start_with_ends_the_driver(nodes: Nodes, tmp_path: Path) -> None:
    driver = ServiceProcess(
        [
            *(sys.executable, "-m", "floeberg.worker", "--on", "ray"),
            *("--ray-address", nodes.address, "--ray-workers", "1", "--memory-bytes", str(GIB)),
            *("--coordinator", "grpc+tcp://127.0.0.1:1", "--key-file", str(tmp_path / "none")),
        ],
        tmp_path,
        "driver",
        {},
    )
    try:
        assert driver.exit_status() == 2
        last = driver.log_text().splitlines()[-1]
        assert last.startswith("floeberg worker: a worker can't start on Ray: ")
        assert str(tmp_path / "none") in last
        assert not nodes.actors()
    finally:
        driver.close()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({}, "'coordinator' must say whom workers on Ray register with"),
        ({"coordinator": "grpc+tcp://c:1", "advertise": "w"}, "exclude each other"),
    ],
)
def test_what_makes_no_sense_for_many_workers_is_refused(
    flags: dict[str, object], message: str
) -> None:
    from floeberg.worker.on_ray import run_workers

    with pytest.raises(BadConfig, match=message):
        run_workers(load_config(WorkerConfig, flags={"on": "ray", **flags}))
