"""`floeberg up` as a process: everything starts, comes back when killed, and ends together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pyarrow.flight as fl
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from floeberg.client import connect
from floeberg.embedded.up import Cluster, UpConfig
from floeberg.process.config import load_config
from floeberg.process.lifecycle import Stop
from floeberg.protocol.errors import Unauthenticated
from tests.support.callers import ANN, token_file
from tests.support.fleet import read_all
from tests.support.lake import TableWriter, required, schema
from tests.support.processes import environment, run_module
from tests.support.waiting import wait_until

ORDERS = fl.FlightDescriptor.for_path("db", "orders")


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    table = TableWriter.create(
        tmp_path / "lake" / "db" / "orders", schema({"id": required("long")})
    )
    for first in range(0, 80, 10):
        table.append([{"id": i} for i in range(first, first + 10)])
    return tmp_path / "lake"


class Up:
    """A running `floeberg up`."""

    def __init__(self, warehouse: Path, ready_file: Path, log_file: Path, *flags: str) -> None:
        self._ready_file = ready_file
        self._log_file = log_file
        with log_file.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "floeberg.embedded", "up"),
                    *("--warehouse", str(warehouse), "--port", "0"),
                    *("--ready-file", str(ready_file), *flags),
                ],
                env=environment(),
                stdout=log,
                stderr=log,
            )
        self.pids: set[int] = set()

    def ready(self) -> dict[str, Any]:
        def written() -> bool:
            assert self.process.poll() is None, self._log_file.read_text()
            return self._ready_file.exists()

        wait_until(written, "floeberg up to be ready", seconds=90)
        addresses: dict[str, Any] = json.loads(self._ready_file.read_text())
        self.pids = children_of(self.process.pid)
        return addresses

    def log_text(self) -> str:
        return self._log_file.read_text()

    def close(self) -> None:
        self.pids |= children_of(self.process.pid)
        self.process.kill()
        self.process.wait()
        for pid in self.pids:
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)


def children_of(pid: int) -> set[int]:
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except FileNotFoundError:
        return set()
    return {int(child) for child in listed.split()}


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # ended, and its parent has not looked


@pytest.fixture
def up(warehouse: Path, tmp_path: Path) -> Iterator[Up]:
    flags = ("--workers", "2", "--health-port", "0")
    up = Up(warehouse, tmp_path / "ready.json", tmp_path / "log", *flags)
    yield up
    up.close()


def ids_of(coordinator: str) -> list[int]:
    with fl.connect(coordinator) as client:
        return sorted(read_all(client.get_flight_info(ORDERS))["id"].to_pylist())


def locations_of(coordinator: str) -> set[str]:
    with fl.connect(coordinator) as client:
        info = client.get_flight_info(ORDERS)
    return {location.uri.decode() for e in info.endpoints for location in e.locations}


def is_serving(health: str) -> bool:
    with grpc.insecure_channel(health) as channel:
        answer = HealthStub(channel).Check(HealthCheckRequest(), timeout=20)
    return answer.status == HealthCheckResponse.SERVING


def workers_of(coordinator: str) -> set[str]:
    with connect(coordinator) as lake:
        return {worker.worker_id for worker in lake.status().workers}


def test_everything_is_there_when_the_ready_file_is_and_gone_after_a_signal(
    up: Up, tmp_path: Path
) -> None:
    ready = up.ready()

    assert len(ready["workers"]) == 2
    assert locations_of(ready["coordinator"]) == {w["location"] for w in ready["workers"]}
    assert ids_of(ready["coordinator"]) == list(range(80))
    assert ready["coordinator"] in up.log_text()
    assert all(is_serving(service["health"]) for service in (ready, *ready["workers"]))
    assert len(up.pids) == 3

    up.process.send_signal(signal.SIGTERM)

    assert up.process.wait(30) == 0
    assert not any(map(is_running, up.pids))


def test_a_killed_worker_and_a_killed_coordinator_come_back(up: Up) -> None:
    ready = up.ready()
    victim, survivor = ready["workers"]

    with fl.connect(ready["coordinator"]) as client:
        info = client.get_flight_info(ORDERS)

    os.kill(victim["pid"], signal.SIGKILL)

    def replaced() -> bool:
        ids = workers_of(ready["coordinator"])
        return len(ids) == 2 and victim["worker"] not in ids

    wait_until(replaced, "another worker to have joined", seconds=60)
    named = {survivor["location"], victim["location"]}
    assert locations_of(ready["coordinator"]) == named, "it is where old endpoints look for it"
    assert is_serving(victim["health"])
    assert sorted(read_all(info)["id"].to_pylist()) == list(range(80))
    up.pids |= children_of(up.process.pid)
    (coordinator,) = [
        pid for pid in up.pids if is_running(pid) and "floeberg.server" in command_of(pid)
    ]

    os.kill(coordinator, signal.SIGKILL)

    def back() -> bool:
        try:
            return len(locations_of(ready["coordinator"])) == 2
        except fl.FlightUnavailableError:
            return False

    wait_until(back, "the coordinator to be back where it was", seconds=60)
    assert ids_of(ready["coordinator"]) == list(range(80))


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def test_nothing_is_left_when_the_parent_is_killed(up: Up) -> None:
    up.ready()

    up.process.kill()
    up.process.wait()

    wait_until(lambda: not any(map(is_running, up.pids)), "the children to be gone", seconds=30)


def test_one_signal_leaves_the_children_their_time_to_drain(warehouse: Path) -> None:
    stop = Stop()
    cluster = Cluster(load_config(UpConfig, flags={"warehouse": str(warehouse)}), stop=stop)

    stop.ask("SIGTERM")
    cluster.stop()

    assert not stop.at_once.is_set()


def test_ctrl_c_while_starting_stops_everything(warehouse: Path, tmp_path: Path) -> None:
    up = Up(warehouse, tmp_path / "ready.json", tmp_path / "log")
    try:
        wait_until(lambda: children_of(up.process.pid), "a child", seconds=60)
        up.pids = children_of(up.process.pid)

        up.process.send_signal(signal.SIGINT)

        assert up.process.wait(30) == 0
        assert not (tmp_path / "ready.json").exists()
        wait_until(lambda: not any(map(is_running, up.pids)), "the children to be gone")
    finally:
        up.close()


def test_a_child_that_cannot_start_ends_everything_with_its_reason(tmp_path: Path) -> None:
    done = run_module("floeberg.embedded", "up", "--warehouse", str(tmp_path / "nothing"))

    assert done.returncode == 2
    assert "is not a directory" in done.stderr
    assert "coordinator ended with status 2" in done.stderr


def test_the_services_describe_their_flags() -> None:
    for command, flag in (("up", "--workers"), ("worker", "--zone"), ("coordinator", "--rebase")):
        done = run_module("floeberg.embedded", command, "--help")

        assert done.returncode == 0
        assert flag in done.stdout


def test_workers_keep_parts_of_files_where_they_are_told_to(
    warehouse: Path, tmp_path: Path
) -> None:
    flags = {
        "warehouse": str(warehouse),
        "port": 0,
        "workers": 1,
        "block_cache_dir": str(tmp_path / "kept"),
    }
    with Cluster(load_config(UpConfig, flags=flags)):
        assert (tmp_path / "kept" / "blocks").is_dir()


def test_everything_that_is_up_asks_who_calls(warehouse: Path, tmp_path: Path) -> None:
    flags = {
        "warehouse": str(warehouse),
        "port": 0,
        "workers": 1,
        "auth_tokens": token_file(tmp_path),
        "bind_tickets": True,
    }
    with (
        Cluster(load_config(UpConfig, flags=flags)) as cluster,
        connect(cluster.coordinator, ANN) as ann,
        connect(cluster.coordinator) as nobody,
    ):
        assert ann.table("db.orders").scan().to_arrow().num_rows == 80
        with pytest.raises(Unauthenticated):
            nobody.tables()
