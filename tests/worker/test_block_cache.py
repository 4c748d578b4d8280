"""Workers that keep blocks on disk: what they ask of a real store, and what they tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from floeberg.client import connect
from floeberg.server.catalogs import Catalogs, WarehouseCatalog
from floeberg.worker.process import WorkerService
from tests.support.fleet import LocalFleet
from tests.support.gate import NO_HURRY
from tests.support.http_counting import CountingProxy
from tests.support.lake import FileLayout, TableWriter, required, schema
from tests.support.services import Seaweed
from tests.support.waiting import wait_until

BUCKET = "blocks-on-disk"
COLUMNS = schema({"id": required("long"), "text": "string"})
PLAIN = FileLayout(codec="none", parquet={"use_dictionary": False})
DELETED = {3, 30_000}


@dataclass
class Store:
    """A fleet over a table in a bucket, and the proxy by which the bucket is reached."""

    fleet: LocalFleet
    proxy: CountingProxy

    def read(self) -> tuple[list[int], int]:
        """Return the ids of the rows, and how many requests reading them took after planning."""
        with connect(self.fleet.location) as lake:
            reader = lake.table("db.t").scan().to_reader()
            before = self.proxy.requests
            rows = reader.read_all()
        return sorted(rows["id"].to_pylist()), self.proxy.requests - before

    def stop(self, worker: WorkerService) -> None:
        self.fleet.workers.remove(worker)
        worker.stop(NO_HURRY)


@pytest.fixture(scope="module")
def bucket(seaweed: Seaweed, tmp_path_factory: pytest.TempPathFactory) -> Seaweed:
    """A bucket with a table of files larger and smaller than a tail, and deletes."""
    location = f"s3://{BUCKET}/db/t"
    table = TableWriter.create(tmp_path_factory.mktemp("t") / "t", COLUMNS, location=location)
    files = []
    for first, count in ((0, 30_000), (30_000, 50)):
        rows = [{"id": i, "text": f"{i} {'x' * 40}"} for i in range(first, first + count)]
        files += table.append(rows, layout=PLAIN)
    table.delete_positions({files[0]: [3], files[1]: [0]})
    seaweed.make_bucket(BUCKET)
    paths = [path for path in table.directory.rglob("*") if path.is_file()]
    seaweed.put(
        BUCKET, {f"db/t/{path.relative_to(table.directory)}": path.read_bytes() for path in paths}
    )
    return seaweed


@pytest.fixture
def store(bucket: Seaweed) -> Iterator[Store]:
    with CountingProxy(int(bucket.s3_endpoint.rpartition(":")[2])) as proxy:
        endpoint = f"http://127.0.0.1:{proxy.port}"
        properties = {**bucket.s3_properties(), "s3.endpoint": endpoint}
        catalog = WarehouseCatalog("warehouse", f"s3://{BUCKET}", properties)
        fleet = LocalFleet(Catalogs([catalog]))
        try:
            yield Store(fleet, proxy)
        finally:
            fleet.close()


IDS = [i for i in range(30_050) if i not in DELETED]


def numbers(worker: WorkerService) -> dict[str, float]:
    """Return what the worker tells of its blocks on disk."""
    lines = httpx.get(f"{worker.addresses()['http']}/metrics").text.splitlines()
    found = (line.split() for line in lines if line.startswith("floeberg_block_cache_"))
    return {name.removeprefix("floeberg_block_cache_"): float(n) for name, n in found}


def test_what_a_scan_has_asked_for_is_not_asked_for_again(store: Store, tmp_path: Path) -> None:
    first = store.fleet.add_worker(block_cache_dir=str(tmp_path))
    ids, asked = store.read()
    assert ids == IDS
    assert asked >= 4
    wait_until(lambda: not numbers(first)["pending_bytes"], "the blocks to be written")

    assert store.read() == (IDS, 0)
    told = numbers(first)
    assert told["bytes"] > 0
    assert told["misses_total"] > 0
    assert told["damaged_total"] == told["failures_total"] == 0

    # another worker of this machine, which has nothing in memory
    second = store.fleet.add_worker(block_cache_dir=str(tmp_path))
    store.stop(first)
    assert store.read() == (IDS, 0)
    assert numbers(second)["hits_total"] > 0
    caches = {entry["name"]: entry for entry in second.status()["caches"]}
    assert caches["blocks on disk"]["hits"] > 0


def test_without_a_directory_memory_alone_saves_what_it_can(store: Store) -> None:
    worker = store.fleet.add_worker()
    ids, cold = store.read()

    assert ids == IDS
    # footers, the small file and the deletes are known: what is left are columns of the large file
    assert store.read() == (IDS, 1)
    assert cold > 1
    assert numbers(worker) == {}


def test_a_directory_that_cannot_be_used_changes_no_row(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")

    worker = store.fleet.add_worker(block_cache_dir=str(tmp_path / "file"))

    assert store.read()[0] == IDS
    assert store.read()[0] == IDS
    assert numbers(worker)["failures_total"] == 1
