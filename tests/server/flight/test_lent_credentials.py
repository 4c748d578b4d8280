"""Tables whose files are under prefixes with credentials of their own, through a whole fleet."""

from __future__ import annotations

import json
import logging
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.client import connect
from floeberg.process.config import load_config
from floeberg.process.storage.renewals import Renewals
from floeberg.protocol.errors import CredentialsUnavailable, ExpiredCredentials
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.plans import ReadPlan, ResumePlace
from floeberg.protocol.storage import Storage
from floeberg.server.catalogs import Catalogs
from floeberg.server.catalogs.pyiceberg_catalog import PyIcebergCatalog
from floeberg.worker.config import WorkerConfig
from floeberg.worker.process import WorkerService
from floeberg.worker.reading import PlacedBatch, to_batches_for_tasks
from floeberg.worker.streams import ReadTasks
from tests.support.fleet import LocalFleet, read_all, read_endpoint
from tests.support.gate import NO_HURRY, now_ms
from tests.support.lake import TableWriter
from tests.support.lending import (
    SPREAD_IDS,
    ExpiringStore,
    LendingCatalog,
    expiring_store,
    lending_catalog,
    lent_by_prefix,
    write_spread_table,
)
from tests.support.services import LENT, Seaweed
from tests.support.waiting import wait_until

HOUR = 3_600_000
SECRETS = [credentials.secret_key for credentials in LENT.values()]


@dataclass
class Clock:
    """How far the coordinator's clock is ahead, where it looks at credentials."""

    ahead_ms: int = 0


@dataclass
class Lent:
    """A fleet, the store that it reads through a proxy, and the catalog that lends it the keys."""

    store: ExpiringStore
    catalog: LendingCatalog
    fleet: LocalFleet
    clock: Clock

    def read(self) -> list[int]:
        with connect(self.fleet.location) as lake:
            found = lake.table("db.t").scan(select=["id"]).to_arrow()
        return [int(i) for i in np.sort(found["id"].to_numpy())]

    def asked_with(self) -> Counter[str]:
        return Counter(self.store.asked_with)


@pytest.fixture(scope="module")
def table(seaweed: Seaweed, tmp_path_factory: pytest.TempPathFactory) -> TableWriter:
    return write_spread_table(tmp_path_factory.mktemp("spread") / "t", seaweed)


@pytest.fixture
def lent(seaweed: Seaweed, table: TableWriter, request: pytest.FixtureRequest) -> Iterator[Lent]:
    flags = getattr(request, "param", {})
    where = f"{table.location}/metadata/{table.metadata_path.name}"
    with (
        expiring_store(seaweed) as store,
        lending_catalog(json.loads(table.metadata_path.read_bytes()), where) as catalog,
    ):
        catalog.config = store.properties
        catalog.lends = lent_by_prefix(now_ms() + HOUR)
        clock = Clock()
        renewals = Renewals(600_000, now_ms=lambda: now_ms() + clock.ahead_ms)
        properties = {"type": "rest", "uri": catalog.uri}
        served = PyIcebergCatalog("lake", properties, renewals=renewals)
        fleet = LocalFleet(Catalogs([served]), manifest_cache_bytes=0, **flags)
        try:
            yield Lent(store, catalog, fleet, clock)
        finally:
            fleet.close()
            served.close()


def test_each_file_is_read_with_the_credentials_of_its_prefix(lent: Lent):
    lent.fleet.add_worker()

    assert lent.read() == SPREAD_IDS

    assert lent.asked_with().keys() == {"data-key", "deletes-key", "metadata-key"}
    assert lent.catalog.renewals == 0


@pytest.mark.parametrize("lent", [{"max_info_bytes": 0}], indirect=True)
def test_so_are_the_manifests_that_a_ticket_names(lent: Lent):
    lent.fleet.add_worker()
    [endpoint, *_] = endpoints(lent)
    lent.store.asked_with.clear()
    lent.store.expired.add(LENT["metadata"].access_key)
    lent.catalog.renews_with = lent_by_prefix(now_ms() + HOUR, again=["metadata"])

    assert read_endpoint(endpoint).num_rows > 0
    assert {"data-key", "metadata-key", "metadata-again-key"} <= lent.asked_with().keys()


def test_a_plan_goes_on_when_its_credentials_end_before_their_time(lent: Lent):
    lent.fleet.add_worker()
    lent.store.expired.add(LENT["metadata"].access_key)
    lent.catalog.lends = lent_by_prefix(now_ms() + HOUR)
    lent.catalog.renews_with = lent_by_prefix(now_ms() + HOUR, again=["metadata"])

    assert lent.read() == SPREAD_IDS
    assert (lent.catalog.loads, lent.catalog.renewals) == (1, 1)
    assert lent.read() == SPREAD_IDS
    assert (lent.catalog.loads, lent.catalog.renewals) == (2, 1)


