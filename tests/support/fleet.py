"""A coordinator and workers in this process, for tests that look at them from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.process.config import load_config
from floeberg.process.storage import LoggedStorage, StorageCache, open_storage
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.storage import StorageFactory
from floeberg.server.catalogs import Catalogs, WarehouseCatalog
from floeberg.server.config import CoordinatorConfig
from floeberg.server.flight import Scans
from floeberg.server.process import CoordinatorService
from floeberg.server.sql.answering import SqlStatements
from floeberg.server.sql.service import Statements
from floeberg.worker.config import WorkerConfig
from floeberg.worker.process import WorkerService
from floeberg.worker.streams import ReadTasks
from tests.support.gate import NO_HURRY
from tests.support.waiting import wait_until


class LocalFleet:
    """A coordinator over catalogs, or over a warehouse's directory, and the workers that were asked
    for. `close` it.
    """

    def __init__(
        self,
        served: Catalogs | Path,
        open_storage: StorageFactory = open_storage,
        make_statements: Callable[[Scans], Statements] = SqlStatements,
        **flags: object,
    ) -> None:
        self._open_storage = open_storage
        self._make_statements = make_statements
        self.keys = Keyring.generate()
        self.catalogs = (
            Catalogs([WarehouseCatalog("warehouse", str(served))])
            if isinstance(served, Path)
            else served
        )
        self.flags: dict[str, object] = {
            "key": self.keys.to_text(),
            "port": 0,
            "drain_seconds": 1,
            **flags,
        }
        self.coordinator = self._start_coordinator()
        self.workers: list[WorkerService] = []

    def _start_coordinator(self) -> CoordinatorService:
        coordinator = CoordinatorService(
            load_config(CoordinatorConfig, flags=self.flags),
            self.catalogs,
            StorageCache(lambda config: LoggedStorage(self._open_storage(config))),
            make_statements=self._make_statements,
        )
        coordinator.start()
        return coordinator

    def restart_coordinator(self) -> None:
        """Put another coordinator, which knows nobody, at the address of the one that was."""
        self.flags["port"] = int(self.location.rpartition(":")[2])
        self.coordinator.stop(NO_HURRY)
        self.coordinator = self._start_coordinator()

    @property
    def location(self) -> str:
        return self.coordinator.location

    def add_worker(self, read: ReadTasks | None = None, **flags: object) -> WorkerService:
        """Start a worker that reads with `read`, and return it once it is a member."""
        values = {
            "key": self.keys.to_text(),
            "drain_seconds": 1,
            "coordinator": [self.location],
            **flags,
        }
        worker = WorkerService(load_config(WorkerConfig, flags=values), read)
        worker.start()
        self.workers.append(worker)
        wait_until(lambda: worker.registered, "the worker to register")
        return worker

    def close(self) -> None:
        if self.workers:
            with ThreadPoolExecutor(len(self.workers)) as pool:
                list(pool.map(lambda worker: worker.stop(NO_HURRY), self.workers))
        self.coordinator.stop(NO_HURRY)


@contextmanager
def local_fleet(
    served: Catalogs | Path,
    workers: int = 2,
    open_storage: StorageFactory = open_storage,
    make_statements: Callable[[Scans], Statements] = SqlStatements,
    **flags: object,
) -> Iterator[LocalFleet]:
    """`open_storage` gives the coordinator its storage, `make_statements` what answers SQL."""
    fleet = LocalFleet(served, open_storage, make_statements, **flags)
    try:
        for _ in range(workers):
            fleet.add_worker()
        yield fleet
    finally:
        fleet.close()


def read_endpoint(endpoint: fl.FlightEndpoint, location: int = 0) -> pa.Table:
    """Return an endpoint's rows from one of its locations, as a stock client reads them."""
    with fl.connect(endpoint.locations[location]) as client:
        return client.do_get(endpoint.ticket).read_all()


def read_all(info: fl.FlightInfo) -> pa.Table:
    """Return the rows of all endpoints, each from its first location."""
    return pa.concat_tables([read_endpoint(e) for e in info.endpoints])
