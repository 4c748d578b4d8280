"""floeberg: from the command that GetFlightInfo brings to sealed tickets, as a coordinator does it,
with eight workers that are members and never asked for anything.

Its cache has room for the largest table. With a directory for decoded manifests, a new process is a
coordinator that was started again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

from prometheus_client import CollectorRegistry

from floeberg.process.storage import StorageCache, open_storage
from floeberg.protocol.commands import ScanCommand
from floeberg.protocol.registration import RegisterWorker, seal_registration
from floeberg.protocol.sealing import Keyring
from floeberg.server.catalogs import Catalogs, WarehouseCatalog
from floeberg.server.flight.endpoints import ScanPolicy
from floeberg.server.flight.members import Members
from floeberg.server.flight.plan_runs import PlanRuns
from floeberg.server.flight.scans import Scans
from floeberg.server.planning import ManifestCache, SegmentFiles
from tests.bench.planning.questions import Filter
from tests.bench.planning.sides.serving import serve

_WORKERS = 8
_LEASE_SECONDS = 86_400.0
CACHE_BYTES = 2 << 30


class FloebergSide:
    """Plans through `Scans.answer`; `forget` starts with empty caches."""

    def __init__(self, warehouse: Path, disk_cache: Path | None = None) -> None:
        self._warehouse = warehouse
        self._disk_cache = disk_cache
        self.forget()

    def plan(self, metadata_file: str, filter_: Filter) -> int:
        directory = Path(metadata_file).parents[1]
        answer = self._scans.answer(ScanCommand.parse(command(directory.name, filter_)))
        tasks: int = json.loads(answer.app_metadata)["tasks"]
        return tasks

    def forget(self) -> None:
        registry, keyring = CollectorRegistry(), Keyring.generate()
        storages = StorageCache(open_storage)
        catalog = WarehouseCatalog("bench", str(self._warehouse), storage_factory=storages)
        files = None if self._disk_cache is None else SegmentFiles(str(self._disk_cache))
        self._manifests = ManifestCache(CACHE_BYTES, files)
        self._scans = Scans(
            Catalogs([catalog]),
            _members(keyring, registry),
            keyring,
            ScanPolicy(),
            storages,
            registry,
            PlanRuns(registry),
            manifests=self._manifests,
        )

    def cpu_seconds(self) -> float:
        return time.process_time()

    def process_id(self) -> int:
        return os.getpid()

    def cached_bytes(self) -> int:
        return self._manifests.size_bytes


def command(table: str, filter_: Filter) -> bytes:
    """Return the scan command for a filter as it travels."""
    body: dict[str, object] = {"table": f"bench.{table}"}
    if filter_:
        body["filter"] = ["and", *filter_]
    return json.dumps(body).encode()


def _members(keyring: Keyring, registry: CollectorRegistry) -> Members:
    members = Members(keyring, _LEASE_SECONDS, registry)
    for number in range(_WORKERS):
        members.register(
            seal_registration(worker(number), keyring, now_ms=time.time_ns() // 1_000_000)
        )
    return members


def worker(number: int) -> RegisterWorker:
    """Return a worker as it says that it is there; nothing listens at its address."""
    return RegisterWorker(
        worker_id=f"w-{number}",
        location=f"grpc+tcp://worker-{number}:8815",
        max_streams=32,
        max_bytes=1 << 30,
        version="bench",
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("warehouse", type=Path)
    parser.add_argument("--disk-cache", type=Path)
    arguments = parser.parse_args()
    serve(FloebergSide(arguments.warehouse, arguments.disk_cache))