def test_what_ends_soon_is_renewed_before_it_is_handed_out(lent: Lent):
    lent.fleet.add_worker()
    lent.catalog.lends = lent_by_prefix(now_ms() + 30_000)
    lent.catalog.renews_with = lent_by_prefix(now_ms() + HOUR, again=["data", "metadata"])

    assert lent.read() == SPREAD_IDS
    assert lent.read() == SPREAD_IDS

    assert lent.asked_with().keys() == {"data-again-key", "deletes-key", "metadata-again-key"}
    assert lent.catalog.renewals == 1


def test_what_lives_is_handed_out_while_the_catalog_fails_to_renew_it(lent: Lent):
    lent.fleet.add_worker()
    lent.catalog.lends = lent_by_prefix(now_ms() + 5 * 60_000)
    lent.catalog.renewing_status = 500

    assert lent.read() == SPREAD_IDS
    assert lent.catalog.renewals >= 1


# --- workers whose tickets' credentials end ------------------------------------------------------


def ending(lent: Lent) -> ReadTasks:
    """Read, and have the data's credentials end after the first batch that any stream has given."""

    def read(plan: ReadPlan, storage: Storage, *, resume: ResumePlace) -> Iterator[PlacedBatch]:
        for batch in to_batches_for_tasks(plan, storage, resume=resume):
            yield batch
            lent.store.expired.add(LENT["data"].access_key)

    return read


def endpoints(lent: Lent) -> list[fl.FlightEndpoint]:
    with fl.connect(lent.fleet.location) as client:
        return client.get_flight_info(fl.FlightDescriptor.for_path("db", "t")).endpoints


def ids(rows: pa.Table) -> list[int]:
    return [int(i) for i in np.sort(rows["id"].to_numpy())]


def test_a_stream_goes_on_when_its_credentials_end_and_neither_loses_nor_repeats_a_row(lent: Lent):
    lent.fleet.add_worker(ending(lent))
    lent.catalog.renews_with = lent_by_prefix(now_ms() + HOUR, again=["data"])

    [endpoint] = endpoints(lent)[:1]
    found = read_endpoint(endpoint)

    assert ids(found) == [i for i in SPREAD_IDS if i in set(found["id"].to_pylist())]
    assert found.num_rows > 1000
    assert lent.asked_with()["data-key"] > 1
    assert lent.asked_with()["data-again-key"] > 1
    assert (lent.catalog.loads, lent.catalog.renewals) == (1, 1)
    # and so do others, with what the first has fetched
    lent.store.asked_with.clear()
    assert ids(read_endpoint(endpoint)) == ids(found)
    assert lent.asked_with().keys() == {"data-again-key", "deletes-key"}


def test_all_streams_of_a_table_share_what_one_of_them_fetched(lent: Lent):
    workers = [lent.fleet.add_worker() for _ in range(2)]
    lent.catalog.renews_with = lent_by_prefix(now_ms() + HOUR, again=["data"])
    handed_out = endpoints(lent)
    lent.store.expired.add(LENT["data"].access_key)

    with ThreadPoolExecutor() as pool:
        found = list(pool.map(read_endpoint, handed_out))

    assert len(found) > 2
    assert ids(pa.concat_tables(found)) == SPREAD_IDS
    assert lent.catalog.renewals == 1
    for worker in workers:
        http = str(worker.addresses()["http"])
        assert metric(http, 'floeberg_worker_credential_renewals_total{outcome="renewed"}') <= 1


def test_what_ends_soon_is_fetched_before_it_is_used(lent: Lent):
    lent.fleet.add_worker(credential_seconds=7200)
    lent.catalog.renews_with = lent_by_prefix(now_ms() + 10 * HOUR, again=["data", "deletes"])
    handed_out = endpoints(lent)
    lent.clock.ahead_ms = HOUR - 60_000

    found = pa.concat_tables(map(read_endpoint, handed_out))

    assert ids(found) == SPREAD_IDS
    assert lent.asked_with().keys() == {"metadata-key", "data-again-key", "deletes-again-key"}
    assert lent.catalog.renewals == 1


def test_a_worker_that_was_found_asks_whoever_found_it(lent: Lent):
    lent.catalog.renews_with = lent_by_prefix(now_ms() + HOUR, again=["data"])
    worker = WorkerService(
        load_config(WorkerConfig, flags={"key": lent.fleet.keys.to_text(), "drain_seconds": 0}),
        ending(lent),
    )
    worker.start()
    lent.fleet.workers.append(worker)
    lent.fleet.flags["worker"] = [worker.location]
    lent.fleet.restart_coordinator()
    wait_until(lambda: worker.registered, "the coordinator to find the worker")

    assert lent.read() == SPREAD_IDS
    assert lent.catalog.renewals == 1


def test_a_coordinator_that_knows_neither_table_nor_worker_lends_to_what_another_planned(
    lent: Lent,
):
    lent.fleet.add_worker(ending(lent))
    handed_out = endpoints(lent)
    lent.catalog.renews_with = lent_by_prefix(now_ms() + HOUR, again=["data"])
    lent.catalog.lends = lent_by_prefix(now_ms() + HOUR)
    lent.fleet.restart_coordinator()

    assert ids(pa.concat_tables(map(read_endpoint, handed_out))) == SPREAD_IDS


@pytest.mark.parametrize("coordinator", ["gone", "with its catalog away", "never known"])
def test_where_nobody_can_be_asked_clients_are_told_to_try_elsewhere(lent: Lent, coordinator: str):
    worker = lent.fleet.add_worker()
    handed_out = endpoints(lent)
    lent.store.expired |= {credentials.access_key for credentials in LENT.values()}
    location = worker.location
    match coordinator:
        case "gone":
            lent.fleet.coordinator.stop(NO_HURRY)
        case "with its catalog away":
            lent.catalog.status = 500
        case _:
            flags = {"key": lent.fleet.keys.to_text(), "drain_seconds": 0}
            other = WorkerService(load_config(WorkerConfig, flags=flags))
            other.start()
            lent.fleet.workers.append(other)
            location = other.location

    with fl.connect(location) as client, pytest.raises(fl.FlightUnavailableError) as raised:
        client.do_get(handed_out[0].ticket).read_all()

    error = from_flight(raised.value)
    assert isinstance(error, CredentialsUnavailable)
    assert "lake.db.t" in str(error)
    assert not [secret for secret in SECRETS if secret in str(error)]


def test_floebergs_client_goes_on_at_a_worker_that_can_ask(lent: Lent):
    def alone(plan: ReadPlan, storage: Storage, *, resume: ResumePlace) -> Iterator[PlacedBatch]:
        yield next(to_batches_for_tasks(plan, storage, resume=resume))
        raise CredentialsUnavailable("this worker reaches no coordinator")

    lent.fleet.add_worker(alone)
    lent.fleet.add_worker(ending(lent))
    lent.catalog.renews_with = lent_by_prefix(now_ms() + HOUR, again=["data"])

    assert lent.read() == SPREAD_IDS


def test_a_refusal_is_told_as_one(lent: Lent):
    lent.fleet.add_worker()
    handed_out = endpoints(lent)
    lent.store.expired |= {credentials.access_key for credentials in LENT.values()}
    lent.catalog.status = 404

    with pytest.raises(fl.FlightUnauthorizedError) as raised:
        read_endpoint(handed_out[0])

    error = from_flight(raised.value)
    assert isinstance(error, ExpiredCredentials)
    assert "GetFlightInfo" in str(error)


def test_no_secret_is_logged_or_told(lent: Lent, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    worker = lent.fleet.add_worker()
    lent.catalog.lends = lent_by_prefix(now_ms() + 30_000)
    lent.catalog.renews_with = lent_by_prefix(now_ms() + HOUR, again=["data"])

    with fl.connect(lent.fleet.location) as client:
        info = client.get_flight_info(fl.FlightDescriptor.for_path("db", "t"))
        assert read_all(info).num_rows == len(SPREAD_IDS)
        status = b"".join(
            r.body.to_pybytes() for r in client.do_action(fl.Action("floeberg.status", b""))
        )

    told = caplog.text + repr(worker.status()) + status.decode() + repr(info.serialize())
    assert "credentials renewed" in caplog.text
    assert not [secret for secret in SECRETS if secret in told]


def metric(http: str, name: str) -> float:
    with urllib.request.urlopen(f"{http}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    [line] = [line for line in lines if line.startswith(name)]
    return float(line.rpartition(" ")[2])


def test_renewals_are_counted(lent: Lent):
    lent.catalog.lends = lent_by_prefix(now_ms() + 30_000)
    lent.catalog.renews_with = lent_by_prefix(now_ms() + HOUR)
    lent.fleet.add_worker()
    lent.read()

    http = str(lent.fleet.coordinator.addresses()["http"])
    assert metric(http, 'floeberg_credential_renewals_total{outcome="renewed"}') == 1
    assert metric(http, 'floeberg_credential_renewals_total{outcome="failed"}') == 0
